/*
 * What is left in the stage folder goes away: new content that was not placed, old files that are in the history. A file that
 * somebody changed, or may be changing, is never dropped: its content is kept in our own folder, or it waits (INVARIANT 8).
 */
import { closeSync } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import { AT_REMOVEDIR, fsync, statx, unlinkat } from '../runtime/native-files.ts';
import type { FileStatus } from '../runtime/native-files.ts';
import { digestDescriptor, readFrom } from '../files/digest.ts';
import { kindOf } from '../files/walk.ts';
import { hasHoles, pieceWriter } from './holes.ts';
import type { Step } from './journal-records.ts';
import { releaseLease, takeLease, writerWaits } from './lease.ts';
import { createOwn, hasOwn } from './own-folder.ts';
import { copyRange, share, SHARED_FROM_BYTES } from './share.ts';
import { isSame, openAt, slotName, statusAt } from './tree.ts';
import type { Tree } from './tree.ts';

const ITSELF = Buffer.alloc(0);

/**
 * What became of one name in the stage folder. `open`: somebody writes to it, or put something into it, and it stays;
 * `strange`: a rename caught a link or a special file of a person there, which cannot be copied, and it stays.
 */
export type Disposed = 'gone' | 'kept' | 'open' | 'strange';

/** Removes what the stage folder holds for a step. `keep` opens the folder for contents that must not be lost; `unsafe`: no content of this step may be. Throws NativeError. */
export function disposeOf(tree: Tree, step: Step, keep: () => number, unsafe: boolean): Disposed {
  const name = slotName(step.slot);
  const status = statusAt(tree.stage, name);
  if (status === undefined) return 'gone';
  switch (kindOf(status.mode)) {
    case 'directory':
      return disposeOfFolder(tree.stage, name);
    case 'file':
      return disposeOfFile(tree, step, name, keep, unsafe);
    case 'link':
    case 'other':
      return 'strange';
  }
}

function disposeOfFolder(stage: number, name: Buffer): Disposed {
  try {
    unlinkat(stage, name, AT_REMOVEDIR);
    return 'gone';
  } catch (error) {
    if (error instanceof NativeError && error.code === 'ENOTEMPTY') return 'open';
    throw error;
  }
}

function disposeOfFile(tree: Tree, step: Step, name: Buffer, keep: () => number, unsafe: boolean): Disposed {
  const descriptor = openReadable(tree.stage, name);
  if (descriptor === undefined) return 'open';
  try {
    const lease = tree.leases ? takeLease(descriptor) : 'unsupported';
    if (lease === 'in-use') return 'open';
    const status = statx(descriptor, ITSELF);
    const known = [step.before, step.after].find((facts) => isSame(status, facts));
    const kept = (unsafe && known !== step.after) || digestDescriptor(descriptor).sha256 !== known?.sha256;
    if (kept) {
      copyOut(descriptor, keep(), name.toString(), true);
      fsync(keep());
    }
    if (lease === 'held' && writerWaits(descriptor)) return 'open';
    unlinkat(tree.stage, name, 0);
    if (lease === 'held') releaseLease(descriptor);
    return kept ? 'kept' : 'gone';
  } finally {
    // The lease, where it is still held, ends with the descriptor.
    closeSync(descriptor);
  }
}

/** Somebody who held the file open may have taken our right to read it; then it cannot be judged and stays. */
function openReadable(stage: number, name: Buffer): number | undefined {
  try {
    return openAt(stage, name);
  } catch (error) {
    if (error instanceof NativeError && error.code === 'EACCES') return undefined;
    throw error;
  }
}

/** Copies an open file into a folder of our own, in place of what an earlier, cut copy left; with `sync` its content is on the disk when it returns, its name once the folder is synced. */
export function copyOut(descriptor: number, folder: number, name: string, sync: boolean): void {
  if (hasOwn(folder, name)) unlinkat(folder, Buffer.from(name), 0);
  const copy = createOwn(folder, name);
  try {
    copyContent(descriptor, copy, statx(descriptor, ITSELF));
    if (sync) fsync(copy);
  } finally {
    closeSync(copy);
  }
}

/** By sharing, or by the kernel, or, with holes or where the kernel does not, by hand from where it stopped; nobody believes a copy before it was hashed (undo-plan.ts). */
function copyContent(from: number, to: number, status: FileStatus): void {
  const size = Number(status.size);
  const isLarge = size >= SHARED_FROM_BYTES;
  if (isLarge && share(from, to)) return;
  const holes = hasHoles(status);
  const done = isLarge && !holes ? copyRange(from, to, size) : 0;
  readFrom(from, done, pieceWriter(to, size, holes));
}
