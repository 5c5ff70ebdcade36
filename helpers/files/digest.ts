/* Whole open files: hashed in pieces of fixed size, so that memory does not follow the size of the file, or read. */
import { createHash } from 'node:crypto';

import { pread } from '../runtime/native-files.ts';

/** Bytes read at a time. */
export const DIGEST_CHUNK_BYTES = 262_144;

/** What was read: `sha256` as 64 hexadecimal digits over exactly `bytes` bytes. */
export interface FileDigest {
  readonly sha256: string;
  readonly bytes: number;
}

/**
 * Hashes an open file from its beginning to its end, without moving its offset. `onChunk` sees each piece before the next
 * is read, for a copy or for a caller that ends the work by throwing; the piece's memory is used again afterwards. Throws
 * NativeError.
 */
export function digestDescriptor(descriptor: number, onChunk?: (chunk: Buffer, offset: number) => void): FileDigest {
  const hash = createHash('sha256');
  const bytes = readFrom(descriptor, 0, (chunk, offset) => {
    hash.update(chunk);
    onChunk?.(chunk, offset);
  });
  return { sha256: hash.digest('hex'), bytes };
}

/** Lets whatever waits in, where that is due, and undefined where it is not; rejects to end the work. */
export type Turn = () => Promise<void> | undefined;

/** As digestDescriptor, with a turn for others after each piece: a large file keeps nobody waiting. Rejects with NativeError, and with what `turn` rejects. */
export async function digestInTurns(
  descriptor: number,
  turn: Turn,
  onChunk?: (chunk: Buffer, offset: number) => void,
): Promise<FileDigest> {
  const hash = createHash('sha256');
  const memory = Buffer.allocUnsafe(DIGEST_CHUNK_BYTES);
  for (let offset = 0; ;) {
    const count = pread(descriptor, memory, offset);
    if (count === 0) return { sha256: hash.digest('hex'), bytes: offset };
    const chunk = memory.subarray(0, count);
    hash.update(chunk);
    onChunk?.(chunk, offset);
    offset += count;
    const others = turn();
    if (others !== undefined) await others;
  }
}

/** Reads an open file from an offset to its end, in pieces whose memory is used again; returns where the end was. Throws NativeError. */
export function readFrom(descriptor: number, offset: number, onChunk: (chunk: Buffer, offset: number) => void): number {
  const memory = Buffer.allocUnsafe(DIGEST_CHUNK_BYTES);
  for (let at = offset; ;) {
    const count = pread(descriptor, memory, at);
    if (count === 0) return at;
    onChunk(memory.subarray(0, count), at);
    at += count;
  }
}

/** SHA-256 of bytes in memory, 64 hexadecimal digits. */
export function digestBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Reads an open file of known size from its beginning; shorter when the file became shorter. Throws NativeError. */
export function readWhole(descriptor: number, bytes: number): Buffer {
  const memory = Buffer.allocUnsafe(bytes);
  let done = 0;
  while (done < bytes) {
    const count = pread(descriptor, memory.subarray(done), done);
    if (count === 0) break;
    done += count;
  }
  return memory.subarray(0, done);
}
