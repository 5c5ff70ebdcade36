/*
 * The calls at which a crash can leave something behind: those that change a file system or bring it to the disk. libc.ts numbers
 * them, test/faults/crash kills at each of them, and strace is told the same list. What no native-*.ts makes is not in it; a
 * strace of a whole promotion shows that none is missing (test/helpers/promote/numbering.test.ts).
 */
import { constants } from 'node:fs';

import type { SyscallName } from './syscall-numbers.ts';

/** Names of the calls that change something or bring it to the disk; of openat2 only those that make a file count. FICLONE counts too. */
export const MUTATING_CALLS = [
  'openat2',
  'mkdirat',
  'unlinkat',
  'renameat2',
  'linkat',
  'fchmod',
  'fchown',
  'utimensat',
  'pwrite64',
  'ftruncate',
  'fsetxattr',
  'copy_file_range',
  'fsync',
  'fdatasync',
  'syncfs',
] as const satisfies readonly SyscallName[];

/** The request of ioctl(2) that gives a file the blocks of another (linux/fs.h); no other one that is made changes anything. */
export const FICLONE = 0x4004_9409;

const names: ReadonlySet<SyscallName> = new Set<SyscallName>(MUTATING_CALLS);
/** The bit of O_TMPFILE that is not O_DIRECTORY. */
const UNNAMED = 0o20000000;
const MAKING = BigInt(constants.O_CREAT | constants.O_TRUNC | UNNAMED);

/** Whether a call changes something or brings it to the disk; `args` are those of the call, `how` of openat2 the third. */
export function isMutating(name: SyscallName, args: readonly unknown[]): boolean {
  if (name === 'ioctl') return args[1] === FICLONE;
  if (!names.has(name)) return false;
  if (name !== 'openat2') return true;
  const how = args[2];
  return Buffer.isBuffer(how) && (how.readBigUInt64LE(0) & MAKING) !== 0n;
}
