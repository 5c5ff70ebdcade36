/*
 * The one folder that a workspace is: what makes it the same folder tomorrow, whether it still is an ordinary folder, and
 * whether it overlaps with the product's own folders. Everything starts from an open descriptor, never from a path.
 */
import { createHash } from 'node:crypto';

import { chainOf, overlapOf, type FolderId } from '../runtime/folder-chains.ts';
import { statx, type FileStatus } from '../runtime/native-files.ts';
import { fileSystemId } from '../runtime/native-folders.ts';
import { kindOf } from './walk.ts';

const ITSELF = Buffer.alloc(0);
const IDENTITY_TAG = Buffer.from('nessie-executor root identity 1\0', 'latin1');

/**
 * Identity of an open root, 32 bytes: SHA-256 over inode, birth time (zero where the file system keeps none) and file-system
 * id. All three survive a reboot; a device number does not. A folder that is restored from a backup is another root.
 */
export function rootIdentity(root: number): Buffer {
  const status = statx(root, ITSELF);
  const numbers = Buffer.alloc(16);
  numbers.writeBigUInt64LE(status.ino, 0);
  numbers.writeBigInt64LE(status.birthNs, 8);
  return createHash('sha256').update(IDENTITY_TAG).update(numbers).update(fileSystemId(root)).digest();
}

/** Why an open folder is no root. */
export type RootReason = 'not-a-folder' | 'deleted' | 'moved' | 'whole-machine' | 'overlaps';

const rootSentences: Readonly<Record<RootReason, string>> = {
  'not-a-folder': 'the workspace root is not a folder any more',
  deleted: 'the workspace root was deleted',
  moved: 'the workspace root was moved or replaced; put it back or choose the root again',
  'whole-machine': 'the workspace root is "/"; choose the folder of one project',
  overlaps: 'the workspace root and a folder of the executor itself lie inside one another; choose another root',
};

/** A root that must not be used; `message` holds no path. */
export class RootRefused extends Error {
  override readonly name = 'RootRefused';
  readonly reason: RootReason;

  constructor(reason: RootReason) {
    super(rootSentences[reason]);
    this.reason = reason;
  }
}

/** Status of an open root that still is an ordinary folder. Throws RootRefused. */
export function checkRoot(root: number): FileStatus {
  const status = statx(root, ITSELF);
  if (kindOf(status.mode) !== 'directory') throw new RootRefused('not-a-folder');
  if (status.nlink === 0) throw new RootRefused('deleted');
  return status;
}

/** Checks that an open root is neither `/` nor overlaps any of the executor's own folders. Throws RootRefused or NativeError. */
export function checkApart(root: number, own: readonly (readonly FolderId[])[]): void {
  const { folders, whole } = chainOf(root);
  if (whole && folders.length === 1) throw new RootRefused('whole-machine');
  // TRUST: folders above that this uid may not search were compared by the supervisor before it started this process
  if (own.some((other) => overlapOf(folders, other) !== 'apart')) throw new RootRefused('overlaps');
}
