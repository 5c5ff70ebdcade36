import { checkApart, checkRoot, parentChain, RootRefused } from '../files/root.ts';
import type { FolderId } from '../files/root.ts';
import { NativeError } from '../runtime/libc.ts';
import { statx } from '../runtime/native-files.ts';
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
    checkApart(root, [...ours.map(chainOf), ...forbidden]);
  } catch (cause) {
    if (cause instanceof RootRefused) throw new Stopped('PROMOTION_UNSAFE_ROOT', undefined, { cause });
    // TRUST: parents that this uid may not search were walked by the supervisor before it started this process
    if (!(cause instanceof NativeError && cause.code === 'EACCES')) throw cause;
  }
}

function chainOf(folder: number): FolderId[] {
  try {
    return parentChain(folder);
  } catch (error) {
    if (error instanceof NativeError && error.code === 'EACCES') return [statx(folder, Buffer.alloc(0))];
    throw error;
  }
}
