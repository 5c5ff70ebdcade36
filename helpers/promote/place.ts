/*
 * One step forward: the new file goes to its path and the old one to the stage folder, in one rename, or nothing moves.
 *
 * THREAT: between the look at a file and the rename somebody saves over it, opens it for writing, swaps it or a folder above
 * it for a link, or moves the folder out of the root. The look and the rename are bound by a read lease on the file, the
 * rename is checked by what it moved, and a rename that moved anything else is undone (test/helpers/promote/races.test.ts).
 */
import { closeSync } from 'node:fs';
import { RENAME, renameat2, statx } from '../runtime/native-files.ts';
import { digestInTurns } from '../files/digest.ts';
import type { Turn } from '../files/digest.ts';
import type { Facts, Step } from './journal-records.ts';
import { underLeaseInTurns } from './lease.ts';
import { Stopped, stopFor } from './stop.ts';
import { isEmptyFolder, isSame, isStillAt, openAt, slotName, statusAt, whileAtPlace } from './tree.ts';
import type { Place, Tree } from './tree.ts';

const ITSELF = Buffer.alloc(0);

/** Places one step, letting others in while files are read. Rejects with Stopped, with the step before as it was; the whole promotion is then taken back. */
export async function placeStep(tree: Tree, step: Step, turn: Turn): Promise<void> {
  const path = Buffer.from(step.path);
  try {
    await whileAtPlace(tree.root, path, (place) => placeAt(tree, place, step, turn));
  } catch (error) {
    throw stopFor(error, path);
  }
}

async function placeAt(tree: Tree, place: Place, step: Step, turn: Turn): Promise<void> {
  const path = Buffer.from(step.path);
  if (step.after !== null && step.type === 'file') await checkStaged(tree, step, step.after, turn);
  if (step.before === null) putNew(tree, place, step, path);
  else if (step.type === 'directory') takeFolder(tree, place, step, step.before, path);
  else await takeFile(tree, place, step, step.before, turn);
}

/** The new content once more, just before it becomes the person's file (N-153). */
async function checkStaged(tree: Tree, step: Step, after: Facts, turn: Turn): Promise<void> {
  const descriptor = openAt(tree.stage, slotName(step.slot));
  try {
    const same =
      isSame(statx(descriptor, ITSELF), after) && (await digestInTurns(descriptor, turn)).sha256 === after.sha256;
    if (!same) throw new Stopped('PROMOTION_REVIEW_STALE', Buffer.from(step.path));
  } finally {
    closeSync(descriptor);
  }
}

function putNew(tree: Tree, place: Place, step: Step, path: Buffer): void {
  const slot = slotName(step.slot);
  renameat2(tree.stage, slot, place.folder, place.name, RENAME.NOREPLACE);
  if (isSame(statusAt(place.folder, place.name), step.after) && isStillAt(tree.root, place)) return;
  if (isSame(statusAt(place.folder, place.name), step.after)) {
    renameat2(place.folder, place.name, tree.stage, slot, RENAME.NOREPLACE);
  }
  throw new Stopped('PROMOTION_UNSAFE_PATH', path);
}

async function takeFile(tree: Tree, place: Place, step: Step, before: Facts, turn: Turn): Promise<void> {
  const path = Buffer.from(step.path);
  const target = openAt(place.folder, place.name);
  try {
    const status = statx(target, ITSELF);
    const untouched = isSame(status, before) && status.nlink === 1 && (status.mode & 0o7777) === before.mode;
    if (!untouched) throw new Stopped('PROMOTION_CONFLICT', path);
    const leased = { descriptor: target, sha256: before.sha256, leases: tree.leases };
    const outcome = await underLeaseInTurns(leased, turn, (writerWaits) => swap(tree, place, step, writerWaits));
    if (outcome.found === 'quiet' && outcome.result === 'placed') return;
    const inUse = outcome.found === 'in-use' || (outcome.found === 'quiet' && outcome.result === 'in-use');
    throw new Stopped(inUse ? 'PROMOTION_IN_USE' : 'PROMOTION_CONFLICT', path);
  } finally {
    closeSync(target);
  }
}

function swap(tree: Tree, place: Place, step: Step, writerWaits: () => boolean): 'placed' | 'in-use' | 'changed' {
  const slot = slotName(step.slot);
  if (step.after === null) renameat2(place.folder, place.name, tree.stage, slot, RENAME.NOREPLACE);
  else renameat2(place.folder, place.name, tree.stage, slot, RENAME.EXCHANGE);
  const moved = isSame(statusAt(tree.stage, slot), step.before) && isStillAt(tree.root, place);
  if (moved && !writerWaits()) return 'placed';
  swapBack(tree, place, step);
  return moved ? 'in-use' : 'changed';
}

/** Undoes a swap while the new file, or nothing, is still at the path; what a person put there since is left alone (INVARIANT 8). */
function swapBack(tree: Tree, place: Place, step: Step): void {
  const slot = slotName(step.slot);
  if (step.after === null) {
    renameat2(tree.stage, slot, place.folder, place.name, RENAME.NOREPLACE);
  } else if (isSame(statusAt(place.folder, place.name), step.after)) {
    renameat2(place.folder, place.name, tree.stage, slot, RENAME.EXCHANGE);
  }
}

function takeFolder(tree: Tree, place: Place, step: Step, before: Facts, path: Buffer): void {
  const slot = slotName(step.slot);
  const status = statusAt(place.folder, place.name);
  if (!isSame(status, before) || (status.mode & 0o7777) !== before.mode) throw new Stopped('PROMOTION_CONFLICT', path);
  if (!isEmptyFolder(place.folder, place.name)) throw new Stopped('PROMOTION_CONFLICT', path);
  renameat2(place.folder, place.name, tree.stage, slot, RENAME.NOREPLACE);
  const moved = isSame(statusAt(tree.stage, slot), before) && isEmptyFolder(tree.stage, slot);
  if (moved && isStillAt(tree.root, place)) return;
  renameat2(tree.stage, slot, place.folder, place.name, RENAME.NOREPLACE);
  throw new Stopped('PROMOTION_CONFLICT', path);
}
