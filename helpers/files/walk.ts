/*
 * The only way from a path of a caller to an open file: parse to names, then one openat2 below an open root that follows no
 * link of any kind and leaves no mount.
 *
 * THREAT: an agent, or a program that races it, swaps a folder for a link between check and open to read or replace files
 * outside the root. Nothing is checked by path first; the kernel walks each component below the descriptor
 * (RESOLVE_BENEATH, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV). test/helpers/files/walk.test.ts races both ways.
 */
import { closeSync, constants, fstatSync } from 'node:fs';

import { fromPathText, PathTextError, toPathText } from '../protocol/path-text.ts';
import { NativeError } from '../runtime/libc.ts';
import { O_NOATIME, O_PATH, openat2, RESOLVE_STRICT, statx, type FileStatus } from '../runtime/native-files.ts';
import { ENTRY, readEntries } from '../runtime/native-folders.ts';

/** Names from the root down, as bytes; none means the root itself. */
export type PathNames = readonly Buffer[];

/** Why a path text names nothing that a workspace may open. */
export type PathReason =
  | 'empty'
  | 'absolute'
  | 'parent'
  | 'dot-part'
  | 'empty-part'
  | 'nul'
  | 'backslash'
  | 'drive'
  | 'device'
  | 'spelling'
  | 'name-too-long';

const pathSentences: Readonly<Record<PathReason, string>> = {
  empty: 'the path is empty; the root is "."',
  absolute: 'the path is absolute; give it relative to the workspace root',
  parent: 'the path has a ".." part; name the file from the workspace root down',
  'dot-part': 'the path has a "." part; leave it out',
  'empty-part': 'the path has an empty part; remove the extra "/"',
  nul: 'the path has a NUL character',
  backslash: 'the path has a backslash; separate names by "/", and write a backslash inside a name as two',
  drive: 'the path begins with a drive; give it relative to the workspace root',
  device: 'the path names a share or a device; give it relative to the workspace root',
  spelling: 'the path is not in the spelling that listings use',
  'name-too-long': 'a name in the path is longer than 255 bytes',
};

/** A path text that is refused before anything is opened; `message` says what to do and repeats nothing of the path. */
export class PathRefused extends Error {
  override readonly name = 'PathRefused';
  readonly reason: PathReason;

  constructor(reason: PathReason, options?: ErrorOptions) {
    super(pathSentences[reason], options);
    this.reason = reason;
  }
}

/** Longest name that Linux file systems take, in bytes. */
export const NAME_LIMIT_BYTES = 255;
const SLASH = 0x2f;

/** Reads path text (helpers/protocol/path-text.ts) into names below the root. Throws PathRefused. */
export function parsePath(text: string): PathNames {
  if (text === '.') return [];
  const form = foreignForm(text);
  if (form) throw new PathRefused(form);
  return splitPath(bytesOf(text));
}

function foreignForm(text: string): PathReason | undefined {
  if (text === '') return 'empty';
  if (text.includes('\0')) return 'nul';
  if (text.startsWith('/')) return text.startsWith('//') ? 'device' : 'absolute';
  return /^[A-Za-z]:(?:$|[\\/])/.test(text) ? 'drive' : undefined;
}

function bytesOf(text: string): Buffer {
  try {
    return fromPathText(text);
  } catch (cause) {
    if (!(cause instanceof PathTextError)) throw cause;
    // a share is written \\server\share and a device \\.\name: neither is the spelling of any name
    if (text.startsWith('\\\\')) throw new PathRefused('device', { cause });
    throw new PathRefused(text.includes('\\') ? 'backslash' : 'spelling', { cause });
  }
}

/** Cuts a path of bytes into names. Throws PathRefused for anything that is not names joined by single slashes. */
export function splitPath(path: Buffer): PathNames {
  if (path.length === 0) throw new PathRefused('empty');
  if (path[0] === SLASH) throw new PathRefused('absolute');
  if (path.includes(0)) throw new PathRefused('nul');
  const names: Buffer[] = [];
  for (let start = 0; start <= path.length;) {
    const slash = path.indexOf(SLASH, start);
    const end = slash === -1 ? path.length : slash;
    names.push(checkedName(path.subarray(start, end)));
    start = end + 1;
  }
  return names;
}

function checkedName(name: Buffer): Buffer {
  if (name.length === 0) throw new PathRefused('empty-part');
  if (name.length > NAME_LIMIT_BYTES) throw new PathRefused('name-too-long');
  if (name.equals(DOT)) throw new PathRefused('dot-part');
  if (name.equals(DOT_DOT)) throw new PathRefused('parent');
  return name;
}

const DOT = Buffer.from('.');
const DOT_DOT = Buffer.from('..');
const NONE = Buffer.alloc(0);

/** Joins names with slashes, as bytes; the root is `.`. */
export function joinNames(names: PathNames): Buffer {
  if (names.length === 0) return DOT;
  return Buffer.concat(names.flatMap((name, index) => (index === 0 ? [name] : [Buffer.from('/'), name])));
}

/** Path text of names; the root is `.`. */
export function pathTextOf(names: PathNames): string {
  return toPathText(joinNames(names));
}

/** Why the kernel's walk ended before the file was open. */
export type WalkReason = 'missing' | 'link' | 'mount' | 'not-a-folder' | 'not-a-file' | 'denied' | 'changing';

