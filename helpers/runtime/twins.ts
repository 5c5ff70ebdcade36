/*
 * What each row can reach, found by trying: a twin of the row tries under the row's confinement, and the same try is made
 * once more without any. A try counts when the twin was refused (or let, where the row is meant to) and the control was let.
 */
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer, Socket, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { TABLE } from '../table.ts';
import { replacesProcess, type Attempt, type Outcome, type ProbeLine } from './attempts.ts';
import type { Configuration } from './configuration.ts';
import type { Exit } from './exits.ts';
import { verifyFiles, type Installation } from './installation.ts';
import type { Confined, DescriptorSource, RowName } from './privileges.ts';
import { recordOf } from './records.ts';
import { controlOf, expectedUnder, triesOf, type Aims, type Try } from './reach-list.ts';
import { startRow } from './start.ts';
import { userOf } from './users.ts';

/** What a try of a twin showed. `isDifference`: the table says otherwise, or the control failed so that nothing is shown. */
export type TwinFinding = {
  readonly row: RowName;
  readonly title: string;
  readonly expected: 'reached' | 'refused';
  readonly twin: Outcome;
  readonly control: Outcome;
  readonly isDifference: boolean;
};

const SILENCE_MS = 15_000;
const NEVER_TRIED = { reached: false, code: 'NEVER_TRIED' } as const;

/** Reads a probe's lines until it ends and returns an outcome for each attempt; one that never came is undefined. */
async function hear(
  channel: Socket,
  exited: Promise<Exit>,
  attempts: readonly Attempt[],
): Promise<(Outcome | undefined)[]> {
  const outcomes: (Outcome | undefined)[] = attempts.map(() => undefined);
  let text = '';
  channel.on('data', (bytes: Buffer) => (text += bytes.toString('utf8')));
  channel.on('error', () => undefined);
  channel.write(`${JSON.stringify(attempts)}\n`);
  const closed = new Promise<void>((resolve) => channel.once('close', () => resolve()));
  const timer = setTimeout(() => channel.destroy(), SILENCE_MS);
  const exit = await exited;
  await closed;
  clearTimeout(timer);
  let trying: number | undefined;
  for (const line of text.split('\n').filter((found) => found !== '')) {
    // TRUST: the probe is this installation's own file, hash checked before its start
    const fact = JSON.parse(line) as ProbeLine;
    if ('trying' in fact) ({ trying } = fact);
    if ('tried' in fact) {
      outcomes[fact.tried] = fact.outcome;
      trying = undefined;
    }
  }
  if (trying !== undefined) outcomes[trying] = lastOutcome(attempts[trying], exit);
  return outcomes;
}

/** A process that ended in the middle of a try was replaced by the program it ran, or punished by the kernel. */
function lastOutcome(attempt: Attempt | undefined, exit: Exit): Outcome {
  if (exit.by === 'code' && attempt !== undefined && replacesProcess(attempt)) return { reached: true };
  return { reached: false, code: exit.by === 'signal' ? exit.signal : `EXIT_${exit.code}` };
}

type Opened = { readonly folders: ReadonlyMap<DescriptorSource, number>; readonly close: () => void };

const open = (at: string): number => fs.openSync(at, 'r');

function openFolders({ stateDir, configDir, root, caFile }: Configuration): Opened {
  const state = (name: string): number => open(path.join(stateDir, name));
  const folders = new Map<DescriptorSource, number>([
    ["supervisor's log", open('/dev/null')],
    ['state/daemon', state('daemon')],
    ['state/key-store', state('key-store')],
    ['state/drafts', state('drafts')],
    ['state/drafts/SLOT', state('drafts/00000000')],
    ['state/promote', state('promote')],
    ['configuration folder', open(configDir)],
    ["owner's folder", open(path.join(configDir, 'owner'))],
    ['root folder', open(root)],
    ['CA file', open(caFile ?? '/dev/null')],
  ]);
  return {
    folders,
    close: () => {
      for (const descriptor of folders.values()) fs.closeSync(descriptor);
    },
  };
}

async function runTwin(
  row: Confined,
  tries: readonly Try[],
  installation: Installation,
  { configuration, scratch }: Aims,
): Promise<{ readonly outcomes: readonly (Outcome | undefined)[]; readonly landlockAbi: number | undefined }> {
  const opened = openFolders(configuration);
  const root = opened.folders.get('root folder');
  const descriptors = row.descriptors.flatMap(({ number, kind, source }) =>
    // a twin is connected to nobody: a socket pair stands for every channel and listener
    kind === 'null' ? [] : [[number, opened.folders.get(source) ?? 'channel'] as const],
  );
  const started = startRow({
    row: row.row,
    program: 'probe',
    installation,
    descriptors: new Map(descriptors),
    connect: undefined,
    user: root === undefined ? undefined : userOf(row, root),
    slot: 0,
    origin: configuration.origin,
    loopback: false,
    forbiddenFolders: '',
    records: scratch,
  });
  opened.close();
  if (started.channel === undefined) throw new Error(`the twin of ${row.row} has no channel`);
  const timer = setTimeout(() => started.end('SIGKILL'), SILENCE_MS);
  const outcomes = await hear(
    started.channel,
    started.exited,
    tries.map(({ attempt }) => attempt),
  );
  clearTimeout(timer);
  return { outcomes, landlockAbi: recordOf(scratch, started.pid)?.landlockAbi };
}

