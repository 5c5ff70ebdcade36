/*
 * What the file system of the root can do, found by doing it in the stage folder, where nothing of the person lies. Nothing is
 * concluded from its name.
 *
 *   exchange     needed where a file is replaced     without it: refused
 *   no-replace   needed by every step                without it: refused
 *   unnamed      O_TMPFILE and linkat                without it: staged under its number at once, as exclusive as before
 *   leases       fcntl(2), F_SETLEASE                without it: digests alone, and old files wait a day (go-forward.ts)
 *   reflink      FICLONE within the file system      without it: new content is written (share.ts)
 *
 * THREAT: a file system that takes the flags of renameat2 and does a plain rename would put a new file over one that a person
 * has just made. So each flag is believed only by what it did to names, never by the answer of the call.
 */
import { closeSync } from 'node:fs';
import type { Capabilities } from '../protocol/file-system.ts';
import { NativeError } from '../runtime/libc.ts';
import { RENAME, fsync, linkDescriptor, pwrite, renameat2, statx, unlinkat } from '../runtime/native-files.ts';
import { fileSystemName } from './disk.ts';
import { takeLease } from './lease.ts';
import { share } from './share.ts';
import { openNamed, openUnnamed } from './stage.ts';
import { Stopped } from './stop.ts';
import { statusAt } from './tree.ts';

const ITSELF = Buffer.alloc(0);
const ONE = Buffer.from('probe-one');
const TWO = Buffer.from('probe-two');
const FREE = Buffer.from('probe-free');
/** A block of any file system: no part of one is shared. */
const PIECE = Buffer.alloc(65_536, 1);
/** Answers of a kernel or file system that does not know a flag or a call. */
const UNKNOWN: ReadonlySet<string> = new Set(['EINVAL', 'ENOSYS', 'EOPNOTSUPP']);
/** Answers beside those of file systems that give no second name to a file without one. */
const NO_LINK: ReadonlySet<string> = new Set([...UNKNOWN, 'EPERM', 'EXDEV', 'EMLINK', 'ENOENT']);

/** Tries everything in an open stage folder and leaves nothing there, on the disk too. Throws NativeError where the disk refuses what every file system can. */
export function probe(stage: number): Capabilities {
  const unnamed = namesUnnamed(stage);
  const found = withPair(stage, (one, two) => {
    const noReplace = keepsNames(stage, one, two);
    // A file system that lost a name has said enough.
    const exchange = noReplace && exchanges(stage, one, two);
    const reflink = shares(one, two);
    return { noReplace, exchange, reflink, leases: takeLease(one) !== 'unsupported' };
  });
  fsync(stage);
  return { fileSystem: fileSystemName(stage), unnamed, ...found };
}

/** Two new files, open. */
function withPair<Found>(stage: number, work: (one: number, two: number) => Found): Found {
  const one = openNamed(stage, ONE);
  try {
    const two = openNamed(stage, TWO);
    try {
      const found = work(one, two);
      // Where anything was thrown they go with the stage folder, and what was thrown is what the caller hears.
      for (const name of [ONE, TWO, FREE]) if (statusAt(stage, name) !== undefined) unlinkat(stage, name, 0);
      return found;
    } finally {
      closeSync(two);
    }
  } finally {
    closeSync(one);
  }
}

/** Whether a name that is taken stays as it is and one that is free is given; both files are at their own names again then. */
function keepsNames(stage: number, one: number, two: number): boolean {
  const replaces = does(() => renameat2(stage, ONE, stage, TWO, RENAME.NOREPLACE), 'EEXIST');
  if (replaces || !isAt(stage, ONE, one) || !isAt(stage, TWO, two)) return false;
  const isMoved = does(() => renameat2(stage, ONE, stage, FREE, RENAME.NOREPLACE)) && isAt(stage, FREE, one);
  return isMoved && does(() => renameat2(stage, FREE, stage, ONE, RENAME.NOREPLACE)) && isAt(stage, ONE, one);
}

function exchanges(stage: number, one: number, two: number): boolean {
  const isDone = does(() => renameat2(stage, ONE, stage, TWO, RENAME.EXCHANGE));
  return isDone && isAt(stage, ONE, two) && isAt(stage, TWO, one);
}

/** Whether a file takes the blocks of another. An empty one is tried first, so that nothing is written where that is refused. */
function shares(one: number, two: number): boolean {
  if (!share(one, two)) return false;
  pwrite(one, PIECE, 0n);
  return share(one, two) && statx(two, ITSELF).size === BigInt(PIECE.length);
}

function namesUnnamed(stage: number): boolean {
  const descriptor = openUnnamed(stage);
  if (descriptor === undefined) return false;
  try {
    linkDescriptor(descriptor, stage, ONE);
    const isNamed = isAt(stage, ONE, descriptor);
    unlinkat(stage, ONE, 0);
    return isNamed;
  } catch (error) {
    if (error instanceof NativeError && NO_LINK.has(error.code)) return false;
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

function isAt(stage: number, name: Buffer, descriptor: number): boolean {
  return statusAt(stage, name)?.ino === statx(descriptor, ITSELF).ino;
}

/** Whether a call is known here; `also` is an answer that is no success either. */
function does(call: () => void, also?: string): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (error instanceof NativeError && (UNKNOWN.has(error.code) || error.code === also)) return false;
    throw error;
  }
}

/** Refuses a file system on which the steps of a plan could overwrite what nobody expected; `replaces` tells whether one of them replaces a file. Throws Stopped, naming it. */
export function checkCapable({ fileSystem, exchange, noReplace }: Capabilities, replaces: boolean): void {
  const where = `${fileSystem}, where the workspace root lies,`;
  if (!noReplace) throw unsupported(`${where} cannot rename a file without replacing another`);
  if (replaces && !exchange) throw unsupported(`${where} cannot exchange two files in one step`);
}

function unsupported(detail: string): Stopped {
  return new Stopped('PROMOTION_UNSUPPORTED', undefined, { detail });
}

/** What was found in one line, for the journal. */
export function described({ fileSystem, exchange, noReplace, unnamed, leases, reflink }: Capabilities): string {
  const found = { exchange, 'no-replace': noReplace, unnamed, leases, reflink };
  const list = Object.entries(found).map(([name, has]) => `${has ? '' : 'no '}${name}`);
  return `${fileSystem}: ${list.join(', ')}`;
}
