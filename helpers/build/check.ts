/*
 * `npm run check [-- PART ...]`: everything but the tests, two parts at a time. Each part prints its name, its time and, if it
 * failed, all it found. Ends with `N passed, N failed, N skipped`; non-zero if one failed.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { checkCasts } from './casts.ts';
import { checkClaims } from './claims.ts';
import { checkGenerated } from './generated.ts';
import { checkImports } from './imports.ts';
import { checkPlaces } from './places.ts';
import { checkRequirements } from './requirements.ts';

/** What a part found: nothing means that it passed. */
type Findings = readonly string[];

interface Part {
  readonly name: string;
  readonly what: string;
  readonly run: (root: string) => Promise<Findings>;
}

/** A tool of node_modules; its output is its findings when it ends with another code than 0. */
function tool(name: string, ...options: string[]): Part['run'] {
  return (root) =>
    new Promise((resolve, reject) => {
      const child = spawn(join(root, 'node_modules/.bin', name), options, {
        cwd: root,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const output: Buffer[] = [];
      child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
      child.stderr.on('data', (chunk: Buffer) => output.push(chunk));
      child.once('error', reject);
      child.once('close', (code, signal) => {
        const text = Buffer.concat(output).toString('utf8').trim();
        resolve(code === 0 ? [] : [text === '' ? `${name} ended with ${signal ?? String(code)} and no word` : text]);
      });
    });
}

async function imports(root: string): Promise<Findings> {
  const { violations } = await checkImports(root);
  return violations.map(({ file, target, rule, reason }) => `${file} imports ${target}\n    ${rule}: ${reason}`);
}

const parts: readonly Part[] = [
  { name: 'types', what: 'the compiler, strict', run: tool('tsc', '--noEmit', '-p', '.') },
  { name: 'lint', what: 'oxlint with types', run: tool('oxlint', '--format', 'stylish', '--deny-warnings') },
  { name: 'format', what: 'oxfmt', run: tool('oxfmt', '--check', '.') },
  { name: 'unused', what: 'knip: files, exports and packages without a reader', run: tool('knip', '--no-progress') },
  { name: 'imports', what: 'who may import what', run: imports },
  { name: 'casts', what: 'a reason above every cast', run: checkCasts },
  { name: 'generated', what: 'generated files are fresh', run: checkGenerated },
  { name: 'requirements', what: 'requirement states agree with test titles', run: checkRequirements },
  { name: 'claims', what: 'SECURITY.md claims what tests show', run: (root) => checkClaims(root, { ran: false }) },
  { name: 'places', what: 'root entries, machine paths, file lengths', run: checkPlaces },
];

async function runPart(part: Part, root: string): Promise<boolean> {
  const begin = performance.now();
  const findings = await part
    .run(root)
    .catch((error: unknown) => [error instanceof Error ? error.message : String(error)]);
  const seconds = ((performance.now() - begin) / 1000).toFixed(1).padStart(5);
  const verdict = findings.length === 0 ? 'ok    ' : 'FAILED';
  process.stdout.write(`${verdict} ${seconds} s  ${part.name.padEnd(13)} ${part.what}\n`);
  for (const finding of findings) process.stdout.write(`${finding.replaceAll(/^/gm, '    ')}\n`);
  return findings.length === 0;
}

async function main(root: string, names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !parts.some((part) => part.name === name));
  if (unknown.length > 0) {
    process.stderr.write(
      `no part is called ${unknown.join(', ')}; there are ${parts.map(({ name }) => name).join(', ')}\n`,
    );
    process.exitCode = 2;
    return;
  }
  const chosen = parts.filter(({ name }) => names.length === 0 || names.includes(name));
  const waiting = [...chosen];
  const verdicts: boolean[] = [];
  const worker = async (): Promise<void> => {
    for (let part = waiting.shift(); part; part = waiting.shift()) verdicts.push(await runPart(part, root));
  };
  await Promise.all([worker(), worker()]);
  const passed = verdicts.filter(Boolean).length;
  process.stdout.write(`${passed} passed, ${chosen.length - passed} failed, ${parts.length - chosen.length} skipped\n`);
  process.exitCode = passed === chosen.length ? 0 : 1;
}

await main(process.cwd(), process.argv.slice(2));
