/*
 * The person's tree as a promotion sees it: the root, the stage folder in it, and one place in it at a time. Every place is
 * walked again from the root's descriptor for every use.
 */
import { closeSync, constants } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import { O_PATH, RESOLVE_STRICT, openat2, statx } from '../runtime/native-files.ts';
import type { FileStatus } from '../runtime/native-files.ts';
import { entriesIn, kindOf, openBelow, openFolder, splitPath } from '../files/walk.ts';
import type { PathNames } from '../files/walk.ts';
import type { Facts } from './journal-records.ts';
import { isTrouble } from './stop.ts';

const ITSELF = Buffer.alloc(0);

/** Root and stage folder, open; `leases` tells whether the root's file system gives leases. */
export interface Tree {
  readonly root: number;
  readonly stage: number;
  readonly leases: boolean;
}

/** One name in one open folder of the person. */
export interface Place {
  readonly names: PathNames;
  readonly folder: number;
  readonly name: Buffer;
}

/** Prefix of the name of every stage folder; no operation shows it. */
export const STAGE_PREFIX = '.nessie-stage-';

/** Opens the folder of a path below the root, gives its place to `work`, and closes it. Throws WalkRefused, PathRefused. */
export function atPlace<Result>(root: number, path: Uint8Array, work: (place: Place) => Result): Result {
  const names = splitPath(Buffer.from(path));
  const folder = openFolder(root, names.slice(0, -1));
  try {
    return work({ names, folder, name: names.at(-1) ?? ITSELF });
  } finally {
    closeSync(folder);
  }
}

/** As atPlace, for work that lets others in between. Rejects with WalkRefused, PathRefused. */
export async function whileAtPlace<Result>(
  root: number,
  path: Uint8Array,
  work: (place: Place) => Promise<Result>,
): Promise<Result> {
  const names = splitPath(Buffer.from(path));
  const folder = openFolder(root, names.slice(0, -1));
  try {
    return await work({ names, folder, name: names.at(-1) ?? ITSELF });
  } finally {
    closeSync(folder);
  }
}

/**
 * Whether the folder that was opened still lies at its path. Throws NativeError where the disk does not let it be known.
 * THREAT: somebody moves it out of the root between open and rename, and the rename follows it outside. The rename is then
 * undone through the same descriptor.
 */
export function isStillAt(root: number, place: Place): boolean {
  try {
    const folder = openBelow(root, place.names.slice(0, -1), O_PATH | constants.O_DIRECTORY);
    try {
      const [found, held] = [statx(folder, ITSELF), statx(place.folder, ITSELF)];
      return found.ino === held.ino && found.dev === held.dev && found.mountId === held.mountId;
    } finally {
      closeSync(folder);
    }
  } catch (error) {
    if (isTrouble(error)) throw error;
    // Whatever else keeps the path from being walked, the folder is not there to be found.
    return false;
  }
}

/** Status of a name in an open folder, links not followed, or undefined where there is none. */
export function statusAt(folder: number, name: Buffer): FileStatus | undefined {
  try {
    return statx(folder, name);
  } catch (error) {
    if (error instanceof NativeError && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Name of a step's file in the stage folder. */
export function slotName(slot: number): Buffer {
  return Buffer.from(String(slot));
}

/** Whether a status is that of the file that the facts describe, by inode and kind. */
export function isSame(status: FileStatus | undefined, facts: Facts | null): status is FileStatus {
  return (
    status !== undefined &&
    facts !== null &&
    status.ino.toString() === facts.ino &&
    kindOf(status.mode) === (facts.sha256 === '' ? 'directory' : 'file')
  );
}

/** Facts of what a status describes. */
export function factsOf(status: FileStatus, sha256: string): Facts {
  return {
    ino: status.ino.toString(),
    mode: status.mode & 0o7777,
    size: Number(status.size),
    mtimeNs: status.mtimeNs.toString(),
    sha256,
  };
}

/** Opens an ordinary file of a folder for reading without waiting for anybody. Throws NativeError. */
export function openAt(folder: number, name: Buffer): number {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
  return openat2(folder, name, { flags, resolve: RESOLVE_STRICT });
}

/** Opens a folder of a folder. Throws NativeError. */
export function openFolderAt(folder: number, name: Buffer): number {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  return openat2(folder, name, { flags, resolve: RESOLVE_STRICT });
}

/** Names in an open folder, as bytes, in the order of the file system. */
export function namesIn(folder: number): Buffer[] {
  return Array.from(entriesIn(folder), ({ name }) => name);
}

/** Whether a folder of a folder has no entry at all, hidden ones included. Throws NativeError for anything but a folder. */
export function isEmptyFolder(parent: number, name: Buffer): boolean {
  const folder = openFolderAt(parent, name);
  try {
    return namesIn(folder).length === 0;
  } finally {
    closeSync(folder);
  }
}
