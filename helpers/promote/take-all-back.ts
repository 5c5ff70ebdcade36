/*
 * Every step backward, last first. A place that somebody moves while it is looked at is looked for again for a moment; what is
 * never found is told to the person, since what was placed may be wherever its folder is now.
 */
import { folderOf } from './folder-times.ts';
import type { Prepared } from './journal.ts';
import type { Facts, Step } from './journal-records.ts';
import { takeBack } from './take-back.ts';
import type { Around, Back } from './take-back.ts';
import type { Tree } from './tree.ts';

/** How long places that are away are looked for again, in ms. */
const PATIENCE_MS = 250;

const keyOf = (path: Uint8Array): string => Buffer.from(path).toString('latin1');

/** Takes steps back and returns the slots of those that are not before. `onStep` is told how many were looked at first. Throws NativeError when the disk refuses. */
export function takeAllBack(tree: Tree, prepared: Prepared, onStep: (done: number) => void): ReadonlySet<number> {
  const { steps } = prepared;
  const aroundOf = surroundings(prepared);
  const results = new Map<number, Back>();
  for (const [index, step] of steps.toReversed().entries()) {
    results.set(step.slot, takeBack(tree, step, aroundOf(step)));
    onStep(index + 1);
  }
  settleInside(steps, results);
  const deadline = performance.now() + PATIENCE_MS;
  while ([...results.values()].includes('away') && performance.now() < deadline) {
    // a folder of ours is a conflict as long as something that was away lies in it
    for (const step of steps.toReversed())
      if (results.get(step.slot) !== 'before') results.set(step.slot, takeBack(tree, step, aroundOf(step)));
    settleInside(steps, results);
  }
  return new Set(steps.map(({ slot }) => slot).filter((slot) => results.get(slot) !== 'before'));
}

/** What was placed in a folder of ours that has been taken back was taken back before it. From the root down, as the steps are. */
function settleInside(steps: readonly Step[], results: Map<number, Back>): void {
  const made = new Map<string, Step>();
  for (const step of steps) {
    if (step.change !== 'created') continue;
    if (step.type === 'directory') made.set(keyOf(step.path), step);
    const folder = made.get(keyOf(folderOf(step.path)));
    const isInside = folder !== undefined && results.get(folder.slot) === 'before';
    if (isInside && results.get(step.slot) === 'away') results.set(step.slot, 'before');
  }
}

function surroundings({ steps, folders }: Prepared): (step: Step) => Around {
  const inos = new Map(folders.map(({ path, ino }) => [keyOf(path), ino]));
  const deleted = new Map<string, Facts | null>();
  for (const { change, path, before } of steps) if (change === 'deleted') deleted.set(keyOf(path), before);
  for (const { change, type, path, after } of steps)
    if (change === 'created' && type === 'directory' && after !== null) inos.set(keyOf(path), after.ino);
  return ({ path, change }) => ({
    twin: change === 'created' ? (deleted.get(keyOf(path)) ?? null) : null,
    folderIno: inos.get(keyOf(folderOf(path))),
  });
}
