import fs from 'node:fs';

import { PromotionScene } from './promotion-scene.ts';
import type { Wanted } from './promotion-scene.ts';

/** Twelve changes of every kind, of the root below. */
export const twelveChanges = {
  changed: { file: 'new', mode: 0o640 },
  mode: { mode: 0o755 },
  gone: 'removed',
  'keep/one': { file: 'one' },
  'keep/two': 'removed',
  'keep/three': { file: '3' },
  old: 'removed',
  'old/inside': 'removed',
  flip: { folder: 0o755 },
  'flip/file': { file: 'f' },
  made: { folder: 0o700 },
  'made/\xff': { file: 'hello', mode: 0o755 },
} as const satisfies Readonly<Record<string, Wanted>>;

/** A root and a draft of twelve changes of every kind, with folder times that a later change would show. */
export function twelveEntries(options: { parent?: string; asCaller?: boolean } = {}): PromotionScene {
  const scene = new PromotionScene(options);
  scene.put('changed', 'old', 0o640);
  scene.put('mode', 'same');
  scene.put('gone', 'bye');
  scene.folderAt('keep');
  scene.put('keep/one', '1');
  scene.put('keep/two', '2');
  scene.folderAt('old');
  scene.put('old/inside', 'x');
  scene.put('flip', 'file to folder');
  for (const name of ['keep', 'old', '.']) fs.utimesSync(scene.at(name), 1_000_000_000, 1_000_000_000);
  scene.draftOf(twelveChanges);
  return scene;
}
