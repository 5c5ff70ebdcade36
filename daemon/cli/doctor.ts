/*
 * `doctor`: checks every precondition on this machine and prints the remedy of each that fails. It opens no port; of the
 * network it only tries whether the origin can be connected to.
 */
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import type { Capabilities, Tried } from '../../helpers/protocol/file-system.ts';
import { OriginRefused, readOrigin } from '../../helpers/protocol/origin.ts';
import { StartRefusal } from '../../helpers/runtime/configuration.ts';
import type { Configuration } from '../../helpers/runtime/configuration.ts';
import { InstallationError, readInstallation, verifyFiles } from '../../helpers/runtime/installation.ts';
import { runTwins } from '../../helpers/runtime/twins.ts';
import { remedyOf } from '../../machines/daemon/faults.ts';
import { PolicyInvalid } from '../config.ts';
import { installationOfRows, sentenceOf } from './audit.ts';
import { CliFailure } from './failure.ts';
import { askDaemon } from './owner-client.ts';
import type { Places } from './places.ts';
import { confirmedBy, promotionRule } from './promotion-rule.ts';
import { chooseRoot } from './root-choice.ts';
import { readPolicy, requireSetUp } from './set-up.ts';
import { installationFolder } from './supervised.ts';
import { columns, say, sayJson, styled, withProgress } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** One check: `remedy` says what to do, and is empty where nothing is to be done. */
export interface Finding {
  readonly check: string;
  readonly result: 'ok' | 'failed' | 'skipped';
  readonly said: string;
  readonly remedy: string;
  /** What was found of the root's file system, where that was tried. */
  readonly fileSystem?: Capabilities;
}

type Passed = string | Pick<Finding, 'said' | 'fileSystem'>;
type Check = (places: Places) => Promise<Passed> | Passed;

/** A check that did not pass. */
class Unwell extends Error {
  readonly remedy: string;
  readonly fileSystem: Capabilities | undefined;

  constructor(said: string, remedy: string, fileSystem?: Capabilities) {
    super(said);
    this.remedy = remedy;
    this.fileSystem = fileSystem;
  }
}

/** A check that says nothing here. */
class Skipped extends Error {}

const CONNECT_MS = 3000;
const KERNEL_REMEDY = 'install Linux 6.2 or newer with Landlock and seccomp enabled';

const checks: readonly (readonly [string, Check])[] = [
  ['node', node],
  ['programs', programs],
  ['configuration', (places) => `origin and root are set (${configurationOf(places).origin})`],
  ['state folder', stateFolder],
  ['key storage', keyStorage],
  ['root', root],
  ['policy', policy],
  ['promotion', promotion],
  ['confinement', confinement],
  ['origin', origin],
  ['daemon', daemon],
  ['file system', fileSystem],
  ['hypervisor', () => skip('this version starts no guest, so none is needed')],
];

/** Runs every check. Rejects with CliFailure: difference where one failed. */
export async function doctor(terminal: Terminal, places: Places, isJson: boolean): Promise<void> {
  const findings: Finding[] = [];
  for (const [check, run] of checks) findings.push(await withProgress(terminal, check, find(check, run, places)));
  const failed = findings.filter(({ result }) => result === 'failed').length;
  if (isJson) sayJson(terminal, { findings });
  else print(terminal, findings);
  if (failed > 0) throw new CliFailure('difference', `${failed} of ${findings.length} checks failed`);
}

async function find(check: string, run: Check, places: Places): Promise<Finding> {
  try {
    const passed = await run(places);
    return { check, result: 'ok', remedy: '', ...(typeof passed === 'string' ? { said: passed } : passed) };
  } catch (error) {
    if (error instanceof Skipped) return { check, result: 'skipped', said: error.message, remedy: '' };
    if (error instanceof Unwell) {
      const { message: said, remedy, fileSystem } = error;
      return { check, result: 'failed', said, remedy, ...(fileSystem === undefined ? {} : { fileSystem }) };
    }
    // Errors that carry a sentence of their own for people, with the remedy in it.
    const known = [CliFailure, StartRefusal, InstallationError, PolicyInvalid, OriginRefused];
    if (error instanceof Error && known.some((kind) => error instanceof kind))
      return { check, result: 'failed', said: error.message, remedy: '' };
    throw error;
  }
}

