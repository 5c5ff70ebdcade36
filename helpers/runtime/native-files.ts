import { constants } from 'node:fs';
import { constants as system } from 'node:os';

import { NativeError, syscall, terminated } from './libc.ts';
import { FICLONE } from './mutating-calls.ts';

/** `resolve` bits of openat2(2). */
export const RESOLVE = { NO_XDEV: 1, NO_MAGICLINKS: 2, NO_SYMLINKS: 4, BENEATH: 8, IN_ROOT: 16, CACHED: 32 } as const;
/** The walk of every path below a root: beneath it, no link of any kind, no other mount. */
export const RESOLVE_STRICT = RESOLVE.BENEATH | RESOLVE.NO_SYMLINKS | RESOLVE.NO_MAGICLINKS | RESOLVE.NO_XDEV;
/** Open flags that `node:fs` does not name (asm-generic/fcntl.h). */
export const O_PATH = 0o10000000;
/** Close-on-exec; set by openat2 callers unless the descriptor is to be inherited. */
export const O_CLOEXEC = 0o2000000;
/** Unnamed file in a directory, includes O_DIRECTORY. */
export const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;
/** Directory argument that stands for the working directory; the path is then taken as given. */
export const AT_FDCWD = -100;
/** Flag of statx and others: the name is empty, act on the descriptor itself. */
export const AT_EMPTY_PATH = 0x1000;
/** Flag of statx: do not follow a link in the last component. */
export const AT_SYMLINK_NOFOLLOW = 0x100;
/** Flag of unlinkat: remove a directory. */
export const AT_REMOVEDIR = 0x200;

const AT_SYMLINK_FOLLOW = 0x400;

/** How to open: `flags` as open(2) (O_CLOEXEC is added), `mode` for created files, `resolve` bits of openat2. */
export type OpenHow = { readonly flags: number; readonly mode?: number; readonly resolve: number };

/** Opens a name below a directory descriptor and returns the new descriptor; throws NativeError (ELOOP link, EXDEV outside or other mount). */
export function openat2(directory: number, name: Buffer, how: OpenHow): number {
  const bytes = Buffer.alloc(24);
  bytes.writeBigUInt64LE(BigInt(how.flags | O_CLOEXEC), 0);
  bytes.writeBigUInt64LE(BigInt(how.mode ?? 0), 8);
  bytes.writeBigUInt64LE(BigInt(how.resolve), 16);
  for (let attempt = 0; ; attempt += 1) {
    try {
      return syscall('openat2', directory, terminated('openat2', name), bytes, bytes.length);
    } catch (error) {
      // openat2(2): EAGAIN means that a rename raced the walk and the kernel could not decide; trying again is the documented answer
      if (attempt < 32 && error instanceof NativeError && error.code === 'EAGAIN') continue;
      throw error;
    }
  }
}

/** Open flag: reading does not change the access time; refused (EPERM) for files of another uid. */
export const O_NOATIME = 0o1000000;
/** Bits of `attributes` that forbid changes (linux/stat.h). */
export const ATTRIBUTE = { IMMUTABLE: 0x10n, APPEND: 0x20n } as const;

/**
 * What statx(2) tells; times in ns since the Unix epoch (`birthNs` 0 where the file system keeps none), `dev` as
 * major * 2^32 + minor, `mode` with the type bits, `allocatedBytes` what the file takes on the disk, `attributes` as the STATX_ATTR bits.
 */
export type FileStatus = {
  readonly mode: number;
  readonly nlink: number;
  readonly uid: number;
  readonly gid: number;
  readonly ino: bigint;
  readonly size: bigint;
  readonly allocatedBytes: bigint;
  readonly dev: bigint;
  readonly mountId: bigint;
  readonly atimeNs: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly birthNs: bigint;
  readonly attributes: bigint;
};

const STATX_BASIC = 0x7ff;
const STATX_BTIME = 0x800;
const STATX_MNT_ID = 0x1000;

