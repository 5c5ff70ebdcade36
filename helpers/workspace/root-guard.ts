/*
 * Whether the root that this process holds open still is the folder that its owner chose: asked before every operation.
 *
 * THREAT: somebody moves the root, puts a link or another folder in its place or mounts over it, and an agent goes on to
 * read what the owner did not mean. The open descriptor stays on the old folder, so nothing else can be read; but the owner
 * looks at the new one, so everything is refused until the two are the same again (N-130, N-132).
 */
import { constants } from 'node:fs';

import { checkApart, checkRoot, RootRefused, rootIdentity } from '../files/root.ts';
import { toPathText } from '../protocol/path-text.ts';
import { chainOf, type FolderId } from '../runtime/folder-chains.ts';
import { NativeError } from '../runtime/libc.ts';
import { AT_FDCWD, O_PATH, openat2, statx } from '../runtime/native-files.ts';
import { readlinkat } from '../runtime/native-folders.ts';

const SLASH = 0x2f;

/** What the rest of the process is told about the root. */
export interface RootFacts {
  /** Base name, path text. */
  readonly rootName: string;
  /** 32 bytes. */
  readonly rootIdentity: Buffer;
}

/** Watches one open root; `parent` stays open for the life of the process. */
export class RootGuard {
  readonly facts: RootFacts;
  readonly #root: number;
  readonly #parent: number;
  readonly #where: Buffer;
  readonly #name: Buffer;
  readonly #own: readonly (readonly FolderId[])[];

  /** Takes the open root, the open drafts folder and the chains of further folders of the executor. Throws NativeError. */
  constructor(root: number, drafts: number, own: readonly (readonly FolderId[])[]) {
    this.#root = root;
    this.#parent = openat2(root, Buffer.from('..'), { flags: O_PATH | constants.O_DIRECTORY, resolve: 0 });
    this.#where = whereIs(root);
    this.#name = this.#where.subarray(this.#where.lastIndexOf(SLASH) + 1);
    this.#own = [chainOf(drafts).folders, ...own];
    this.facts = { rootName: toPathText(this.#name), rootIdentity: rootIdentity(root) };
  }

  /** Throws RootRefused while the root is not what it was. */
  check(): void {
    const status = checkRoot(this.#root);
    if (!this.#isStillNamed(status)) throw new RootRefused('moved');
    checkApart(this.#root, this.#own);
  }

  #isStillNamed({ dev, ino, mountId }: { dev: bigint; ino: bigint; mountId: bigint }): boolean {
    try {
      const there = statx(this.#parent, this.#name);
      return there.dev === dev && there.ino === ino && there.mountId === mountId;
    } catch (error) {
      if (!(error instanceof NativeError)) throw error;
      // where the parent may not be searched, the kernel's own name of the descriptor is what is left to compare
      return error.code === 'EACCES' && whereIs(this.#root).equals(this.#where);
    }
  }
}

function whereIs(root: number): Buffer {
  return readlinkat(AT_FDCWD, Buffer.from(`/proc/self/fd/${root}`));
}
