import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { MUTATING_CALLS } from '../../helpers/runtime/mutating-calls.ts';

/** The n-th call of one name since strace was attached, counted from 1. */
export interface Call {
  readonly name: string;
  readonly nth: number;
}

/** A strace that is attached to a process. */
export interface Tracer {
  /** Calls that it saw, in order; none before it is detached. */
  readonly calls: () => Call[];
  readonly detach: () => Promise<void>;
}

/** Whether strace can be used here. */
export function hasStrace(): boolean {
  return spawnSync('strace', ['-V']).status === 0;
}

/** Attaches strace to every thread of a process; `inject` are expressions of its -e inject option, `also` calls that it traces beside the mutating ones. */
export async function attach(
  pid: number,
  inject: readonly string[] = [],
  also: readonly string[] = [],
): Promise<Tracer> {
  const injects = inject.flatMap((expression) => ['-e', `inject=${expression}`]);
  const log = await watch(pid, ['-e', `trace=${[...MUTATING_CALLS, ...also].join(',')}`, ...injects]);
  let calls: Call[] = [];
  return {
    calls: () => calls,
    detach: async () => {
      calls = callsOf(await log.end());
    },
  };
}

/** Attaches strace with options of the caller; `end` detaches it and gives what it wrote. */
export async function watch(pid: number, options: readonly string[]): Promise<{ readonly end: () => Promise<string> }> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'strace-'));
  const log = path.join(folder, 'log');
  const child = spawn('strace', ['-f', '-p', String(pid), '-o', log, ...options]);
  const ended = new Promise<void>((resolve) => void child.once('exit', () => resolve()));
  const death = setInterval(() => {
    // strace 6.1 sometimes waits for ever for threads of a process that is dead, and its parent is then never told
    if (isDead(pid)) child.kill('SIGKILL');
  }, 100);
  void ended.then(() => clearInterval(death));
  await new Promise<void>((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += String(chunk);
      if (/attached/.test(said)) resolve();
      if (/Operation not permitted|No such process|invalid/i.test(said)) reject(new Error(said));
    });
    child.once('exit', () => reject(new Error(`strace ended: ${said}`)));
  });
  return {
    end: async () => {
      child.kill('SIGTERM');
      await ended;
      const written = fs.readFileSync(log, 'utf8');
      fs.rmSync(folder, { recursive: true });
      return written;
    },
  };
}

function isDead(pid: number): boolean {
  try {
    return /\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    // reaped already
    return true;
  }
}

function callsOf(log: string): Call[] {
  const counts = new Map<string, number>();
  const calls: Call[] = [];
  for (const line of log.split('\n')) {
    const name = /^\d+\s+([a-z0-9_]+)\(/.exec(line)?.[1];
    if (name === undefined) continue;
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    if (name !== 'openat2' || /O_CREAT|O_TMPFILE|O_TRUNC/.test(line)) calls.push({ name, nth });
  }
  return calls;
}