const walkSentences: Readonly<Record<WalkReason, string>> = {
  missing: 'there is nothing at this path',
  link: 'a part of the path is a symbolic link; links are shown and never followed',
  mount: 'a part of the path lies on another file system, which is outside the workspace',
  'not-a-folder': 'a part of the path is not a folder',
  'not-a-file': 'the path is not an ordinary file',
  denied: 'the owner’s permissions do not let this be read',
  changing: 'the path is being changed by another program; try again',
};

/** A walk that ended early; `message` holds no path. */
export class WalkRefused extends Error {
  override readonly name = 'WalkRefused';
  readonly reason: WalkReason;

  constructor(reason: WalkReason, options?: ErrorOptions) {
    super(walkSentences[reason], options);
    this.reason = reason;
  }
}

const walkReasons: Readonly<Record<string, WalkReason>> = {
  ENOENT: 'missing',
  ELOOP: 'link',
  EXDEV: 'mount',
  ENOTDIR: 'not-a-folder',
  EACCES: 'denied',
  EPERM: 'denied',
  EAGAIN: 'changing',
};

/** Opens names below a root with flags of open(2). Throws WalkRefused, or NativeError for what a caller cannot mend. */
export function openBelow(root: number, names: PathNames, flags: number): number {
  try {
    return openat2(root, joinNames(names), { flags, resolve: RESOLVE_STRICT });
  } catch (cause) {
    throw asWalkRefused(cause);
  }
}

function asWalkRefused(cause: unknown): unknown {
  const reason = cause instanceof NativeError ? walkReasons[cause.code] : undefined;
  return reason ? new WalkRefused(reason, { cause }) : cause;
}

/** Opens names below a root for reading and leaves the time of the last access as it is, where the kernel lets this uid. */
function openUnnoticed(root: number, names: PathNames, flags: number): number {
  try {
    return openat2(root, joinNames(names), { flags: flags | O_NOATIME, resolve: RESOLVE_STRICT });
  } catch (cause) {
    // open(2): EPERM for a file of another uid
    if (cause instanceof NativeError && cause.code === 'EPERM') return openBelow(root, names, flags);
    throw asWalkRefused(cause);
  }
}

/** Opens a folder below a root for reading its entries. Throws WalkRefused. */
export function openFolder(root: number, names: PathNames): number {
  return openUnnoticed(root, names, constants.O_RDONLY | constants.O_DIRECTORY);
}

/** What a directory entry is to a caller. */
export type EntryKind = 'file' | 'directory' | 'link' | 'other';

/** Kind of a mode with type bits (inode(7)). */
export function kindOf(mode: number): EntryKind {
  const type = mode & constants.S_IFMT;
  if (type === constants.S_IFREG) return 'file';
  if (type === constants.S_IFDIR) return 'directory';
  return type === constants.S_IFLNK ? 'link' : 'other';
}

/** An open ordinary file and its status when it was opened; the receiver closes the descriptor. */
export interface OpenFile {
  readonly descriptor: number;
  readonly status: FileStatus;
}

/** Status of what is at names below a root, a link in the last place included, without opening it. Throws WalkRefused. */
export function statusBelow(root: number, names: PathNames): FileStatus {
  const descriptor = openBelow(root, names.slice(0, -1), O_PATH | constants.O_DIRECTORY);
  try {
    const name = names.at(-1) ?? NONE;
    const status = statx(descriptor, name);
    // a folder that another file system is mounted on shows that file system's own root here
    if (status.mountId !== statx(descriptor, NONE).mountId) throw new WalkRefused('mount');
    return status;
  } catch (cause) {
    throw asWalkRefused(cause);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Opens an ordinary file below a root for reading; pipes and devices are refused before they are opened, since opening
 * one acts on it. Throws WalkRefused.
 */
export function openFile(root: number, names: PathNames): OpenFile {
  const handle = openBelow(root, names, O_PATH);
  let descriptor: number | undefined;
  try {
    const seen = statx(handle, NONE);
    if (kindOf(seen.mode) === 'link') throw new WalkRefused('link');
    if (kindOf(seen.mode) !== 'file') throw new WalkRefused('not-a-file');
    descriptor = openUnnoticed(root, names, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const status = statx(descriptor, NONE);
    if (status.ino !== seen.ino || status.dev !== seen.dev) throw new WalkRefused('changing');
    const opened = { descriptor, status };
    descriptor = undefined;
    return opened;
  } finally {
    closeSync(handle);
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/**
 * Opens for reading what a listing has just called an ordinary file, in one walk. Throws WalkRefused; a pipe that was put in
 * its place meanwhile is opened without waiting and let go again.
 */
export function openListed(root: number, names: PathNames): number {
  const descriptor = openUnnoticed(root, names, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new WalkRefused('not-a-file');
}

/** One name in a folder, as bytes. */
export interface NamedEntry {
  readonly name: Buffer;
  readonly kind: EntryKind;
}

const entryKinds: Readonly<Record<number, EntryKind>> = {
  [ENTRY.FILE]: 'file',
  [ENTRY.FOLDER]: 'directory',
  [ENTRY.LINK]: 'link',
};

/** Entries of an open folder in the order of the file system; the folder's own reading position is left alone. */
export function* entriesIn(folder: number): Generator<NamedEntry> {
  const listing = openFolder(folder, []);
  try {
    for (let entries = readEntries(listing); entries.length > 0; entries = readEntries(listing)) {
      for (const { name, type } of entries) {
        if (type !== ENTRY.UNKNOWN) yield { name, kind: entryKinds[type] ?? 'other' };
        else yield { name, kind: kindOf(statx(listing, name).mode) };
      }
    }
  } finally {
    closeSync(listing);
  }
}
