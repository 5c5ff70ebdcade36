/*
 * The files of promote's own folder (descriptor 6). Nobody else writes there; still every file is checked before it is
 * believed, because a folder restored from a copy or touched by its owner's tools is no longer what promote left.
 */
import { constants, closeSync } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import {
  RENAME,
  RESOLVE_STRICT,
  fsync,
  mkdirat,
  openat2,
  pread,
  pwrite,
  renameat2,
  statx,
  unlinkat,
} from '../runtime/native-files.ts';

const EMPTY = Buffer.alloc(0);
const KIND = 0o170000;
const REGULAR = 0o100000;
const DIRECTORY = 0o040000;

/** A file of a trusted folder that is not what its writer leaves: a link, a FIFO, a second name, another owner, a wider mode. */
export class UntrustedFile extends Error {
  override readonly name = 'UntrustedFile';
}

/** What a trusted file must not be: mode bits that it may not have, and the uids that may own it. */
export interface Trust {
  readonly forbiddenMode: number;
  readonly owners: readonly number[];
}

/** The uid that this process acts as. */
export function ownUid(): number {
  // The call is missing on Windows alone, where no promotion is offered.
  return process.geteuid?.() ?? -1;
}

/** Trust in a file that promote wrote itself: 0600, its own uid. */
export function ownTrust(): Trust {
  return { forbiddenMode: 0o077, owners: [ownUid()] };
}

/** Opens a file of a trusted folder for reading, or undefined where there is none. Throws UntrustedFile, NativeError. */
export function openTrusted(folder: number, name: string, trust: Trust): number | undefined {
  return openChecked(folder, name, constants.O_RDONLY, trust);
}

function openChecked(folder: number, name: string, access: number, trust: Trust): number | undefined {
  let descriptor: number;
  try {
    // O_NONBLOCK: a FIFO in its place must not hold the open.
    const flags = access | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    descriptor = openat2(folder, Buffer.from(name), { flags, resolve: RESOLVE_STRICT });
  } catch (error) {
    if (error instanceof NativeError && error.code === 'ENOENT') return undefined;
    if (error instanceof NativeError && ['ELOOP', 'EXDEV', 'EISDIR', 'ENXIO'].includes(error.code)) {
      throw new UntrustedFile(`${name} is not a plain file`, { cause: error });
    }
    throw error;
  }
  try {
    const fault = faultOf(statx(descriptor, EMPTY), trust);
    if (fault === undefined) return descriptor;
    throw new UntrustedFile(`${name} ${fault}`);
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function faultOf(status: { mode: number; nlink: number; uid: number }, trust: Trust): string | undefined {
  if ((status.mode & KIND) !== REGULAR) return 'is not a plain file';
  if (status.nlink !== 1) return 'has a second name';
  if (!trust.owners.includes(status.uid)) return 'belongs to another user';
  return (status.mode & trust.forbiddenMode) === 0 ? undefined : 'is open to other users';
}

/** Whole content of a trusted file, or undefined where there is none. Throws UntrustedFile above `limitBytes`. */
export function readTrusted(folder: number, name: string, limitBytes: number, trust: Trust): Buffer | undefined {
  const descriptor = openTrusted(folder, name, trust);
  if (descriptor === undefined) return undefined;
  try {
    const size = Number(statx(descriptor, EMPTY).size);
    if (size > limitBytes) throw new UntrustedFile(`${name} has ${size} bytes, allowed are ${limitBytes}`);
    const content = Buffer.alloc(size);
    for (let done = 0; done < size;) {
      const count = pread(descriptor, content.subarray(done), done);
      if (count === 0) throw new UntrustedFile(`${name} became shorter while it was read`);
      done += count;
    }
    return content;
  } finally {
    closeSync(descriptor);
  }
}

/** Makes a file that must not exist yet, 0600, and returns its descriptor, open for reading and writing. Throws NativeError EEXIST. */
export function createOwn(folder: number, name: string): number {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  return openat2(folder, Buffer.from(name), { flags, mode: 0o600, resolve: RESOLVE_STRICT });
}

/** Opens a file of our own for reading and writing, or undefined where there is none. Throws UntrustedFile. */
export function openOwn(folder: number, name: string): number | undefined {
  return openChecked(folder, name, constants.O_RDWR, ownTrust());
}

/** Name of the new content of a file while it is written: always the same, so that a cut leaves one and the next write finds it. */
function unfinished(name: string): string {
  return `${name}.next`;
}

/** Removes what a cut `replaceOwn` of this name left. Throws NativeError. */
export function dropUnfinished(folder: number, name: string): void {
  if (hasOwn(folder, unfinished(name))) unlinkat(folder, Buffer.from(unfinished(name)), 0);
}

/** Puts whole new content in place of a file: complete old or complete new after any crash, on the disk when it returns. */
export function replaceOwn(folder: number, name: string, content: Buffer): void {
  const temporary = unfinished(name);
  dropUnfinished(folder, name);
  const descriptor = createOwn(folder, temporary);
  try {
    pwrite(descriptor, content, 0n);
    fsync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  if (hasOwn(folder, name)) {
    renameat2(folder, Buffer.from(temporary), folder, Buffer.from(name), RENAME.EXCHANGE);
    unlinkat(folder, Buffer.from(temporary), 0);
  } else {
    renameat2(folder, Buffer.from(temporary), folder, Buffer.from(name), RENAME.NOREPLACE);
  }
  fsync(folder);
}

/** Whether the name exists, as whatever. */
export function hasOwn(folder: number, name: string): boolean {
  try {
    statx(folder, Buffer.from(name));
    return true;
  } catch (error) {
    if (error instanceof NativeError && error.code === 'ENOENT') return false;
    throw error;
  }
}

/** Opens a folder of our own, made where it is missing, 0700. Throws UntrustedFile for one that others may enter or that is a link. */
export function ownSubfolder(folder: number, name: string): number {
  const bytes = Buffer.from(name);
  if (!hasOwn(folder, name)) {
    mkdirat(folder, bytes, 0o700);
    fsync(folder);
  }
  const status = statx(folder, bytes);
  if ((status.mode & KIND) !== DIRECTORY || status.uid !== ownUid() || (status.mode & 0o077) !== 0) {
    throw new UntrustedFile(`${name} is not a folder that only its owner may enter`);
  }
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  return openat2(folder, bytes, { flags, resolve: RESOLVE_STRICT });
}