function print(terminal: Terminal, findings: readonly Finding[]): void {
  const marks = { ok: 'ok', failed: 'FAILED', skipped: 'skipped' } as const;
  const styles = { ok: 'green', failed: 'red', skipped: 'yellow' } as const;
  const lines = columns(findings.map(({ check, result, said }) => [marks[result], check, said]));
  findings.forEach(({ result, remedy }, at) => {
    say(terminal, styled(terminal, styles[result], lines[at] ?? ''));
    if (remedy !== '') say(terminal, `         -> ${remedy}`);
  });
}

function skip(said: string): never {
  throw new Skipped(said);
}

function node(): string {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return `Node ${process.versions.node}`;
  throw new Unwell(`Node ${process.versions.node} is too old`, 'install Node 20.19 or newer');
}

function programs(): string {
  const installation = readInstallation(installationFolder());
  verifyFiles(installation, [...installation.hashes.keys()]);
  return `${installation.hashes.size} files as built, ${installation.digest.slice(0, 16)}`;
}

const configurationOf = (places: Places): Configuration => requireSetUp(places);

function stateFolder(places: Places): string {
  const stat = fs.lstatSync(places.stateDir, { throwIfNoEntry: false });
  if (!stat?.isDirectory())
    throw new Unwell('the state folder is missing', 'pair this machine with `nessie-executor pair`');
  if (stat.uid !== process.getuid?.())
    throw new Unwell('the state folder belongs to another user', 'run this as that user');
  if ((stat.mode & 0o077) !== 0) throw new Unwell('others can enter the state folder', 'run `nessie-executor repair`');
  return 'private';
}

function keyStorage({ stateDir }: Places): string {
  const folder = path.join(stateDir, 'key-store');
  const stat = fs.lstatSync(folder, { throwIfNoEntry: false });
  if (!stat) return skip('is made when the daemon first starts');
  const files = stat.isDirectory() ? fs.readdirSync(folder).map((name) => fs.lstatSync(path.join(folder, name))) : [];
  const isPrivate =
    stat.isDirectory() &&
    (stat.mode & 0o777) === 0o700 &&
    files.every((file) => file.isFile() && (file.mode & 0o7777) === 0o600 && file.nlink === 1 && file.uid === stat.uid);
  if (isPrivate) return 'private';
  throw new Unwell(
    'others can read the key, or it has a second name',
    'make the folder key-store of the state folder 0700 and its plain files 0600, then `nessie-executor rotate-key`',
  );
}

function root(places: Places): string {
  const { root: folder } = configurationOf(places);
  const stat = fs.lstatSync(folder, { throwIfNoEntry: false });
  if (!stat)
    throw new Unwell('the root is gone', 'put it back, or choose another with `nessie-executor policy root FOLDER`');
  if (!stat.isDirectory() || fs.realpathSync(folder) !== folder) {
    throw new Unwell(
      'the root is not the folder that it was',
      'put it back, or choose another with `nessie-executor policy root FOLDER`',
    );
  }
  const own = [places.stateDir, places.configDir, installationFolder()];
  chooseRoot(folder, { own, home: undefined, wholeHome: true });
  return 'a plain folder, apart from the executor itself';
}

function policy(places: Places): string {
  readPolicy(places);
  return 'valid';
}

function promotion(places: Places): string {
  const rule = promotionRule(places);
  if (!rule) return skip('is decided at the pairing');
  if (rule.difference) throw new Unwell(rule.difference.said, rule.difference.remedy);
  return `confirmed by ${confirmedBy(rule.inForce)}, in pin and policy alike`;
}

async function confinement(places: Places): Promise<string> {
  const configuration = configurationOf(places);
  const twins = await startedTwins(configuration);
  const [first, ...more] = twins.filter(({ isDifference }) => isDifference);
  if (!first) return `${twins.length} tries, each as the table says`;
  throw new Unwell(
    `${sentenceOf(first)}${more.length > 0 ? `, and ${more.length} more` : ''}`,
    `\`nessie-executor audit\` lists them all; ${KERNEL_REMEDY}`,
  );
}

