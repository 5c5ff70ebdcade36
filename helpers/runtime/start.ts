/*
 * Starts a row through launch: used by the supervisor for every row, by `audit` for twins, and by the control plane for its
 * key-store. There is no other way to start one, and none that leaves out the confinement.
 */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { Socket } from 'node:net';
import path from 'node:path';

import { TABLE } from '../table.ts';
import type { Exit } from './exits.ts';
import { verifyFiles, type Installation } from './installation.ts';
import type { LaunchPlan } from './launch-plan.ts';
import type { Confined } from './privileges.ts';

/** What to start, and what stands behind its declared descriptors: a number of this process, or a new channel. */
export type StartRequest = Omit<LaunchPlan, 'installation' | 'parent'> & {
  readonly installation: Installation;
  /** For each declared descriptor that is not null: an open descriptor, `channel` for a new socket pair, `log` for this process's standard error. */
  readonly descriptors: ReadonlyMap<number, number | 'channel' | 'log'>;
};

/** A started row: its process, its end of the socket pair if one was asked for, and how it ends. */
export type Started = {
  readonly pid: number;
  readonly channel: Socket | undefined;
  readonly exited: Promise<Exit>;
  readonly end: (signal: NodeJS.Signals) => void;
};

/** Files that a row is made of, from the manifest. */
function filesOf(row: Confined, program: LaunchPlan['program']): string[] {
  const own = program === 'probe' ? 'probe.mjs' : `${row.row}.mjs`;
  const read = row.paths.flatMap(({ subject }) =>
    subject.of === 'installation' && subject.file !== 'own bundle' ? [subject.file] : [],
  );
  return ['launch.mjs', 'koffi.node', own, ...(program === 'probe' ? [] : read)];
}

function stdio(request: StartRequest, row: Confined): StdioOptions {
  const last = Math.max(...row.descriptors.map(({ number }) => number));
  return Array.from({ length: last + 1 }, (_, number) => {
    if (number === 0) return 'pipe';
    const given = request.descriptors.get(number);
    if (given === undefined) return 'ignore';
    if (given === 'channel') return 'pipe';
    return given === 'log' ? 2 : given;
  });
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    // a process that could not be made never exits; startRow throws for it, and a later error is that of a signal
    child.on('error', () => child.pid === undefined && resolve({ by: 'code', code: 1 }));
    child.once('exit', (code, signal) => {
      if (signal !== null) resolve({ by: 'signal', signal });
      else resolve({ by: 'code', code: code ?? 1 });
    });
  });
}

/**
 * Starts a row or its twin after checking the hashes of its files; throws InstallationError, or Error where the request does
 * not fit the declaration. A failure inside launch shows as an exit code of launch-steps.ts.
 */
export function startRow(request: StartRequest): Started {
  const { installation, descriptors, row: name, ...rest } = request;
  const row = TABLE[name];
  if (!row.confined) throw new Error(`${name} is not started through launch`);
  for (const { number, kind } of row.descriptors) {
    const isGiven = descriptors.has(number);
    if (isGiven === (kind === 'null')) throw new Error(`descriptor ${number} of ${name} is a ${kind}`);
  }
  verifyFiles(installation, filesOf(row, rest.program));
  const child = spawn(
    process.execPath,
    ['--no-warnings', '--v8-pool-size=0', path.join(installation.folder, 'launch.mjs')],
    {
      // THREAT: a variable of the starter (NODE_OPTIONS, LD_PRELOAD) would run code before launch does
      env: { UV_USE_IO_URING: '0', UV_THREADPOOL_SIZE: '1' },
      cwd: '/',
      // a session of its own: a terminal's interrupt reaches the supervisor alone, which ends rows in order
      detached: true,
      stdio: stdio(request, row),
    },
  );
  const exited = exitOf(child);
  if (child.pid === undefined || child.stdin === null) throw new Error(`${name} could not be started`);
  const plan: LaunchPlan = { ...rest, row: name, installation: installation.folder, parent: process.pid };
  // a launch that ended early is told by its exit
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(plan));
  const channel = row.descriptors.find(({ number }) => descriptors.get(number) === 'channel');
  const stream = channel === undefined ? undefined : child.stdio[channel.number];
  return {
    pid: child.pid,
    channel: stream instanceof Socket ? stream : undefined,
    exited,
    end: (signal) => void child.kill(signal),
  };
}
