/*
 * The processes of a world as the kernel shows them: found by parent and program, frozen, let go on, killed.
 */
import fs from 'node:fs';

/** Children of a process with the program that each runs, newest first. */
export function childrenOf(parent: number): { pid: number; command: string }[] {
  const found = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const seen = readProcess(name);
      return seen?.parent === parent ? [{ pid: Number(name), command: seen.command }] : [];
    });
  return found.toSorted((one, other) => other.pid - one.pid);
}

/** Pid of the child of `parent` that runs the bundle of this row; undefined when none does. */
export function rowBelow(parent: number, row: string): number | undefined {
  return childrenOf(parent).find(({ command }) => command.includes(`/${row}.mjs`))?.pid;
}

/** Sends a signal; false when the process is gone. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    // Gone is an answer; anything else is not expected of a process of ours.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** Whether every thread of a process stands still, as SIGSTOP leaves it. */
export function isFrozen(pid: number): boolean {
  return stateOf(pid) === 'T';
}

/** Whether a process is gone or waits only for its parent to hear of its end. */
export function isDead(pid: number): boolean {
  return ['Z', 'X', undefined].includes(stateOf(pid));
}

function stateOf(pid: number): string | undefined {
  try {
    return /\) (\S) /.exec(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1];
  } catch {
    // It ended.
    return undefined;
  }
}

function readProcess(pid: string): { parent: number; command: string } | undefined {
  try {
    const parent = Number(/^PPid:\s+(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
    return { parent, command: fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ') };
  } catch {
    // It ended while the list was read.
    return undefined;
  }
}
