/*
 * Names reach the disk in any order until a folder is synced. A crash may keep the rename that put a file into a new folder and
 * lose the one that put that folder to its path: the folder lies in the stage folder again, with the file in it. The way back
 * takes such files out first, so that every new file is where takeBack looks for it.
 */
import { closeSync } from 'node:fs';
import { RENAME, renameat2 } from '../runtime/native-files.ts';
import { folderOf } from './folder-times.ts';
import type { Step } from './journal-records.ts';
import { isSame, openFolderAt, slotName, statusAt } from './tree.ts';

/** Moves what was placed in new folders that are in the stage folder back under the numbers of their steps, from the root down. Throws NativeError. */
export function gatherStrays(stage: number, steps: readonly Step[]): void {
  const created = steps.filter(({ change }) => change === 'created');
  const inside = new Map<string, Step[]>();
  for (const step of created) {
    const folder = keyOf(folderOf(step.path));
    const others = inside.get(folder);
    if (others === undefined) inside.set(folder, [step]);
    else others.push(step);
  }
  for (const step of created) {
    const placed = inside.get(keyOf(step.path));
    if (placed === undefined || step.type !== 'directory') continue;
    if (isSame(statusAt(stage, slotName(step.slot)), step.after)) gatherFrom(stage, step, placed);
  }
}

const keyOf = (path: Uint8Array): string => Buffer.from(path).toString('latin1');

function gatherFrom(stage: number, { slot, path }: Step, placed: readonly Step[]): void {
  const folder = openFolderAt(stage, slotName(slot));
  try {
    for (const step of placed) {
      const name = Buffer.from(step.path).subarray(path.length + 1);
      if (!isSame(statusAt(folder, name), step.after)) continue;
      renameat2(folder, name, stage, slotName(step.slot), RENAME.NOREPLACE);
    }
  } finally {
    closeSync(folder);
  }
}
