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
import type { Turn } from '../files/digest.ts';
import { setTime } from './folder-times.ts';
import type { Facts } from './journal-records.ts';
import type { Side } from './plan.ts';
import { fillApproved } from './stage-content.ts';
import type { Source } from './stage-content.ts';
import { isTrouble, Stopped } from './stop.ts';
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

/** Where a new file goes: the open stage folder, its number there, what the file system can (capabilities.ts), whether it is synced at once, and how others are let in meanwhile. */
export interface Target {
  readonly stage: number;
  readonly slot: number;
  readonly unnamed: boolean;
  /** Whether files of the stage folder's file system can share blocks. */
  readonly reflink: boolean;
  readonly turn: Turn;
  /** False where one syncfs of the whole stage follows. */
  readonly sync: boolean;
}

/** Copies approved content into the stage folder, hashing what is copied. Rejects with Stopped, NativeError. */
export async function stageFile(target: Target, source: Source, side: Side, path: Buffer): Promise<Facts> {
  const { stage, slot, sync } = target;
  const unnamed = target.unnamed ? openUnnamed(stage) : undefined;
  const descriptor = unnamed ?? openNamed(stage, slotName(slot));
  try {
    await fillApproved({ ...target, descriptor, source, side, path });
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
