/* The end of a stage folder, and the root's time, which its coming and going has changed. */
import { closeSync } from 'node:fs';
import { AT_REMOVEDIR, fsync, futimens, statx, unlinkat } from '../runtime/native-files.ts';
import { kindOf } from '../files/walk.ts';
import { disposeOf } from './dispose.ts';
import { isSoonAfter, setTime } from './folder-times.ts';
import type { HistoryLimits } from './history.ts';
import type { JournalFile, Prepared } from './journal.ts';
import { JournalDamaged } from './journal-records.ts';
import type { Begin, Staging } from './journal-records.ts';
import { openOwn, ownUid } from './own-folder.ts';
import { RestingFolder } from './resting-place.ts';
import { removeStage } from './stage.ts';
import { namesIn, openFolderAt, statusAt } from './tree.ts';
import type { Tree } from './tree.ts';

const ITSELF = Buffer.alloc(0);
/** Between the journal's time and the removal of the stage folder lies one call; a busy machine may take this long for it, in ns. */
const REMOVAL_NS = 2_000_000_000n;

/** The two folders that a promotion works between, open, and how much of it the owner wants kept; where that cannot be read, nothing is forgotten. */
export interface Scene {
  readonly own: number;
  readonly root: number;
  readonly limits?: HistoryLimits | undefined;
}

/** How a way out ended. `kept` are paths, as path text, of which a second copy was kept or a person's file was left; `open` is true while the stage folder must stay; `notKept` counts old files that the history does not have because the disk was full. */
export interface Settled {
  readonly kept: readonly string[];
  readonly open: boolean;
  readonly notKept?: number;
}

/** Opens the stage folder of a journal, or undefined when it is gone. Throws JournalDamaged for a folder that is not the one that was made. */
export function openStage(root: number, name: string, ino: string | undefined): number | undefined {
  const status = statusAt(root, Buffer.from(name));
  if (status === undefined) return undefined;
  const isFolder = kindOf(status.mode) === 'directory' && status.uid === ownUid();
  if (!isFolder || (ino !== undefined && status.ino.toString() !== ino)) {
    throw new JournalDamaged('the stage folder is not the one that was made');
  }
  return openFolderAt(root, Buffer.from(name));
}

/**
 * Throws away the stage folder of a promotion that never was prepared: it holds nothing but copies. Without a `staging` record
 * the folder, if there is one, was made in the moment of the cut.
 */
export function discardStage(root: number, file: JournalFile, begin: Begin, staging: Staging | undefined): void {
  const stage = openStage(root, begin.stage, staging?.stageIno);
  if (stage === undefined) return restoreRootTime(root, file, begin);
  try {
    const isOurs = isStagingTime(statx(root, ITSELF).mtimeNs, statx(stage, ITSELF).mtimeNs, staging);
    for (const name of namesIn(stage)) {
      const isFolder = kindOf(statx(stage, name).mode) === 'directory';
      unlinkat(stage, name, isFolder ? AT_REMOVEDIR : 0);
    }
    closeStage(root, file, begin, isOurs);
  } finally {
    closeSync(stage);
  }
}

function isStagingTime(root: bigint, stage: bigint, staging: Staging | undefined): boolean {
  return staging === undefined ? isSoonAfter(root, stage) : root.toString() === staging.rootMtimeNs;
}

/** Which slots were kept, and whether something in the stage folder must stay. */
export interface Disposal {
  readonly kept: ReadonlySet<number>;
  readonly open: boolean;
}

/** Removes from the stage folder what may go; of the slots in `unsafe` no old content is dropped. Throws NativeError. */
export function disposeAll(own: number, tree: Tree, { begin, steps }: Prepared, unsafe: ReadonlySet<number>): Disposal {
  const kept = new Set<number>();
  const folder = new RestingFolder(own, 'kept', begin.promotion);
  let open = false;
  try {
    for (const step of steps) {
      const disposed = disposeOf(tree, step, () => folder.open(), unsafe.has(step.slot));
      if (disposed === 'open' || disposed === 'strange') open = true;
      if (disposed === 'kept' || disposed === 'strange' || folder.has(String(step.slot))) kept.add(step.slot);
    }
    fsync(tree.stage);
    return { kept, open };
  } finally {
    folder.close();
  }
}

/** Removes the empty stage folder; the journal's own time says when, so that a recovery knows whose doing the root's time is. */
export function closeStage(root: number, file: JournalFile, begin: Begin, rootTimeIsOurs: boolean): void {
  if (rootTimeIsOurs) touch(file);
  const status = statx(root, ITSELF);
  removeStage(root, begin.stage);
  if (rootTimeIsOurs) setTime(root, status, BigInt(begin.rootMtimeNs));
  fsync(root);
}

function touch(file: JournalFile): void {
  const descriptor = openOwn(file.folder, file.name);
  if (descriptor === undefined) return;
  try {
    const now = BigInt(Date.now()) * 1_000_000n;
    futimens(descriptor, now, now);
  } finally {
    closeSync(descriptor);
  }
}

/** After a cut between the removal of the stage folder and the root's time: puts the time back if the removal was the last change. */
export function restoreRootTime(root: number, file: JournalFile, begin: Begin): void {
  const status = statx(root, ITSELF);
  const journal = statusAt(file.folder, Buffer.from(file.name));
  if (journal === undefined || !isSoonAfter(status.mtimeNs, journal.mtimeNs, REMOVAL_NS)) return;
  setTime(root, status, BigInt(begin.rootMtimeNs));
}
