/*
 * Rows about rest: memory and processor time of the executor's processes while nothing happens, and how fast `status` answers.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { treeOf } from './world.ts';
import type { World } from './world.ts';

/** Clock ticks a second of /proc/PID/stat on Linux. */
const TICKS_PER_SECOND = 100;

/** Sum of the proportional set sizes of all processes of the executor, in MiB. */
export function restPss(world: World): number {
  const kib = treeOf(world).map((pid) =>
    Number(/^Pss:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? Number.NaN),
  );
  return kib.reduce((sum, one) => sum + one, 0) / 1024;
}

/** After a start the engine still compiles and collects; rest begins when that is over. */
export const settled = (): Promise<void> => wait(20_000);

/** Share of one core that all processes of the executor use at rest, in percent, over `seconds`. */
export async function restCpu(world: World, seconds: number): Promise<number> {
  const before = ticks(world);
  await wait(seconds * 1000);
  return ((ticks(world) - before) / TICKS_PER_SECOND / seconds) * 100;
}

/** ms from the start of `nessie-executor status` to its end, cold, median of `count`. */
export function statusCold(world: World, count: number): number[] {
  const command = [path.join(world.dist, 'cli.mjs'), '--in', path.join(world.folder, 'executor'), 'status'];
  return Array.from({ length: count }, () => {
    const started = performance.now();
    execFileSync(process.execPath, command, { stdio: 'ignore' });
    return performance.now() - started;
  });
}

function ticks(world: World): number {
  const all = treeOf(world).map((pid) => {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  });
  return all.reduce((sum, one) => sum + one, 0);
}
