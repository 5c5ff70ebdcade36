/*
 * The control plane: `server --config FILE` serves; with a command after it, it does that and ends.
 *
 *   backup DIR · check · keys rotate · audit verify · sign-in-link LOGIN · reset-password LOGIN
 *   set-up --organisation NAME --team NAME --project NAME --login LOGIN --name NAME
 *
 * Exit codes: 0 done; 1 something is not in order; 64 wrong usage; 78 the configuration is refused.
 */
import { parseArgs } from 'node:util';
import { ConfigRefused, readSettings } from './config.ts';
import { auditVerify, backUp, check, makeSignInAddress, resetPassword, rotateKeys, setUpHere } from './maintain.ts';
import { CommandKeyRefused } from './command-key.ts';
import { KeyRingRefused } from './payloads/key-ring.ts';
import { Refusal } from './refusal.ts';
import { StoreFailed } from './store/store.ts';
import { serve } from './serve.ts';

const EXIT = { inOrder: 0, notInOrder: 1, usage: 64, configuration: 78 } as const;

const USAGE =
  'usage: server --config FILE [backup DIR | check | keys rotate | audit verify | sign-in-link LOGIN | reset-password LOGIN | set-up --organisation NAME --team NAME --project NAME --login LOGIN --name NAME]';

const text = { type: 'string' } as const;
const options = {
  config: text,
  /** Folder of the built programs; where this file lies, unless the tests say otherwise. */
  installation: text,
  organisation: text,
  team: text,
  project: text,
  login: text,
  name: text,
} as const;

class UsageRefused extends Error {
  override readonly name = 'UsageRefused';
}

function given(value: string | undefined, name: string): string {
  if (value !== undefined && value.trim() !== '') return value;
  throw new UsageRefused(`${name} is missing\n${USAGE}`);
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const settings = await readSettings(given(values.config, '--config'));
  const [command, argument, ...more] = positionals;
  if (more.length > 0) throw new UsageRefused(`unexpected: ${more.join(' ')}\n${USAGE}`);
  switch (`${command ?? 'serve'}${command === 'keys' || command === 'audit' ? ` ${argument}` : ''}`) {
    case 'serve':
      await serve(settings, values.installation ?? import.meta.dirname);
      return Number(process.exitCode ?? EXIT.inOrder);
    case 'backup':
      await backUp(settings, given(argument, 'DIR'));
      return EXIT.inOrder;
    case 'check':
      return (await check(settings)) ? EXIT.inOrder : EXIT.notInOrder;
    case 'keys rotate':
      await rotateKeys(settings);
      return EXIT.inOrder;
    case 'audit verify':
      return (await auditVerify(settings)) ? EXIT.inOrder : EXIT.notInOrder;
    case 'sign-in-link':
      await makeSignInAddress(settings, given(argument, 'LOGIN'));
      return EXIT.inOrder;
    case 'reset-password':
      await resetPassword(settings, given(argument, 'LOGIN'));
      return EXIT.inOrder;
    case 'set-up':
      await setUpHere(settings, {
        organisation: given(values.organisation, '--organisation'),
        team: given(values.team, '--team'),
        project: given(values.project, '--project'),
        login: given(values.login, '--login'),
        name: given(values.name, '--name'),
      });
      return EXIT.inOrder;
    default:
      throw new UsageRefused(`unknown command ${command}\n${USAGE}`);
  }
}

/** One sentence for what a person can mend; anything else is told by name, never by stack. */
function explain(error: unknown): { readonly sentence: string; readonly code: number } {
  if (error instanceof ConfigRefused) return { sentence: error.message, code: EXIT.configuration };
  if (error instanceof UsageRefused) return { sentence: error.message, code: EXIT.usage };
  if (error instanceof Refusal) return { sentence: `${error.code}: ${error.message}`, code: EXIT.notInOrder };
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('ERR_PARSE_ARGS')) return { sentence: USAGE, code: EXIT.usage };
  if (code === 'EADDRINUSE')
    return { sentence: 'the port of configuration key listen.port is in use: choose another', code: EXIT.notInOrder };
  if (error instanceof CommandKeyRefused || error instanceof KeyRingRefused || error instanceof StoreFailed) {
    return { sentence: error.message, code: EXIT.notInOrder };
  }
  const name = error instanceof Error ? error.name : 'unknown error';
  return { sentence: `the server ended: ${name}${code === '' ? '' : ` (${code})`}`, code: EXIT.notInOrder };
}

try {
  process.exitCode = await main();
} catch (error) {
  const { sentence, code } = explain(error);
  process.stderr.write(`${sentence}\n`);
  process.exitCode = code;
}