/** Status of a name below a directory without following a link; an empty name means the descriptor itself. Throws NativeError. */
export function statx(directory: number, name: Buffer): FileStatus {
  const out = Buffer.alloc(256);
  const flags = AT_SYMLINK_NOFOLLOW | (name.length === 0 ? AT_EMPTY_PATH : 0);
  syscall('statx', directory, terminated('statx', name), flags, STATX_BASIC | STATX_BTIME | STATX_MNT_ID, out);
  const time = (offset: number): bigint =>
    out.readBigInt64LE(offset) * 1_000_000_000n + BigInt(out.readUInt32LE(offset + 8));
  return {
    mode: out.readUInt16LE(28),
    nlink: out.readUInt32LE(16),
    uid: out.readUInt32LE(20),
    gid: out.readUInt32LE(24),
    ino: out.readBigUInt64LE(32),
    size: out.readBigUInt64LE(40),
    allocatedBytes: out.readBigUInt64LE(48) * 512n,
    dev: (BigInt(out.readUInt32LE(136)) << 32n) | BigInt(out.readUInt32LE(140)),
    mountId: out.readBigUInt64LE(144),
    atimeNs: time(64),
    mtimeNs: time(112),
    ctimeNs: time(96),
    birthNs: (out.readUInt32LE(0) & STATX_BTIME) === 0 ? 0n : time(80),
    attributes: out.readBigUInt64LE(8),
  };
}

/** Makes a directory below a directory descriptor; throws NativeError (EEXIST). */
export function mkdirat(directory: number, name: Buffer, mode: number): void {
  syscall('mkdirat', directory, terminated('mkdirat', name), mode);
}

/** Removes a name; with AT_REMOVEDIR an empty directory. Throws NativeError. */
export function unlinkat(directory: number, name: Buffer, flags: 0 | typeof AT_REMOVEDIR): void {
  syscall('unlinkat', directory, terminated('unlinkat', name), flags);
}

/** `flags` of renameat2(2). */
export const RENAME = { NOREPLACE: 1, EXCHANGE: 2 } as const;

/** Renames without replacing, or exchanges two names atomically; throws NativeError (EEXIST, ENOENT). */
export function renameat2(from: number, fromName: Buffer, to: number, toName: Buffer, flags: 1 | 2): void {
  syscall('renameat2', from, terminated('renameat2', fromName), to, terminated('renameat2', toName), flags);
}

/**
 * Gives an open file (O_TMPFILE) its name, never replacing one; throws NativeError (EEXIST).
 * Follows open(2) on O_TMPFILE: the way through `/proc/self/fd` needs no capability on any kernel.
 */
export function linkDescriptor(descriptor: number, directory: number, name: Buffer): void {
  const source = Buffer.from(`/proc/self/fd/${descriptor}\0`);
  syscall('linkat', AT_FDCWD, source, directory, terminated('linkat', name), AT_SYMLINK_FOLLOW);
}

/** Sets the permission bits of an open file. */
export function fchmod(descriptor: number, mode: number): void {
  syscall('fchmod', descriptor, mode);
}

/** Sets owner and group of an open file; -1 leaves one as it is. */
export function fchown(descriptor: number, uid: number, gid: number): void {
  syscall('fchown', descriptor, uid, gid);
}

/** Sets access and modification time of an open file, in ns since the Unix epoch. */
export function futimens(descriptor: number, atimeNs: bigint, mtimeNs: bigint): void {
  const times = Buffer.alloc(32);
  const second = 1_000_000_000n;
  times.writeBigInt64LE(atimeNs / second, 0);
  times.writeBigInt64LE(atimeNs % second, 8);
  times.writeBigInt64LE(mtimeNs / second, 16);
  times.writeBigInt64LE(mtimeNs % second, 24);
  syscall('utimensat', descriptor, null, times, 0);
}

/** Reads from an offset of an open file into memory and returns how many bytes came, 0 at the end of the file alone; throws NativeError. */
export function pread(descriptor: number, memory: Buffer, offset: number): number {
  return syscall('pread64', descriptor, memory, memory.length, offset);
}

