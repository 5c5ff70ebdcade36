/*
 * Everything that can be known before the first change: each path walked from the root's descriptor, each file that will go
 * away compared with what was reviewed, each new name free, room for all of it. What fails here has changed nothing.
 */
import { closeSync } from 'node:fs';
import { ATTRIBUTE, statx } from '../runtime/native-files.ts';
import type { FileStatus } from '../runtime/native-files.ts';
import { fstatfs } from '../runtime/native-folders.ts';
import { lossesOf } from '../files/belongings.ts';
import { digestInTurns } from '../files/digest.ts';
import type { Turn } from '../files/digest.ts';
import { kindOf } from '../files/walk.ts';
import { fileSystemName } from './disk.ts';
import type { Facts } from './journal-records.ts';
import { ownUid } from './own-folder.ts';
import { folderOf } from './folder-times.ts';
import type { Planned, Side } from './plan.ts';
import { Stopped, stopFor } from './stop.ts';
import { atPlace, factsOf, isSame, namesIn, openAt, openFolderAt, statusAt, whileAtPlace } from './tree.ts';
import type { Place } from './tree.ts';

const ITSELF = Buffer.alloc(0);
const OWNER_WRITES = 0o200;
const OWNER_WRITES_AND_SEARCHES = 0o300;
/** Space and inodes that a promotion leaves free. */
const RESERVE_BYTES = 16_777_216n;
const RESERVE_INODES = 64n;

/** What a plan changes, for questions about neighbours; keys are path bytes as latin1. */
export interface Shape {
  readonly made: ReadonlySet<string>;
  readonly gone: ReadonlySet<string>;
}

const keyOf = (path: Buffer): string => path.toString('latin1');

/** Folders that a plan makes and paths that it takes away. */
export function shapeOf(plan: readonly Planned[]): Shape {
  const made = plan.filter(({ change, type }) => change === 'created' && type === 'directory');
  const gone = plan.filter(({ change }) => change === 'deleted');
  return { made: new Set(made.map(({ path }) => keyOf(path))), gone: new Set(gone.map(({ path }) => keyOf(path))) };
}

/** How closely a file is looked at; `by time` believes that one whose time is as it was left is as it was left. */
type Look = 'whole' | 'by time';

/** How a step is looked at. */
export interface How {
  readonly look: Look;
  readonly turn: Turn;
}

/** Checks one planned step, letting others in while a file is read, and returns the facts of the file that it takes away, or null. Rejects with Stopped. */
export async function preflight(root: number, planned: Planned, shape: Shape, how: How): Promise<Facts | null> {
  const { path, before } = planned;
  try {
    if (before === null) {
      checkFree(root, path, shape);
      return null;
    }
    return await whileAtPlace(root, path, async (place) => {
      checkFolder(place, path);
      return planned.type === 'directory'
        ? checkOldFolder(place, path, before, shape)
        : checkOldFile(root, place, { ...planned, before }, how);
    });
  } catch (error) {
    throw stopFor(error, path);
  }
}

/** The folder that a name moves in or out of: the owner's, writable, not frozen by an attribute. */
function checkFolder({ folder }: Place, path: Buffer): void {
  const status = statx(folder, ITSELF);
  const writable = (status.mode & OWNER_WRITES_AND_SEARCHES) === OWNER_WRITES_AND_SEARCHES;
  if (status.uid !== ownUid() || !writable || isFrozen(status)) throw new Stopped('PROMOTION_UNSAFE_PATH', path);
}

function isFrozen({ attributes }: FileStatus): boolean {
  return (attributes & (ATTRIBUTE.IMMUTABLE | ATTRIBUTE.APPEND)) !== 0n;
}

function checkFree(root: number, path: Buffer, { made, gone }: Shape): void {
  if (made.has(keyOf(folderOf(path)))) return;
  atPlace(root, path, (place) => {
    checkFolder(place, path);
    const isFree = statusAt(place.folder, place.name) === undefined || gone.has(keyOf(path));
    if (!isFree) throw new Stopped('PROMOTION_CONFLICT', path);
  });
}