/** The probe without launch: it is the plain file, started by the owner's own rights. */
async function runControl(installation: Installation, attempts: readonly Attempt[]): Promise<(Outcome | undefined)[]> {
  verifyFiles(installation, ['probe.mjs', 'koffi.node']);
  const child = spawn(process.execPath, ['--no-warnings', path.join(installation.folder, 'probe.mjs')], {
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) =>
      resolve(signal === null ? { by: 'code', code: code ?? 1 } : { by: 'signal', signal }),
    );
  });
  const channel = child.stdio[3];
  if (!(channel instanceof Socket)) throw new Error('the control has no channel');
  return hear(channel, exited, attempts);
}

/** Controls of all tries: one process for those that return, one for each exec; equal attempts run once. */
async function controls(installation: Installation, wanted: readonly Attempt[]): Promise<ReadonlyMap<string, Outcome>> {
  const byText = new Map(wanted.map((attempt) => [JSON.stringify(attempt), attempt] as const));
  const all = [...byText.values()];
  const batches = [
    all.filter((attempt) => !replacesProcess(attempt)),
    ...all.filter(replacesProcess).map((attempt) => [attempt]),
  ];
  const found = new Map<string, Outcome>();
  for (const batch of batches) {
    const outcomes = await runControl(installation, batch);
    batch.forEach((attempt, index) => found.set(JSON.stringify(attempt), outcomes[index] ?? NEVER_TRIED));
  }
  return found;
}

function listening(server: Server, where: { port: number; host: string } | string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, () => resolve());
  });
}

function greet(socket: Socket): void {
  socket.on('error', () => undefined).destroy();
}

async function withAims<T>(configuration: Configuration, use: (aims: Aims) => Promise<T>): Promise<T> {
  const scratch = fs.mkdtempSync(path.join(tmpdir(), 'audit-'));
  // an uid of the range must fail by confinement, not by the mode of this folder
  fs.chmodSync(scratch, 0o755);
  const [tcp, unix, udp] = [createServer(greet), createServer(greet), createSocket('udp4')];
  try {
    await listening(tcp, { port: 0, host: '127.0.0.1' });
    udp.bind(0, '127.0.0.1');
    await once(udp, 'listening');
    const unixPath = path.join(scratch, 'canary.sock');
    await listening(unix, unixPath);
    fs.chmodSync(unixPath, 0o777);
    const address = tcp.address();
    if (address === null || typeof address === 'string') throw new Error('the canary has no port');
    const ports = { tcpPort: address.port, udpPort: udp.address().port };
    return await use({ configuration, ...ports, unixPath, pid: process.pid, scratch });
  } finally {
    tcp.close();
    unix.close();
    udp.close();
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/** Whether a try shows anything but what the table says: never made, another outcome, or a control that failed too, so that nothing is shown. */
export function differs(expected: 'reached' | 'refused', twin: Outcome, control: Outcome): boolean {
  if (!twin.reached && twin.code === NEVER_TRIED.code) return true;
  return twin.reached !== (expected === 'reached') || !control.reached;
}

/** Tries what every confined row must not reach, with and without confinement; the executor need not run. Throws InstallationError. */
export async function runTwins(installation: Installation, configuration: Configuration): Promise<TwinFinding[]> {
  const rows = Object.values(TABLE).filter((row): row is Confined => row.confined);
  return withAims(configuration, async (aims) => {
    const planned = rows.map((row) => ({ row, tries: triesOf(row, aims) }));
    const wanted = planned.flatMap(({ row, tries }) => tries.map(({ attempt }) => controlOf(attempt, row, aims)));
    const control = await controls(installation, wanted);
    const findings: TwinFinding[] = [];
    for (const { row, tries } of planned) {
      const { outcomes, landlockAbi } = await runTwin(row, tries, installation, aims);
      tries.forEach((made, index) => {
        const { title, attempt } = made;
        const expected = expectedUnder(made, row, landlockAbi);
        const twin = outcomes[index] ?? NEVER_TRIED;
        const free = control.get(JSON.stringify(controlOf(attempt, row, aims))) ?? NEVER_TRIED;
        const isDifference = differs(expected, twin, free);
        findings.push({ row: row.row, title, expected, twin, control: free, isDifference });
      });
    }
    return findings;
  });
}
