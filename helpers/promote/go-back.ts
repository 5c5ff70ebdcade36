/*
 * The way back out of `prepared`. The apply that stops and the recovery that follows a crash take it alike, from whatever
 * point was reached (journal.ts INVARIANT 9).
 */
import { closeSync } from 'node:fs';
import { toPathText } from '../protocol/path-text.ts';
import { fsync } from '../runtime/native-files.ts';
import { isRootTimeOurs, newestByFolder, restoreTimes, syncFolders } from './folder-times.ts';
import { discardJournal } from './journal.ts';
import type { JournalFile, Prepared } from './journal.ts';
import type { Step } from './journal-records.ts';
import { noteKept, rest } from './resting-place.ts';
import { closeStage, disposeAll, openStage, restoreRootTime } from './stage-end.ts';
import type { Scene, Settled } from './stage-end.ts';
import { isTrouble } from './stop.ts';
import { gatherStrays } from './strays.ts';
import { takeAllBack } from './take-all-back.ts';
import { atPlace, isSame, statusAt } from './tree.ts';
import type { Tree } from './tree.ts';

/** Takes every step back, last first, and lets the journal go. Throws NativeError when the disk refuses: nothing is decided then. */
export function goBack(
  scene: Scene,
  file: JournalFile,
  prepared: Prepared,
  onStep: (done: number) => void = () => {},
): Settled {
  const { begin, staging, steps, folders, leases } = prepared;
  const stage = openStage(scene.root, begin.stage, staging.stageIno);
  if (stage === undefined) return goBackWithoutStage(scene, file, prepared);
  try {
    const tree: Tree = { root: scene.root, stage, leases };
    gatherStrays(stage, steps);
    const conflicts = takeAllBack(tree, prepared, onStep);
    const newest = newestByFolder(tree, steps);
    restoreTimes(tree, folders, newest);
    syncFolders(scene.root, steps);
    fsync(stage);
    const isOurs = isRootTimeOurs(tree, begin, newest, staging.rootMtimeNs);
    const disposal = disposeAll(scene.own, tree, prepared, conflicts);
    const kept = pathsOf(steps, ({ slot }) => conflicts.has(slot) || disposal.kept.has(slot));
    if (!disposal.open) closeStage(scene.root, file, begin, isOurs);
    return leave(scene, file, prepared, { kept, open: disposal.open });
  } finally {
    closeSync(stage);
  }
}

function leave({ own }: Scene, file: JournalFile, { begin }: Prepared, settled: Settled): Settled {
  if (settled.kept.length === 0 && !settled.open) discardJournal(file);
  else if (file.folder === own) rest(own, file, 'attention', begin.promotion, settled.kept);
  else noteKept(file.folder, settled.kept);
  return settled;
}

/** The stage folder is gone: all was taken back already, or somebody removed it and what it held. */
function goBackWithoutStage(scene: Scene, file: JournalFile, prepared: Prepared): Settled {
  const lost = pathsOf(prepared.steps, (step) => !isBefore(scene.root, step));
  if (lost.length === 0) restoreRootTime(scene.root, file, prepared.begin);
  return leave(scene, file, prepared, { kept: lost, open: false });
}

function isBefore(root: number, step: Step): boolean {
  try {
    const status = atPlace(root, step.path, ({ folder, name }) => statusAt(folder, name));
    return step.before === null ? !isSame(status, step.after) : isSame(status, step.before);
  } catch (error) {
    if (isTrouble(error)) throw error;
    // A place that cannot be walked holds nothing that was placed, and an old file that was there is not found either.
    return step.before === null;
  }
}

/** Paths, as path text, of some steps. */
export function pathsOf(steps: readonly Step[], belongs: (step: Step) => boolean): string[] {
  return steps.filter(belongs).map(({ path }) => toPathText(path));
}