/** Rules for whatever is taken away: the owner's own, one name, on the root's mount, not frozen; and as it was reviewed. */
function checkOld({ folder, name }: Place, path: Buffer, before: Side, kind: 'file' | 'directory'): FileStatus {
  const status = statusAt(folder, name);
  if (status === undefined) throw new Stopped('PROMOTION_CONFLICT', path);
  const isSafe =
    kindOf(status.mode) === kind &&
    status.mountId === statx(folder, ITSELF).mountId &&
    status.uid === ownUid() &&
    !isFrozen(status) &&
    (kind === 'directory' || status.nlink === 1);
  if (!isSafe) throw new Stopped('PROMOTION_UNSAFE_PATH', path);
  if ((status.mode & 0o7777) !== before.mode) throw new Stopped('PROMOTION_CONFLICT', path);
  if (before.known?.inos.includes(status.ino.toString()) === false) throw new Stopped('PROMOTION_CONFLICT', path);
  // Write protection by the person holds; that of a promotion goes back with it.
  if (before.known === undefined && (status.mode & OWNER_WRITES) === 0)
    throw new Stopped('PROMOTION_UNSAFE_PATH', path);
  return status;
}

async function checkOldFile(
  root: number,
  place: Place,
  planned: Planned & { before: Side },
  { look, turn }: How,
): Promise<Facts> {
  const { path, change, before } = planned;
  const status = checkOld(place, path, before, 'file');
  if (Number(status.size) !== before.bytes) throw new Stopped('PROMOTION_CONFLICT', path);
  const descriptor = openAt(place.folder, place.name);
  try {
    const facts = factsOf(status, before.sha256);
    if (!isSame(statx(descriptor, ITSELF), facts)) throw new Stopped('PROMOTION_CONFLICT', path);
    const isAsLeft = look === 'by time' && before.known?.mtimeNs === facts.mtimeNs;
    if (!isAsLeft && (await digestInTurns(descriptor, turn)).sha256 !== before.sha256)
      throw new Stopped('PROMOTION_CONFLICT', path);
    // What the person did not see going is not taken: an attribute that came after the review is a change of the file too.
    const unseen = change === 'modified' && lossesOf(descriptor, root).some((loss) => !before.lost.includes(loss));
    if (unseen) throw new Stopped('PROMOTION_CONFLICT', path);
    return facts;
  } finally {
    closeSync(descriptor);
  }
}

/** A folder that goes away must hold nothing but what goes away with it: hidden and ignored files are the person's too. */
function checkOldFolder(place: Place, path: Buffer, before: Side, { gone }: Shape): Facts {
  const status = checkOld(place, path, before, 'directory');
  const descriptor = openFolderAt(place.folder, place.name);
  try {
    for (const name of namesIn(descriptor)) {
      const child = Buffer.concat([path, Buffer.from('/'), name]);
      if (!gone.has(keyOf(child))) throw new Stopped('PROMOTION_CONFLICT', child);
    }
    return factsOf(status, '');
  } finally {
    closeSync(descriptor);
  }
}

/** Whether the file system takes all new files at once beside all old ones. Throws Stopped, with what is missing. */
export function checkRoom(root: number, plan: readonly Planned[]): void {
  const added = plan.filter(({ after }) => after !== null);
  const bytes = added.reduce((sum, { after }) => sum + BigInt(after?.bytes ?? 0), 0n) + RESERVE_BYTES;
  const inodes = BigInt(added.length) + RESERVE_INODES;
  const { availableBytes, totalInodes, freeInodes, readOnly } = fstatfs(root);
  const where = `${fileSystemName(root)}, where the workspace root lies,`;
  if (readOnly) throw new Stopped('PROMOTION_UNSUPPORTED', undefined, { detail: `${where} is mounted read-only` });
  const short = (missing: string): Stopped =>
    new Stopped('PROMOTION_IO_FAILURE', undefined, { detail: `${where} has ${missing} are needed for a while` });
  if (availableBytes < bytes) throw short(`${availableBytes} bytes free, and ${bytes}`);
  if (totalInodes > 0n && freeInodes < inodes) throw short(`${freeInodes} inodes free, and ${inodes}`);
}
