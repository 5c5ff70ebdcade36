/*
 * The real programs of a small world: one control plane and one executor, as children of this process, from the installation
 * beside it.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { startSupervisor } from '../cli/supervised.ts';

const START_MS = 20_000;
const STOP_MS = 15_000;

/** A child that could not be started, or ended by itself; the message carries the last lines of its log. */
export class ChildFailed extends Error {
  override readonly name = 'ChildFailed';
}

/** A running control plane. */
export interface RunningServer {
  readonly process: ChildProcess;
  readonly origin: string;
  /** One-time address that makes the owner; null once there is one. */
  readonly setup: string | null;
}

/** Starts the control plane on a loopback port; 0 lets the kernel choose. `dist` is the installation, `folder` its data. */
export async function startServer(dist: string, folder: string, port: number): Promise<RunningServer> {
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const origin = `http://127.0.0.1:${port}`;
  const config = path.join(folder, 'server.json');
  fs.writeFileSync(
    config,
    JSON.stringify({
      listen: { host: '127.0.0.1', port },
      publicOrigin: origin,
      dataFolder: path.join(folder, 'data'),
    }),
    { mode: 0o600 },
  );
  const child = spawn(process.execPath, [path.join(dist, 'server.mjs'), '--config', config], {
    stdio: ['ignore', 'pipe', logOf(folder, 'server')],
  });
  const ended = once(child, 'exit').then(() => {
    throw new ChildFailed(`the control plane ended before it listened:\n${lastLines(path.join(folder, 'server.log'))}`);
  });
  const line = await Promise.race([
    firstLine(child),
    ended,
    later(START_MS, 'the control plane did not listen in time'),
  ]);
  ended.catch(() => undefined);
  // The control plane's own first line, in the form that server/serve.ts states.
  const { listening, setup } = JSON.parse(line) as { listening: string; setup: string | null };
  return { process: child, origin: listening, setup };
}

/** Starts an executor's process tree on one state folder; plain http to a loopback origin is permitted for it. */
export function startExecutor(dist: string, stateDir: string, folder: string): ChildProcess {
  return startSupervisor({ stateDir }, logOf(folder, 'executor'), { folder: dist, allowLoopbackHttp: '1' });
}

/** Asks a child to end and waits for it; one that does not end in time is killed. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exit;
  clearTimeout(timer);
}

/** Resolves with the first truthy answer of `probe`; rejects with `what` after `withinMs`. */
export async function until<Value>(
  what: string,
  withinMs: number,
  probe: () => Promise<Value | undefined | false> | Value | undefined | false,
): Promise<Value> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadline) throw new ChildFailed(`${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The last lines of a log, for a failure that a person reads. */
export function lastLines(file: string, count = 12): string {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count).join('\n') : '';
}

function logOf(folder: string, name: string): number {
  return fs.openSync(path.join(folder, `${name}.log`), 'a', 0o600);
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new ChildFailed('the child has no output');
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) return line;
  throw new ChildFailed('the child said nothing');
}

function later(ms: number, what: string): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new ChildFailed(what)), ms).unref());
}

/** A loopback port that nobody uses now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() =>
        typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no free port')),
      );
    });
  });
}