async function startedTwins(configuration: Configuration): ReturnType<typeof runTwins> {
  try {
    return await runTwins(installationOfRows(), configuration);
  } catch (cause) {
    if (cause instanceof InstallationError) throw cause;
    const missing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    if (missing) return skip('folders of the rows are made when the daemon first starts');
    throw new Unwell('no row can be started', KERNEL_REMEDY);
  }
}

function origin(places: Places): Promise<string> {
  const { hostname: host, port } = readOrigin(
    configurationOf(places).origin,
    process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] === '1',
  );
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host, port, timeout: CONNECT_MS });
    const fail = (said: string, remedy: string): void => {
      socket.destroy();
      reject(new Unwell(said, remedy));
    };
    socket.once('connect', () => {
      socket.destroy();
      resolve('can be connected to');
    });
    socket.once('timeout', () => fail('the origin does not answer', 'check the network and any firewall between'));
    socket.once('error', (error) => {
      const code = 'code' in error ? String(error.code) : '';
      if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
        fail('the name of the origin has no address', 'check the name and your name server');
      else
        fail(
          `the origin cannot be connected to (${code})`,
          'check that the control plane runs, and any firewall between',
        );
    });
  });
}

async function daemon(places: Places): Promise<string> {
  let status;
  try {
    status = await askDaemon(places.stateDir, 'daemon.status', {});
  } catch (error) {
    if (error instanceof CliFailure && error.ending === 'unreachable')
      return skip('does not run; start it with `nessie-executor daemon`');
    throw error;
  }
  if (status.fault !== null) throw new Unwell(`in its error state: ${status.fault}`, remedyOf(status.fault));
  if (status.policy.state === 'invalid') throw new Unwell(status.policy.message, 'correct policy.json');
  if (status.ledger.state === 'damaged')
    throw new Unwell(
      `the ledger is damaged (${status.ledger.code})`,
      'restore the state folder, or forget and pair again',
    );
  const down = status.rows.filter(({ connected }) => !connected);
  if (down.length > 0)
    throw new Unwell(
      `${down.map(({ row }) => row).join(', ')} is down`,
      'look at the log; `nessie-executor audit` says more',
    );
  return `${status.state}, ${status.standing}`;
}

/** Promote tries it, as before each promotion: only what was done is believed. */
async function fileSystem(places: Places): Promise<Passed> {
  let tried;
  try {
    tried = await askDaemon(places.stateDir, 'daemon.file-system', {});
  } catch (error) {
    if (error instanceof CliFailure) return skip('is tried by a running daemon, while nothing is promoted');
    throw error;
  }
  if (tried.outcome === 'refused') throw new Unwell(...whyUntried(tried));
  const { outcome: _, ...found } = tried;
  const { exchange, noReplace, fileSystem: name } = found;
  if (!noReplace || !exchange) {
    const lack = noReplace
      ? 'cannot exchange two files, so no file can be replaced'
      : 'cannot rename without replacing';
    throw new Unwell(`${name}, where the root lies, ${lack}`, 'choose a root on ext4, XFS, Btrfs or tmpfs', found);
  }
  const ways = fallbacks(found);
  const said = ways.length === 0 ? 'nothing is missing' : ways.join('; ');
  return { said: `${name}: ${said}`, fileSystem: found };
}

function whyUntried({ code, detail }: Extract<Tried, { outcome: 'refused' }>): [said: string, remedy: string] {
  const said = `could not be tried (${code})${detail === undefined ? '' : `: ${detail}`}`;
  return [
    said,
    code === 'PROMOTION_RECOVERY_REQUIRED' ? 'run `nessie-executor repair`' : 'look at the disk and the root',
  ];
}

/** What is done where something is missing that a promotion can do without. */
function fallbacks({ unnamed, leases, reflink }: Capabilities): string[] {
  return [
    ...(unnamed ? [] : ['no unnamed files, so new ones are staged under their numbers']),
    ...(leases ? [] : ['no leases, so content alone is compared and old files wait a day']),
    ...(reflink ? [] : ['no reflink, so large files are copied']),
  ];
}
