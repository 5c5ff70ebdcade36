/*
 * Where promotions rest in promote's own folder once they have left their active journal:
 *
 *   history/ID/    journal, old files by slot      can be undone
 *                  journal, undone                 was undone, by the promotion that `undone` names
 *                  journal, not-kept               the disk was full: so many old files are not kept, and none is
 *   waiting/ID/    journal                         committed, an old file is still open for writing somewhere
 *   attention/ID/  journal, kept                   went back but for files that a person has changed
 *   settled/ID/    as attention                    a person has seen it
 *   kept/ID/       contents by slot                what must not be lost: old files, and edits of them
 */
import { closeSync } from 'node:fs';
import { decode, encode } from '../protocol/codec.ts';
import { AT_REMOVEDIR, RENAME, fsync, renameat2, unlinkat } from '../runtime/native-files.ts';
import { archiveJournal } from './journal.ts';
import type { JournalFile } from './journal.ts';
import { namesIn } from './tree.ts';
import { dropUnfinished, hasOwn, ownSubfolder, ownTrust, readTrusted, replaceOwn } from './own-folder.ts';

/** One of the folders above. */
export type Resting = 'history' | 'waiting' | 'attention' | 'settled' | 'kept';

/** Most paths that an answer or a record names. */
export const KEPT_LIMIT = 1000;
const KEPT = 'kept';
const KEPT_BYTES = 8_388_608;

/** The folder of one promotion in one resting place, made when it is first needed. */
export class RestingFolder {
  readonly #own: number;
  readonly #place: Resting;
  readonly #id: string;
  #descriptor: number | undefined;

  constructor(own: number, place: Resting, id: string) {
    this.#own = own;
    this.#place = place;
    this.#id = id;
  }

  /** The open folder; it is closed by `close`. */
  open(): number {
    this.#descriptor ??= inPlace(this.#own, this.#place, (parent) => ownSubfolder(parent, this.#id));
    return this.#descriptor;
  }

  /** Whether it holds a name, without making the folder. */
  has(name: string): boolean {
    if (this.#descriptor === undefined && !isResting(this.#own, this.#place, this.#id)) return false;
    return hasOwn(this.open(), name);
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

function inPlace<Result>(own: number, place: Resting, work: (parent: number) => Result): Result {
  const parent = ownSubfolder(own, place);
  try {
    return work(parent);
  } finally {
    closeSync(parent);
  }
}

/** Whether a promotion has a folder in a place. */
export function isResting(own: number, place: Resting, id: string): boolean {
  return hasOwn(own, place) && inPlace(own, place, (parent) => hasOwn(parent, id));
}

/** Ids of what rests in a place, in byte order. */
export function restingIds(own: number, place: Resting): string[] {
  if (!hasOwn(own, place)) return [];
  return inPlace(own, place, (parent) => namesIn(parent).map(String)).toSorted();
}

/** Ids of promotions that were committed and have left their active journal, as long as they are remembered. */
export function committedIds(own: number): string[] {
  return [...restingIds(own, 'waiting'), ...restingIds(own, 'history')];
}

/** Moves a journal to rest, with the paths of which something was kept. */
export function rest(own: number, file: JournalFile, place: Resting, id: string, kept: readonly string[]): void {
  const folder = new RestingFolder(own, place, id);
  try {
    if (kept.length > 0) noteKept(folder.open(), kept);
    archiveJournal(file, folder.open());
  } finally {
    folder.close();
  }
}

/** Writes beside a journal at rest the paths, as path text, of which something was kept. */
export function noteKept(folder: number, kept: readonly string[]): void {
  replaceOwn(folder, KEPT, encode(kept.slice(0, KEPT_LIMIT)));
}

/** Paths, as path text, that were noted when a promotion went to rest. Throws UntrustedFile, CodecError. */
export function keptPaths(own: number, place: Resting, id: string): string[] {
  const folder = new RestingFolder(own, place, id);
  try {
    const content = readTrusted(folder.open(), KEPT, KEPT_BYTES, ownTrust());
    const paths = content === undefined ? [] : decode(content);
    return Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : [];
  } finally {
    folder.close();
  }
}

/** Removes a folder of a resting place whose journal has moved on. */
export function forgetResting(own: number, place: Resting, id: string): void {
  const folder = new RestingFolder(own, place, id);
  try {
    if (folder.has(KEPT)) unlinkat(folder.open(), Buffer.from(KEPT), 0);
    // A note whose writing was cut would keep the folder, and with it every later recovery from ending.
    dropUnfinished(folder.open(), KEPT);
  } finally {
    folder.close();
  }
  inPlace(own, place, (parent) => {
    unlinkat(parent, Buffer.from(id), AT_REMOVEDIR);
    fsync(parent);
  });
}

/** Moves the folder of a promotion from one resting place to another. */
export function moveResting(own: number, from: Resting, to: Resting, id: string): void {
  inPlace(own, from, (old) =>
    inPlace(own, to, (fresh) => {
      renameat2(old, Buffer.from(id), fresh, Buffer.from(id), RENAME.NOREPLACE);
      fsync(fresh);
      fsync(old);
    }),
  );
}
