/*
 * The process tree as the command line starts it: in the foreground for `daemon`, for the length of one command where none
 * runs.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { CliFailure, EXIT_CODES } from './failure.ts';
import { isDaemonUp } from './owner-client.ts';
import type { Places } from './places.ts';

const START_MS = 20_000;
const POLL_MS = 50;
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Folder of the bundles: beside this one, or `dist/` when run from source. Throws CliFailure where nothing was built. */
export function installationFolder(): string {
  const own = import.meta.dirname;
  const folder = fs.existsSync(path.join(own, 'supervisor.mjs')) ? own : path.resolve(own, '..', '..', 'dist');
  if (fs.existsSync(path.join(folder, 'supervisor.mjs'))) return folder;
  throw new CliFailure('configuration', 'the programs are not built; run `npm run build`');
}

/** Starts the supervisor of one state folder; its log goes to `log`, which may be an open descriptor. */
export function startSupervisor(
  { stateDir }: Pick<Places, 'stateDir'>,
  log: 'inherit' | 'ignore' | number,
  {
    folder = installationFolder(),
    allowLoopbackHttp = process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] ?? '',
  }: { readonly folder?: string; readonly allowLoopbackHttp?: string } = {},
): ChildProcess {
  // As few threads as Node can do with: this process waits.
  return spawn(process.execPath, ['--v8-pool-size=0', '--no-warnings', path.join(folder, 'supervisor.mjs'), stateDir], {
    // THREAT: a variable of the shell (NODE_OPTIONS, LD_PRELOAD) would run code in the process that starts all others.
    env: { UV_THREADPOOL_SIZE: '1', NESSIE_ALLOW_LOOPBACK_HTTP: allowLoopbackHttp },
    stdio: ['ignore', 'ignore', log],
  });
}

/** Exit code of a child, null where a signal ended it. */
export function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('exit', resolve);
    child.once('error', reject);
  });
}

/** Hands the signals of a terminal on to a child until it ends; resolves with its exit code, or 69 where a signal ended it. */
export async function followInForeground(child: ChildProcess): Promise<number> {
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, pass);
  const code = await exitOf(child);
  for (const signal of SIGNALS) process.off(signal, pass);
  return code ?? EXIT_CODES.ended.code;
}

/** Runs the tree in the foreground until it ends; the supervisor ends rows in order. Resolves with the exit code for the shell. */
export function superviseInForeground(places: Places): Promise<number> {
  return followInForeground(startSupervisor(places, 'inherit'));
}

/** Runs work with a daemon: the one that is up, or one that is started for it and ended orderly after it. */
export async function withDaemon<Value>(places: Places, work: (isOwn: boolean) => Promise<Value>): Promise<Value> {
  if (await isDaemonUp(places.stateDir)) return work(false);
  const child = startSupervisor(places, 'ignore');
  const ended = exitOf(child);
  try {
    await untilUp(places, ended);
    return await work(true);
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
}

async function untilUp(places: Places, ended: Promise<number | null>): Promise<void> {
  let code: number | null | undefined;
  void ended.then((exit) => (code = exit));
  const deadline = performance.now() + START_MS;
  while (!(await isDaemonUp(places.stateDir))) {
    if (code !== undefined) throw startFailure(code);
    if (performance.now() > deadline)
      throw new CliFailure('failed', 'the daemon did not come up in time; run `nessie-executor doctor`');
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function startFailure(code: number | null): CliFailure {
  if (code === EXIT_CODES.running.code)
    return new CliFailure('running', 'another executor serves this state folder; stop it first');
  if (code === EXIT_CODES.configuration.code) {
    return new CliFailure('configuration', 'the daemon refuses to start; `nessie-executor doctor` says why');
  }
  return new CliFailure('failed', 'the daemon ended while it started; `nessie-executor doctor` says why');
}
