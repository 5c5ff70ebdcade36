/* The way forward out of `committed`: old files go to the history, the stage folder goes away. */
import { closeSync } from 'node:fs';
import { fsync, statx, syncfs } from '../runtime/native-files.ts';
import { copyOut } from './dispose.ts';
import { folderOf } from './folder-times.ts';
import { pathsOf } from './go-back.ts';
import { DEFAULT_BYTES, isFull, markUndone, noteNotKept, pruneHistory } from './history.ts';
import type { JournalFile, Prepared } from './journal.ts';
import type { Step } from './journal-records.ts';
import { rest, RestingFolder } from './resting-place.ts';
import { closeStage, disposeAll, openStage, restoreRootTime } from './stage-end.ts';
import type { Disposal, Scene, Settled } from './stage-end.ts';
import { isSame, openAt, slotName, statusAt } from './tree.ts';
import type { Tree } from './tree.ts';

const ITSELF = Buffer.alloc(0);
/** From this many files on, one sync of the file system is cheaper than one of each file. */
export const BULK_FILES = 256;
/** Without leases nobody can say that an old file is quiet: it is kept this long first, in ms. */
const UNLEASED_KEPT_MS = 86_400_000;

/** Sends the old files to the history, drops them and lets the journal rest. `now` in ms since the Unix epoch. Throws NativeError when the disk refuses. */
export function goForward(
  scene: Scene,
  file: JournalFile,
  prepared: Prepared,
  now: number,
  onStep: (done: number) => void = () => {},
): Settled {
  const { begin, staging, steps, leases } = prepared;
  const id = begin.promotion;
  if (begin.undoes !== null) markUndone(scene.own, begin.undoes, id);
  const stage = openStage(scene.root, begin.stage, staging.stageIno);
  if (stage === undefined) {
    if (!touchesRoot(steps)) restoreRootTime(scene.root, file, begin);
    rest(scene.own, file, 'history', id, []);
    return { kept: [], open: false };
  }
  try {
    const tree: Tree = { root: scene.root, stage, leases };
    const notKept = saveUnlessFull(scene, tree, prepared, onStep);
    const isEarly = !leases && steps.some(({ before }) => before !== null) && now < begin.at + UNLEASED_KEPT_MS;
    const disposal: Disposal = isEarly
      ? { kept: new Set(), open: true }
      : disposeAll(scene.own, tree, prepared, new Set());
    const kept = pathsOf(steps, ({ slot }) => disposal.kept.has(slot));
    if (!disposal.open) {
      const isOurs = !touchesRoot(steps) && statx(scene.root, ITSELF).mtimeNs.toString() === staging.rootMtimeNs;
      closeStage(scene.root, file, begin, isOurs);
    }
    const waitsAlready = disposal.open && file.folder !== scene.own;
    if (!waitsAlready) rest(scene.own, file, disposal.open ? 'waiting' : 'history', id, kept);
    if (scene.limits !== undefined) pruneHistory(scene.own, now, scene.limits);
    return { kept, open: disposal.open, notKept };
  } finally {
    closeSync(stage);
  }
}

function touchesRoot(steps: readonly Step[]): boolean {
  return steps.some(({ path }) => folderOf(path).length === 0);
}

/** The new tree stands already: a full disk costs the undo, not the promotion. How many old files it costs is answered, and noted in the history. */
function saveUnlessFull(scene: Scene, tree: Tree, prepared: Prepared, onStep: (done: number) => void): number {
  try {
    saveHistory(scene, tree, prepared, onStep);
    return 0;
  } catch (error) {
    if (!isFull(error)) throw error;
  }
  const count = oldSteps(prepared).length;
  noteNotKept(scene.own, prepared.begin.promotion, count);
  return count;
}

function oldSteps({ steps }: Prepared): Step[] {
  return steps.filter(({ before, type }) => before !== null && type === 'file');
}

/** Copies old files into the history before they are dropped, so that the promotion can be undone later. */
function saveHistory(scene: Scene, tree: Tree, prepared: Prepared, onStep: (done: number) => void): void {
  const { begin } = prepared;
  const old = oldSteps(prepared);
  const total = old.reduce((sum, { before }) => sum + (before?.size ?? 0), 0);
  if (old.length === 0 || total > (scene.limits?.bytes ?? DEFAULT_BYTES)) return;
  const isBulk = old.length >= BULK_FILES;
  const folder = new RestingFolder(scene.own, 'history', begin.promotion);
  try {
    for (const [index, step] of old.entries()) {
      saveOne(tree, step, folder.open(), !isBulk);
      onStep(index + 1);
    }
    if (isBulk) syncfs(folder.open());
    else fsync(folder.open());
  } finally {
    folder.close();
  }
}

function saveOne(tree: Tree, step: Step, folder: number, sync: boolean): void {
  const name = slotName(step.slot);
  if (!isSame(statusAt(tree.stage, name), step.before)) return;
  const descriptor = openAt(tree.stage, name);
  try {
    copyOut(descriptor, folder, name.toString(), sync);
  } finally {
    closeSync(descriptor);
  }
}
