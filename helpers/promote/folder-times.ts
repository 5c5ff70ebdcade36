/*
 * Renames change the time of the folders that they touch. A promotion that went back puts those times back, unless somebody
 * else has changed the folder since: a rename stamps the moved file and its folder together, so a folder that is newer than
 * every file that we moved in it was changed by somebody else.
 */
import { closeSync } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import { fsync, futimens, statx } from '../runtime/native-files.ts';
import type { FileStatus } from '../runtime/native-files.ts';
import { openFolder, splitPath, WalkRefused } from '../files/walk.ts';
import type { Begin, Folder, Step } from './journal-records.ts';
import { stopFor } from './stop.ts';
import { isSame, openFolderAt, slotName, statusAt } from './tree.ts';
import type { Tree } from './tree.ts';

const ITSELF = Buffer.alloc(0);
const SLASH = 0x2f;
/** How far the two stamps of one rename lie apart at most, in ns. */
const SAME_MOMENT_NS = 50_000_000n;

/** Path of the folder of a step, empty for the root. */
export function folderOf(path: Uint8Array): Buffer {
  const slash = Buffer.from(path).lastIndexOf(SLASH);
  return slash === -1 ? ITSELF : Buffer.from(path).subarray(0, slash);
}

/** Opens a folder of the person by its path, empty for the root. Throws WalkRefused. */
function openByPath(root: number, path: Uint8Array): number {
  return openFolder(root, path.length === 0 ? [] : splitPath(Buffer.from(path)));
}

/** Folders that stand before the promotion and that its steps touch, with their times, from the root down. Throws Stopped. */
export function touchedFolders(
  root: number,
  steps: readonly { readonly path: Uint8Array; readonly change: string; readonly type: string }[],
): Folder[] {
  const made = new Set<string>();
  for (const { path, change, type } of steps) {
    if (change === 'created' && type === 'directory') made.add(keyOf(path));
  }
  const paths = new Map<string, Buffer>([['', ITSELF]]);
  for (const { path } of steps) {
    const folder = folderOf(path);
    if (!made.has(keyOf(folder))) paths.set(keyOf(folder), folder);
  }
  return [...paths.values()].map((path) => {
    const { ino, mtimeNs } = statusByPath(root, path);
    return { kind: 'folder', path, ino: ino.toString(), mtimeNs: mtimeNs.toString() };
  });
}

function keyOf(path: Uint8Array): string {
  return Buffer.from(path).toString('latin1');
}

function statusByPath(root: number, path: Buffer): FileStatus {
  try {
    const descriptor = openByPath(root, path);
    try {
      return statx(descriptor, ITSELF);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw stopFor(error, path);
  }
}

/** Brings every touched folder to the disk, those that the promotion made included. Throws NativeError; a missing folder is passed over. */
export function syncFolders(root: number, steps: readonly Step[]): void {
  const paths = new Map<string, Buffer>();
  for (const { path } of steps) paths.set(keyOf(folderOf(path)), folderOf(path));
  for (const path of paths.values()) atFolder(root, path, fsync);
}

/** Brings folders that went into the stage folder to the disk, so that what was taken out of them is not in them again. Throws NativeError. */
export function syncTaken(stage: number, steps: readonly Step[]): void {
  for (const { change, type, slot } of steps) {
    if (change !== 'deleted' || type !== 'directory') continue;
    const descriptor = openFolderAt(stage, slotName(slot));
    try {
      fsync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  }
}

/** Puts the times of touched folders back where nobody else changed them, but for the root's. Called while the stage folder still stands. */
export function restoreTimes(tree: Tree, folders: readonly Folder[], newest: Newest): void {
  for (const folder of folders) {
    if (folder.path.length === 0) continue;
    atFolder(tree.root, folder.path, (descriptor) => {
      const status = statx(descriptor, ITSELF);
      if (status.ino.toString() !== folder.ino) return;
      if (isOurs(status.mtimeNs, folder, newest)) setTime(descriptor, status, BigInt(folder.mtimeNs));
    });
  }
}

/** Whether the root's time comes from our own steps and stage folder alone. */
export function isRootTimeOurs(tree: Tree, begin: Begin, newest: Newest, stageMtimeNs: string): boolean {
  const { mtimeNs } = statx(tree.root, ITSELF);
  return mtimeNs.toString() === stageMtimeNs || isOurs(mtimeNs, { path: ITSELF, mtimeNs: begin.rootMtimeNs }, newest);
}

/** Whether a change belongs to the operation that was under way at another time: not before it and soon after. */
export function isSoonAfter(changeNs: bigint, operationNs: bigint, withinNs: bigint = SAME_MOMENT_NS): boolean {
  return changeNs + SAME_MOMENT_NS >= operationNs && changeNs - operationNs <= withinNs;
}

/** Sets the modification time of an open folder; the time of the last access stays. */
export function setTime(descriptor: number, status: FileStatus, mtimeNs: bigint): void {
  futimens(descriptor, status.atimeNs, mtimeNs);
}

function isOurs(mtimeNs: bigint, folder: Pick<Folder, 'path' | 'mtimeNs'>, newest: Newest): boolean {
  if (mtimeNs.toString() === folder.mtimeNs) return true;
  const ours = newest.get(keyOf(folder.path));
  return ours !== undefined && mtimeNs <= ours + SAME_MOMENT_NS;
}

/** Latest status change, in ns since the Unix epoch, of any file that we moved, by the folder that it was moved in. */
export type Newest = ReadonlyMap<string, bigint>;

/** Called before any time is put back: that changes the status of a folder that was moved itself. */
export function newestByFolder(tree: Tree, steps: readonly Step[]): Newest {
  const newest = new Map<string, bigint>();
  for (const step of steps) {
    const folder = folderOf(step.path);
    const name = Buffer.from(step.path).subarray(folder.length === 0 ? 0 : folder.length + 1);
    const note = (status: FileStatus | undefined): void => {
      if (!isSame(status, step.before) && !isSame(status, step.after)) return;
      if (status.ctimeNs > (newest.get(keyOf(folder)) ?? 0n)) newest.set(keyOf(folder), status.ctimeNs);
    };
    note(statusAt(tree.stage, slotName(step.slot)));
    atFolder(tree.root, folder, (descriptor) => note(statusAt(descriptor, name)));
  }
  return newest;
}

/** Does something with a folder of the person; one that cannot be walked any more is somebody else's doing and passed over. */
function atFolder(root: number, path: Uint8Array, work: (descriptor: number) => void): void {
  let descriptor: number;
  try {
    descriptor = openByPath(root, path);
  } catch (error) {
    if (error instanceof WalkRefused || (error instanceof NativeError && error.code === 'ENOENT')) return;
    throw error;
  }
  try {
    work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