/** Writes all bytes at an offset of an open file; throws NativeError (ENOSPC, EFBIG, EIO where nothing is taken) with an unknown part written. */
export function pwrite(descriptor: number, bytes: Buffer, offset: bigint): void {
  for (let done = 0; done < bytes.length;) {
    const rest = bytes.subarray(done);
    const count = syscall('pwrite64', descriptor, rest, rest.length, offset + BigInt(done));
    // a regular file never takes zero bytes without an error; asking again would loop for ever
    if (count === 0) throw new NativeError('pwrite64', system.errno.EIO);
    done += count;
  }
}

/** Brings a file or directory to the disk; an error is final (security.md M-20), the caller must not try again. */
export function fsync(descriptor: number): void {
  syscall('fsync', descriptor);
}

/** Brings a file's data and length to the disk; an error is final (security.md M-20). */
export function fdatasync(descriptor: number): void {
  syscall('fdatasync', descriptor);
}

/** Brings the whole file system of a descriptor to the disk; an error is final (security.md M-20). */
export function syncfs(descriptor: number): void {
  syscall('syncfs', descriptor);
}

/** Copies up to `length` bytes between open files at the given offsets and returns how many; the kernel may share blocks. Throws NativeError (EXDEV, EINVAL: copy by hand). */
export function copyFileRange(from: number, fromOffset: bigint, to: number, toOffset: bigint, length: number): number {
  const offsets = Buffer.alloc(16);
  offsets.writeBigInt64LE(fromOffset, 0);
  offsets.writeBigInt64LE(toOffset, 8);
  return syscall('copy_file_range', from, offsets.subarray(0, 8), to, offsets.subarray(8, 16), length, 0);
}

/** Lets an open file share all blocks of another one in place of its own content (FICLONE, ioctl_ficlonerange(2)). Throws NativeError (EOPNOTSUPP, EXDEV, EINVAL: copy by hand). */
export function cloneFile(from: number, to: number): void {
  syscall('ioctl', to, FICLONE, from);
}

/** Sets the length of an open file. Throws NativeError. */
export function ftruncate(descriptor: number, bytes: bigint): void {
  syscall('ftruncate', descriptor, bytes);
}

/** Names of the extended attributes of an open file, as bytes; throws NativeError (EOPNOTSUPP). */
export function flistxattr(descriptor: number): Buffer[] {
  const bytes = Buffer.alloc(65_536);
  const length = syscall('flistxattr', descriptor, bytes, bytes.length);
  const names: Buffer[] = [];
  for (let start = 0; start < length;) {
    const end = bytes.indexOf(0, start);
    names.push(Buffer.from(bytes.subarray(start, end)));
    start = end + 1;
  }
  return names;
}

/** Value of one extended attribute, at most 64 KiB; throws NativeError (ENODATA). */
export function fgetxattr(descriptor: number, name: Buffer): Buffer {
  const bytes = Buffer.alloc(65_536);
  const length = syscall('fgetxattr', descriptor, terminated('fgetxattr', name), bytes, bytes.length);
  return Buffer.from(bytes.subarray(0, length));
}

/** Sets one extended attribute of an open file; throws NativeError (EPERM, EOPNOTSUPP, ENOSPC). */
export function fsetxattr(descriptor: number, name: Buffer, value: Buffer): void {
  syscall('fsetxattr', descriptor, terminated('fsetxattr', name), value, value.length, 0);
}

/** Flags that some file systems keep for a file, such as `chattr` shows (FS_IOC_GETFLAGS, linux/fs.h); 0 where there are none. Throws NativeError. */
export function fileFlags(descriptor: number): number {
  const flags = Buffer.alloc(8);
  try {
    syscall('ioctl', descriptor, FS_IOC_GETFLAGS, flags);
  } catch (error) {
    if (error instanceof NativeError && NO_FLAGS.has(error.code)) return 0;
    throw error;
  }
  return flags.readUInt32LE(0);
}

const FS_IOC_GETFLAGS = 0x8008_6601;
const NO_FLAGS: ReadonlySet<string> = new Set(['ENOTTY', 'EOPNOTSUPP', 'EINVAL', 'ENOSYS']);
