/*
 * The stage folder: one 0700 folder at the top of the root, so that every new file is on the root's own mount before the
 * first name of the person changes. A file gets its name there only when it is whole.
 */
import { closeSync, constants } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import {
  AT_REMOVEDIR,
  O_TMPFILE,
  RESOLVE_STRICT,
  fchmod,
  fchown,
  fgetxattr,
  fsetxattr,
  fsync,
  futimens,
  linkDescriptor,
  mkdirat,
  openat2,
  statx,
  unlinkat,
} from '../runtime/native-files.ts';
import { keptAttributes } from '../files/belongings.ts';
import { digestDescriptor } from '../files/digest.ts';
import { setTime } from './folder-times.ts';
import { hasHoles, pieceWriter } from './holes.ts';
import type { Facts } from './journal-records.ts';
import type { Side } from './plan.ts';
import { share, SHARED_FROM_BYTES } from './share.ts';
import { isTrouble, Stopped } from './stop.ts';
import type { StopCode } from './stop.ts';
import { factsOf, openFolderAt, slotName } from './tree.ts';

const ITSELF = Buffer.alloc(0);

/** Makes the stage folder and returns it open. Throws NativeError. */
export function makeStage(root: number, name: string): number {
  mkdirat(root, Buffer.from(name), 0o700);
  const stage = openFolderAt(root, Buffer.from(name));
  try {
    // A umask can only have narrowed the mode; a folder without its owner's rights could not be used or removed.
    fchmod(stage, 0o700);
    return stage;
  } catch (error) {
    closeSync(stage);
    throw error;
  }
}

/** Removes the empty stage folder. Throws NativeError ENOTEMPTY. */
export function removeStage(root: number, name: string): void {
  unlinkat(root, Buffer.from(name), AT_REMOVEDIR);
}

/** The reason that ends a promotion whose new content is not the expected one. */
export type Mismatch = Extract<StopCode, 'PROMOTION_REVIEW_STALE' | 'PROMOTION_CONFLICT' | 'PROMOTION_JOURNAL_INVALID'>;

/** Where the content of a new file comes from: an open file, the code for content that is not the expected one, and the file it will replace with what of it is lost by approval. */
export interface Source {
  readonly descriptor: number;
  readonly mismatch: Mismatch;
  readonly replaces: number | undefined;
  readonly lost: readonly string[];
}

/** Where a new file goes: the open stage folder, its number there, what the file system can (capabilities.ts), and whether it is synced at once. */
export interface Target {
  readonly stage: number;
  readonly slot: number;
  readonly unnamed: boolean;
  /** Whether files of the stage folder's file system can share blocks. */
  readonly reflink: boolean;
  /** False where one syncfs of the whole stage follows. */
  readonly sync: boolean;
}

/** Copies approved content into the stage folder, hashing what is copied. Throws Stopped, NativeError. */
export function stageFile(target: Target, source: Source, side: Side, path: Buffer): Facts {
  const { stage, slot, sync, reflink } = target;
  const unnamed = target.unnamed ? openUnnamed(stage) : undefined;
  const descriptor = unnamed ?? openNamed(stage, slotName(slot));
  try {
    if (!(reflink && shareApproved(descriptor, source, side, path))) copyApproved(descriptor, source, side, path);
    const { replaces } = source;
    if (replaces !== undefined) keepBelongings({ ...source, replaces }, descriptor, path);
    fchmod(descriptor, side.mode);
    if (side.known !== undefined) setTime(descriptor, statx(descriptor, ITSELF), BigInt(side.known.mtimeNs));
    if (sync) fsync(descriptor);
    if (unnamed !== undefined) linkDescriptor(descriptor, stage, slotName(slot));
    return factsOf(statx(descriptor, ITSELF), side.sha256);
  } finally {
    closeSync(descriptor);
  }
}

/** A file without a name vanishes by itself when this process dies; undefined on a file system that has none. */
export function openUnnamed(stage: number): number | undefined {
  try {
    return openat2(stage, Buffer.from('.'), {
      flags: O_TMPFILE | constants.O_RDWR,
      mode: 0o600,
      resolve: RESOLVE_STRICT,
    });
  } catch (error) {
    if (error instanceof NativeError && ['EOPNOTSUPP', 'EISDIR', 'EINVAL'].includes(error.code)) return undefined;
    throw error;
  }
}

/** Makes a file in the stage folder that must not exist yet. Throws NativeError EEXIST. */
export function openNamed(stage: number, name: Buffer): number {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  return openat2(stage, name, { flags, mode: 0o600, resolve: RESOLVE_STRICT });
}

/** Whether the new file has the source's blocks now, after a look at what it got: the source may have changed at any time. */
function shareApproved(descriptor: number, source: Source, side: Side, path: Buffer): boolean {
  if (side.bytes < SHARED_FROM_BYTES || makesHoles(source) || !share(source.descriptor, descriptor)) return false;
  // One that was made longer may be longer than anybody wants to read.
  const isWhole = Number(statx(descriptor, ITSELF).size) === side.bytes;
  if (!isWhole || digestDescriptor(descriptor).sha256 !== side.sha256) throw new Stopped(source.mismatch, path);
  return true;
}

/** Whether pieces of zeros become holes: where the file that is replaced has some, and the new content, as it lies, has none to share. */
function makesHoles({ replaces, descriptor }: Source): boolean {
  if (replaces === undefined || !hasHoles(statx(replaces, ITSELF))) return false;
  return !hasHoles(statx(descriptor, ITSELF));
}

function copyApproved(descriptor: number, source: Source, side: Side, path: Buffer): void {
  const holes = source.replaces !== undefined && hasHoles(statx(source.replaces, ITSELF));
  const write = pieceWriter(descriptor, side.bytes, holes);
  const copied = digestDescriptor(source.descriptor, (chunk, offset) => {
    // A source that grows while it is read would otherwise be copied until the disk is full.
    if (offset + chunk.length > side.bytes) throw new Stopped(source.mismatch, path);
    write(chunk, offset);
  });
  if (copied.sha256 !== side.sha256 || copied.bytes !== side.bytes) throw new Stopped(source.mismatch, path);
}

/** Group, attributes and, where only the mode changes, times of the file that is replaced: kept, or listed as lost in what was approved, or the promotion is refused (S-172). */
function keepBelongings(source: Source & { readonly replaces: number }, descriptor: number, path: Buffer): void {
  const { replaces, lost } = source;
  const [old, fresh] = [statx(replaces, ITSELF), statx(descriptor, ITSELF)];
  try {
    if (old.gid !== fresh.gid && !lost.includes('group')) fchown(descriptor, -1, old.gid);
    for (const name of keptAttributes(replaces)) fsetxattr(descriptor, name, fgetxattr(replaces, name));
    if (source.descriptor === replaces) futimens(descriptor, old.atimeNs, old.mtimeNs);
  } catch (cause) {
    if (isTrouble(cause)) throw cause;
    throw new Stopped('PROMOTION_UNSAFE_PATH', path, { cause });
  }
}

/** Makes a new folder in the stage folder, with its final mode. Throws NativeError. */
export function stageFolder(stage: number, slot: number, mode: number, sync: boolean): Facts {
  mkdirat(stage, slotName(slot), 0o700);
  const descriptor = openFolderAt(stage, slotName(slot));
  try {
    fchmod(descriptor, mode);
    if (sync) fsync(descriptor);
    return factsOf(statx(descriptor, ITSELF), '');
  } finally {
    closeSync(descriptor);
  }
}
