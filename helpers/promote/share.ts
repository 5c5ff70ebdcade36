/*
 * Copies that share blocks with their original (reflink): a large file costs neither its room nor the time to write it. The kernel
 * takes the original as it stands in that moment, so nothing is concluded about what was copied: the caller hashes the copy.
 *
 * A small file is written faster than it is shared. Measured on Btrfs and XFS, sharing with the hash of the copy and the sync
 * against reading, hashing, writing and the sync: 1.5 and 1.0 times the time at 4 and 64 KiB, 0.6 and 0.8 at 256 KiB, 0.4 and 0.6
 * at 1 MiB. Where blocks cannot be shared the kernel can still copy by itself (copy_file_range): for a copy that nobody hashes it
 * takes 0.7 to 0.8 of the time on ext4; for one that is hashed it saves nothing, since the hash needs the bytes here.
 */
import { NativeError } from '../runtime/libc.ts';
import { cloneFile, copyFileRange, ftruncate, statx } from '../runtime/native-files.ts';

/** From this size on a copy is made by the kernel, in bytes. */
export const SHARED_FROM_BYTES = 262_144;
/** What the kernel copies in one call, in bytes. */
const RANGE_BYTES = 16_777_216;
const ITSELF = Buffer.alloc(0);

/**
 * What says that these two files cannot share, or that the kernel does not copy between them: another file system, none that has
 * it, one that has it not for these two. Anything else is a disk that fails or is full.
 */
const NOT_BETWEEN: ReadonlySet<string> = new Set([
  'EOPNOTSUPP',
  'ENOTTY',
  'ENOSYS',
  'EXDEV',
  'EINVAL',
  'EPERM',
  'ETXTBSY',
]);

/** Lets the open, empty file `to` share all blocks of `from`, holes included. False where that cannot be; `to` is empty then. Throws NativeError where the disk refuses. */
export function share(from: number, to: number): boolean {
  if (isDone(() => cloneFile(from, to))) return true;
  // What a file system took before it refused is no part of the copy that follows.
  if (statx(to, ITSELF).size !== 0n) ftruncate(to, 0n);
  return false;
}

/** Lets the kernel copy up to `bytes` bytes of `from` to the same places of `to`, and returns how many it did: the rest is the caller's. Throws NativeError where the disk refuses. */
export function copyRange(from: number, to: number, bytes: number): number {
  let done = 0;
  while (done < bytes) {
    let count = 0;
    const isKnown = isDone(() => {
      count = copyFileRange(from, BigInt(done), to, BigInt(done), Math.min(RANGE_BYTES, bytes - done));
    });
    // None before the end: the file became shorter, or a file system answers so for a copy that it does not make.
    if (!isKnown || count === 0) break;
    done += count;
  }
  return done;
}

function isDone(call: () => void): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (error instanceof NativeError && NOT_BETWEEN.has(error.code)) return false;
    throw error;
  }
}
