import { checkApart, checkRoot, RootRefused } from '../files/root.ts';
import { chainOf } from '../runtime/folder-chains.ts';
import type { FolderId } from '../runtime/folder-chains.ts';
import { Stopped } from './stop.ts';

/**
 * Whether the open root may be written at all: an ordinary folder, not the whole machine, and apart from the executor's own
 * folders, `ours` open and `forbidden` by their chains. Throws Stopped PROMOTION_UNSAFE_ROOT.
 */
export function checkOpenRoot(
  root: number,
  ours: readonly number[],
  forbidden: readonly (readonly FolderId[])[],
): void {
  try {
    checkRoot(root);
    checkApart(root, [...ours.map((folder) => chainOf(folder).folders), ...forbidden]);
  } catch (cause) {
    if (cause instanceof RootRefused) throw new Stopped('PROMOTION_UNSAFE_ROOT', undefined, { cause });
    throw cause;
  }
}
