/*
 * Copies of files that may have holes. A file with holes that is copied byte by byte takes its whole size on the disk; here a
 * piece of zeros of such a file becomes a hole again, so that a copy takes about what its original took.
 */
import { pwrite } from '../runtime/native-files.ts';
import type { FileStatus } from '../runtime/native-files.ts';
import { DIGEST_CHUNK_BYTES } from '../files/digest.ts';

const ZEROS = Buffer.alloc(DIGEST_CHUNK_BYTES);

/** Whether a file takes less on the disk than its size. */
export function hasHoles({ allocatedBytes, size }: FileStatus): boolean {
  return allocatedBytes < size;
}

/** Writes pieces of a file of `bytes` bytes to their places; where `holes` may be, pieces of zeros are passed over, but for the last, which gives the file its length. */
export function pieceWriter(
  descriptor: number,
  bytes: number,
  holes: boolean,
): (piece: Buffer, offset: number) => void {
  return (piece, offset) => {
    const isLast = offset + piece.length >= bytes;
    if (holes && !isLast && piece.equals(ZEROS.subarray(0, piece.length))) return;
    pwrite(descriptor, piece, BigInt(offset));
  };
}
