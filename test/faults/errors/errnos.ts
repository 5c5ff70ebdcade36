/*
 * What a disk or a kernel that is out of something may answer to each native call, by the manual page of the call. Answers that
 * say something about the tree (ENOENT, EEXIST, ELOOP, EXDEV, EACCES, ...) are none of these: they are true or the kernel lies.
 */
import type { SyscallName } from '../../../helpers/runtime/syscall-numbers.ts';

/** Name of an errno that tells of the disk or of a shortage. */
export type Trouble = 'EIO' | 'ENOSPC' | 'EDQUOT' | 'EROFS' | 'EMFILE' | 'ENOMEM' | 'EINTR' | 'EAGAIN';

const MAKING: readonly Trouble[] = ['EIO', 'ENOSPC', 'EDQUOT', 'EROFS', 'ENOMEM', 'EINTR'];
const CHANGING: readonly Trouble[] = ['EIO', 'EROFS', 'ENOMEM', 'EINTR'];
const READING: readonly Trouble[] = ['EIO', 'ENOMEM', 'EINTR'];
const SYNCING: readonly Trouble[] = ['EIO', 'ENOSPC', 'EDQUOT', 'EROFS', 'EINTR'];

const troubles: Partial<Readonly<Record<SyscallName, readonly Trouble[]>>> = {
  openat2: ['EIO', 'EMFILE', 'ENOMEM', 'EINTR', 'EAGAIN', 'ENOSPC', 'EDQUOT', 'EROFS'],
  mkdirat: MAKING,
  linkat: MAKING,
  renameat2: MAKING,
  fsetxattr: MAKING,
  pwrite64: ['EIO', 'ENOSPC', 'EDQUOT', 'EINTR'],
  fchown: ['EIO', 'EDQUOT', 'EROFS', 'ENOMEM', 'EINTR'],
  unlinkat: CHANGING,
  fchmod: CHANGING,
  utimensat: CHANGING,
  fsync: SYNCING,
  fdatasync: SYNCING,
  syncfs: SYNCING,
  pread64: READING,
  statx: READING,
  getdents64: READING,
  readlinkat: READING,
  flistxattr: READING,
  fgetxattr: READING,
  fstatfs: READING,
  // F_SETLEASE; EAGAIN, that somebody writes to the file, is no trouble of the disk
  fcntl: ['ENOMEM', 'EINTR'],
  // FICLONE takes room, and asking for the flags of a file does not.
  ioctl: ['EIO', 'ENOMEM', 'ENOSPC', 'EDQUOT', 'EINTR'],
  copy_file_range: ['EIO', 'ENOSPC', 'EDQUOT', 'ENOMEM', 'EINTR'],
  ftruncate: ['EIO', 'ENOSPC', 'EROFS', 'EINTR'],
  flock: ['ENOMEM', 'EINTR'],
};

/** What this call may answer, the likeliest first. */
export function troublesOf(name: SyscallName): readonly Trouble[] {
  const known = troubles[name];
  if (known === undefined) throw new Error(`nobody has said how ${name} fails`);
  return known;
}
