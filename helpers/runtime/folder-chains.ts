/*
 * A folder and those above it, by device and inode: how one folder lies to another, whatever the names, links and bind mounts.
 * The supervisor, workspace and promote compare the root with the executor's own folders by it.
 */
import { closeSync, constants } from 'node:fs';

import { NativeError } from './libc.ts';
import { O_PATH, openat2, statx } from './native-files.ts';

const ITSELF = Buffer.alloc(0);
const PARENT = Buffer.from('..');

/** A folder by device and inode, while it exists. */
export interface FolderId {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** A folder first, then its parents: up to `/` where it is `whole`, else as far as this uid may search. */
export interface FolderChain {
  readonly folders: readonly FolderId[];
  readonly whole: boolean;
}

/** The chain of an open folder. Throws NativeError for anything but a parent that may not be searched. */
export function chainOf(folder: number): FolderChain {
  const folders: FolderId[] = [];
  let current = openat2(folder, Buffer.from('.'), { flags: O_PATH | constants.O_DIRECTORY, resolve: 0 });
  try {
    for (;;) {
      const { dev, ino } = statx(current, ITSELF);
      const last = folders.at(-1);
      // the parent of `/` is `/` itself
      if (last && last.dev === dev && last.ino === ino) return { folders, whole: true };
      folders.push({ dev, ino });
      const parent = openat2(current, PARENT, { flags: O_PATH | constants.O_DIRECTORY, resolve: 0 });
      closeSync(current);
      current = parent;
    }
  } catch (error) {
    if (error instanceof NativeError && error.code === 'EACCES' && folders.length > 0) return { folders, whole: false };
    throw error;
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
