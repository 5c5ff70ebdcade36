/*
 * The one folder that a workspace is: what makes it the same folder tomorrow, whether it still is an ordinary folder, and
 * whether it overlaps with the product's own folders. Everything starts from an open descriptor, never from a path.
 */
import { createHash } from 'node:crypto';
import { closeSync, constants } from 'node:fs';

import { O_PATH, openat2, statx, type FileStatus } from '../runtime/native-files.ts';
import { fileSystemId } from '../runtime/native-folders.ts';
import { kindOf } from './walk.ts';

const ITSELF = Buffer.alloc(0);
const PARENT = Buffer.from('..');
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

/** A folder by device and inode, while it exists. */
export interface FolderId {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** A folder and its parents up to `/`; throws NativeError (EACCES) where a parent may not be searched. */
export function parentChain(folder: number): FolderId[] {
  const chain: FolderId[] = [];
  let current = openat2(folder, Buffer.from('.'), { flags: O_PATH | constants.O_DIRECTORY, resolve: 0 });
  try {
    for (;;) {
      const { dev, ino } = statx(current, ITSELF);
      const last = chain.at(-1);
      // the parent of `/` is `/` itself
      if (last && last.dev === dev && last.ino === ino) return chain;
      chain.push({ dev, ino });
      const parent = openat2(current, PARENT, { flags: O_PATH | constants.O_DIRECTORY, resolve: 0 });
      closeSync(current);
      current = parent;
    }
  } finally {
    closeSync(current);
  }
}

/** How one folder lies to another, judged by device and inode along both chains: neither links nor bind mounts hide it. */
export type Overlap = 'equal' | 'contains' | 'below' | 'apart';

/** Relation of the folder of one chain to the folder of another. */
export function overlapOf(folder: readonly FolderId[], other: readonly FolderId[]): Overlap {
  const first = folder[0];
  const second = other[0];
  if (!first || !second) throw new TypeError('a chain begins with its folder');
  const same = (one: FolderId, two: FolderId): boolean => one.dev === two.dev && one.ino === two.ino;
  if (same(first, second)) return 'equal';
  if (other.some((parent) => same(parent, first))) return 'contains';
  return folder.some((parent) => same(parent, second)) ? 'below' : 'apart';
}

/** Checks that an open root is neither `/` nor overlaps any of the executor's own folders. Throws RootRefused or NativeError. */
export function checkApart(root: number, own: readonly (readonly FolderId[])[]): void {
  const chain = parentChain(root);
  if (chain.length === 1) throw new RootRefused('whole-machine');
  if (own.some((other) => overlapOf(chain, other) !== 'apart')) throw new RootRefused('overlaps');
}

/**
 * Chains of the executor's own folders as the supervisor hands them over: `dev:ino/dev:ino,...`, each folder first and then
 * its parents, numbers decimal and as stat(2) gives them. Throws SyntaxError.
 */
export function forbiddenChains(text: string): FolderId[][] {
  if (text === '') return [];
  return text.split(',').map((chain) => chain.split('/').map(folderId));
}

function folderId(text: string): FolderId {
  const numbers = /^(\d+):(\d+)$/.exec(text);
  if (!numbers?.[1] || !numbers[2]) throw new SyntaxError('a folder was expected as dev:ino');
  const dev = BigInt(numbers[1]);
  // gnu_dev_major and gnu_dev_minor of makedev(3); statx(2) gives the two apart
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & ~0xfffn);
  const minor = (dev & 0xffn) | ((dev >> 12n) & ~0xffn & 0xffff_ffffn);
  return { dev: (major << 32n) | minor, ino: BigInt(numbers[2]) };
}
