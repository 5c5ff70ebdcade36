/*
 * The content of one new file in the stage folder: shared with where it comes from, or copied, and hashed on the way. What was not
 * approved ends the promotion here; what stands in the stage folder is hashed once more before it gets its path (place.ts).
 */
import { digestInTurns } from '../files/digest.ts';
import type { Turn } from '../files/digest.ts';
import { statx } from '../runtime/native-files.ts';
import { hasHoles, pieceWriter } from './holes.ts';
import type { Side } from './plan.ts';
import { share, SHARED_FROM_BYTES } from './share.ts';
import { Stopped } from './stop.ts';
import type { StopCode } from './stop.ts';

const ITSELF = Buffer.alloc(0);

/** The reason that ends a promotion whose new content is not the expected one. */
export type Mismatch = Extract<StopCode, 'PROMOTION_REVIEW_STALE' | 'PROMOTION_CONFLICT' | 'PROMOTION_JOURNAL_INVALID'>;

/** Where the content of a new file comes from: an open file, the code for content that is not the expected one, and the file it will replace with what of it is lost by approval. */
export interface Source {
  readonly descriptor: number;
  readonly mismatch: Mismatch;
  readonly replaces: number | undefined;
  readonly lost: readonly string[];
}

/** An open, empty file of the stage folder, and what it is to hold. */
interface Filling {
  readonly descriptor: number;
  readonly source: Source;
  readonly side: Side;
  readonly path: Buffer;
  readonly reflink: boolean;
  readonly turn: Turn;
}

/** Gives a file its approved content. Rejects with Stopped, NativeError. */
export async function fillApproved(filling: Filling): Promise<void> {
  if (!(await isShared(filling))) await copy(filling);
}

/** Whether the new file has the source's blocks now, after a look at what it got: the source may have changed at any time. */
async function isShared({ descriptor, source, side, path, reflink, turn }: Filling): Promise<boolean> {
  const isWorthIt = reflink && side.bytes >= SHARED_FROM_BYTES && !makesHoles(source);
  if (!isWorthIt || !share(source.descriptor, descriptor)) return false;
  // One that was made longer may be longer than anybody wants to read.
  const isWhole = Number(statx(descriptor, ITSELF).size) === side.bytes;
  if (!isWhole || (await digestInTurns(descriptor, turn)).sha256 !== side.sha256)
    throw new Stopped(source.mismatch, path);
  return true;
}

/** Whether pieces of zeros become holes: where the file that is replaced has some, and the new content, as it lies, has none to share. */
function makesHoles({ replaces, descriptor }: Source): boolean {
  if (replaces === undefined || !hasHoles(statx(replaces, ITSELF))) return false;
  return !hasHoles(statx(descriptor, ITSELF));
}

async function copy({ descriptor, source, side, path, turn }: Filling): Promise<void> {
  const holes = source.replaces !== undefined && hasHoles(statx(source.replaces, ITSELF));
  const write = pieceWriter(descriptor, side.bytes, holes);
  const copied = await digestInTurns(source.descriptor, turn, (chunk, offset) => {
    // A source that grows while it is read would otherwise be copied until the disk is full.
    if (offset + chunk.length > side.bytes) throw new Stopped(source.mismatch, path);
    write(chunk, offset);
  });
  if (copied.sha256 !== side.sha256 || copied.bytes !== side.bytes) throw new Stopped(source.mismatch, path);
}
