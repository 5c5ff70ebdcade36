/*
 * What the kernel was asked by a process that changes files, as strace saw it: not by the list that libc.ts numbers, but by every
 * call of Linux that can change a file system or bring it to the disk.
 */
import { watch } from '../../fakes/killer.ts';
import { describeLine } from './description.ts';

const OPENING = ['open', 'openat', 'openat2', 'creat'];
const WRITING = ['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'sendfile', 'splice', 'vmsplice', 'tee'];
const ALWAYS = [
  'mkdir mkdirat mknod mknodat rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat rmdir',
  'truncate ftruncate fallocate copy_file_range msync chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat',
  'utime utimes futimesat utimensat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr',
  'fsync fdatasync syncfs sync sync_file_range io_submit io_uring_enter mount umount2 swapon quotactl open_by_handle_at',
].flatMap((names) => names.split(' '));

/** Whether a traced call can have changed a file or brought one to the disk. */
function changes(name: string, line: string): boolean {
  if (OPENING.includes(name)) return name === 'creat' || /O_CREAT|O_TMPFILE|O_TRUNC/.test(line);
  // Pipes, sockets and events have no path.
  if (WRITING.includes(name)) return /\d+<\/(?!dev\/null)/.test(line);
  if (name === 'ioctl') return /FICLONE|FIDEDUPE|FS_IOC_SET|FS_IOC_FSSET/.test(line);
  if (name === 'mmap') return /PROT_WRITE/.test(line) && /MAP_SHARED/.test(line) && /<\//.test(line);
  return true;
}

/** Watches a process; the function that comes back ends it and gives the words (description.ts) of each call that changed or synced something, in order. */
export async function watchChanges(pid: number): Promise<() => Promise<string[]>> {
  // The question mark lets strace pass over what this architecture does not have.
  const names = [...OPENING, ...WRITING, ...ALWAYS, 'ioctl', 'mmap'].map((name) => `?${name}`);
  const log = await watch(pid, ['-y', '-e', `trace=${names.join(',')}`]);
  return async () => {
    const lines = (await log.end()).split('\n');
    return lines.flatMap((line) => {
      const described = describeLine(line);
      return described !== undefined && changes(described.name, line) ? [described.words] : [];
    });
  };
}
