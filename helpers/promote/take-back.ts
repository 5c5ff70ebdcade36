/*
 * One step backward, in the apply that stops as in the recovery that follows a crash. Which side a step is on is read from
 * the tree alone (INVARIANT 5), so the same step may be taken back again after any cut (INVARIANT 9).
 */
import { closeSync } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import { RENAME, renameat2, statx } from '../runtime/native-files.ts';
import { PathRefused, WalkRefused } from '../files/walk.ts';
import type { Facts, Step } from './journal-records.ts';
import { underLease } from './lease.ts';
import { atPlace, isEmptyFolder, isSame, isStillAt, openAt, slotName, statusAt } from './tree.ts';
import type { Place, Tree } from './tree.ts';

const ITSELF = Buffer.alloc(0);

/**
 * What became of a step: it is before now; or a third state was met and left alone (INVARIANT 8); or its place was not there to
 * be looked at, since somebody moved it, replaced it or changed it meanwhile.
 */
export type Back = 'before' | 'conflict' | 'away';

/** What stood around a step when the promotion began: `twin` at the path of a new folder or file that took the place of the other kind, `folderIno` of the folder, where it is known. */
export interface Around {
  readonly twin: Facts | null;
  readonly folderIno: string | undefined;
}

/** Refusals of the kernel that mean that the person's tree is not what the promotion left. */
const ELSEWISE: ReadonlySet<string> = new Set([
  'ENOENT',
  'EEXIST',
  'ELOOP',
  'EXDEV',
  'ENOTDIR',
  'EISDIR',
  'ENOTEMPTY',
  'ENXIO',
  'EACCES',
  'EPERM',
]);

/** Takes one step back. Throws NativeError when the disk refuses: then nothing may be done any more. */
export function takeBack(tree: Tree, step: Step, around: Around): Back {
  try {
    return atPlace(tree.root, step.path, (place) => backAt(tree, place, step, around));
  } catch (error) {
    if (error instanceof NativeError && !ELSEWISE.has(error.code)) throw error;
    if (error instanceof NativeError || error instanceof WalkRefused || error instanceof PathRefused) {
      return isBeforeByStage(tree, step) ? 'before' : 'away';
    }
    throw error;
  }
}

/** Whether the stage folder alone proves that the step is before: the new file is in it, or an old one was never taken there. */
function isBeforeByStage(tree: Tree, step: Step): boolean {
  const held = statusAt(tree.stage, slotName(step.slot));
  return held === undefined ? step.change === 'deleted' : isSame(held, step.after);
}

function backAt(tree: Tree, place: Place, step: Step, around: Around): Back {
  switch (step.change) {
    case 'modified':
      return backModified(tree, place, step);
    case 'deleted':
      return backDeleted(tree, place, step);
    case 'created':
      return backCreated(tree, place, step, around);
  }
}

function backModified(tree: Tree, place: Place, step: Step): Back {
  const slot = slotName(step.slot);
  const held = statusAt(tree.stage, slot);
  if (isSame(held, step.after)) return 'before';
  if (!isSame(held, step.before))
    return isSame(statusAt(place.folder, place.name), step.before) ? 'before' : 'conflict';
  return whileUntouched(tree, place, step.after, (writerWaits) => {
    const exchange = (): void => renameat2(place.folder, place.name, tree.stage, slot, RENAME.EXCHANGE);
    exchange();
    const moved = isSame(statusAt(tree.stage, slot), step.after) && isStillAt(tree.root, place);
    if (moved && !writerWaits()) return true;
    if (isSame(statusAt(place.folder, place.name), step.before)) exchange();
    return false;
  });
}

function backDeleted(tree: Tree, place: Place, step: Step): Back {
  const slot = slotName(step.slot);
  const held = statusAt(tree.stage, slot);
  if (held === undefined) return 'before';
  if (!isSame(held, step.before)) return 'conflict';
  renameat2(tree.stage, slot, place.folder, place.name, RENAME.NOREPLACE);
  if (isStillAt(tree.root, place)) return 'before';
  renameat2(place.folder, place.name, tree.stage, slot, RENAME.NOREPLACE);
  return 'conflict';
}

function backCreated(tree: Tree, place: Place, step: Step, { twin, folderIno }: Around): Back {
  const slot = slotName(step.slot);
  const held = statusAt(tree.stage, slot);
  if (isSame(held, step.after)) return 'before';
  const target = statusAt(place.folder, place.name);
  if (isSame(target, twin)) return 'before';
  if (target === undefined) return isFolder(place, folderIno) ? 'before' : 'away';
  if (!isSame(target, step.after)) return 'conflict';
  const moveOut = (): void => renameat2(place.folder, place.name, tree.stage, slot, RENAME.NOREPLACE);
  const moveIn = (): void => renameat2(tree.stage, slot, place.folder, place.name, RENAME.NOREPLACE);
  if (step.type === 'directory') {
    if (!isEmptyFolder(place.folder, place.name)) return 'conflict';
    moveOut();
    if (isSame(statusAt(tree.stage, slot), step.after) && isEmptyFolder(tree.stage, slot)) return 'before';
    moveIn();
    return 'conflict';
  }
  return whileUntouched(tree, place, step.after, (writerWaits) => {
    moveOut();
    if (isSame(statusAt(tree.stage, slot), step.after) && !writerWaits()) return true;
    moveIn();
    return false;
  });
}

/** Whether a place lies in the folder that it lay in: another one under its name does not hold what was placed. */
function isFolder({ folder }: Place, ino: string | undefined): boolean {
  return ino === undefined || statx(folder, ITSELF).ino.toString() === ino;
}

/** Does `undo` while the placed file is still exactly what was placed and nobody writes to it (N-154). */
function whileUntouched(
  tree: Tree,
  place: Place,
  after: Facts | null,
  undo: (writerWaits: () => boolean) => boolean,
): Back {
  const target = openAt(place.folder, place.name);
  try {
    const status = statx(target, ITSELF);
    if (after === null || !isSame(status, after) || (status.mode & 0o7777) !== after.mode) return 'conflict';
    const outcome = underLease({ descriptor: target, sha256: after.sha256, leases: tree.leases }, undo);
    return outcome.found === 'quiet' && outcome.result ? 'before' : 'conflict';
  } finally {
    closeSync(target);
  }
}
