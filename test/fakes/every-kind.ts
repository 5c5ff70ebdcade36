import fs from 'node:fs';

import { PromotionScene } from './promotion-scene.ts';
import type { Wanted } from './promotion-scene.ts';

/** Where the twelve entries lie: at the top of the root, or below one folder, so that the root itself is not touched. */
export type Depth = 'top' | 'below';
/** Both. */
export const DEPTHS: readonly Depth[] = ['top', 'below'];

/** A scene of twelve entries of every kind, and the paths that its draft leaves as they are, times included. */
export interface EveryKind {
  readonly scene: PromotionScene;
  readonly untouched: readonly string[];
}

const WANTED: Readonly<Record<string, Wanted>> = {
  'keep/changed': { file: 'new', mode: 0o640 },
  'keep/added': { file: '' },
  mode: { mode: 0o755 },
  gone: 'removed',
  old: 'removed',
  'old/inside': 'removed',
  flip: { folder: 0o755 },
  'flip/file': { file: 'f' },
  fold: { file: 'a file now' },
  'fold/inside': 'removed',
  made: { folder: 0o700 },
  'made/\xff': { file: 'hello', mode: 0o755 },
};

/**
 * A root and a draft of twelve entries, one of each kind: a file made, changed, removed, given another mode; a folder made and
 * removed with what is in it; a file in place of a folder and a folder in place of a file. All folders have a time in the past,
 * so that a change of them shows.
 */
export function everyKind(depth: Depth): EveryKind {
  const scene = new PromotionScene();
  const below = depth === 'top' ? '' : 'work/';
  const folders = ['keep', 'old', 'fold', 'left', 'left/inner'].map((folder) => `${below}${folder}`);
  if (depth === 'below') folders.unshift('work');
  for (const folder of folders) scene.folderAt(folder);
  scene.put(`${below}keep/changed`, 'old', 0o640);
  scene.put(`${below}mode`, 'same');
  scene.put(`${below}gone`, 'bye');
  scene.put(`${below}old/inside`, 'x');
  scene.put(`${below}flip`, 'file to folder');
  scene.put(`${below}fold/inside`, 'folder to file');
  scene.put(`${below}left/inner/alone`, 'untouched', 0o604);
  for (const name of [...folders, '.']) fs.utimesSync(scene.at(name), 1_000_000_000, 1_000_000_000);
  scene.draftOf(Object.fromEntries(Object.entries(WANTED).map(([name, wanted]) => [`${below}${name}`, wanted])));
  const left = ['left', 'left/inner', 'left/inner/alone'].map((name) => `${below}${name}`);
  return { scene, untouched: depth === 'top' ? left : [...left, '.'] };
}
