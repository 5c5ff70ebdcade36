/*
 * Promotions that can be undone later, and how much of them is kept: the newest, up to a size and an age that the owner sets.
 *
 * INVARIANT 1  The newest one is never forgotten whole: its journal shows that it was committed. Beyond a limit its old files go.
 */
import { closeSync } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import { AT_REMOVEDIR, fsync, statx, unlinkat } from '../runtime/native-files.ts';
import { promotionIdSchema } from '../protocol/ids.ts';
import type { PromotionId } from '../protocol/ids.ts';
import type { Policy } from '../protocol/policy.ts';
import { readJournal } from './journal.ts';
import type { Prepared } from './journal.ts';
import { JournalDamaged } from './journal-records.ts';
import { hasOwn, replaceOwn } from './own-folder.ts';
import { isResting, restingIds, RestingFolder } from './resting-place.ts';
import { namesIn, openFolderAt, statusAt } from './tree.ts';

const JOURNAL = 'journal';
const UNDONE = 'undone';
const NOT_KEPT = 'not-kept';
const MIB = 1_048_576;
const DAY_MS = 86_400_000;

/** How much is kept: old files of all kept promotions together, of one alone too, in bytes, and their age in ms. */
export interface HistoryLimits {
  readonly bytes: number;
  readonly ageMs: number;
}

/** Limits as the owner's policy states them; no day is no byte either. */
export function limitsOf({ history: { megabytes, days } }: Policy): HistoryLimits {
  return { bytes: days === 0 ? 0 : megabytes * MIB, ageMs: days * DAY_MS };
}

/** Most old files of one promotion, in bytes, while nobody can say what the owner wants. */
export const DEFAULT_BYTES = 1024 * MIB;

interface Kept {
  readonly id: string;
  readonly bytes: number;
  readonly atNs: bigint;
}

/** Forgets the oldest promotions beyond the limits. `now` in ms since the Unix epoch. Throws NativeError. */
export function pruneHistory(own: number, now: number, limits: HistoryLimits): void {
  const kept = restingIds(own, 'history').map((id) => sizeOf(own, id));
  kept.sort((one, two) => (one.atNs > two.atNs ? -1 : 1));
  let bytes = 0;
  for (const [index, promotion] of kept.entries()) {
    bytes += promotion.bytes;
    const isOld = promotion.atNs <= BigInt(now - limits.ageMs) * 1_000_000n;
    if (!isOld && bytes <= limits.bytes) continue;
    if (index === 0) dropOldFiles(own, promotion.id);
    else forget(own, promotion.id);
  }
}

/** The journal's time is when the promotion went to rest; one without a journal is resting just now. */
function sizeOf(own: number, id: string): Kept {
  const folder = new RestingFolder(own, 'history', id);
  try {
    const opened = folder.open();
    const files = namesIn(opened).map((name) => statx(opened, name));
    const bytes = files.reduce((sum, { size }) => sum + Number(size), 0);
    const latest = files.reduce((time, { ctimeNs }) => (ctimeNs > time ? ctimeNs : time), 0n);
    return { id, bytes, atNs: statusAt(opened, Buffer.from(JOURNAL))?.ctimeNs ?? latest };
  } finally {
    folder.close();
  }
}

/** One kept promotion; `digest`, 64 hexadecimal digits, is that of its journal. */
export interface PastPromotion {
  readonly prepared: Prepared;
  readonly digest: string;
  readonly state: 'kept' | 'waiting' | 'undone';
}

/** Ids of all promotions that are kept or wait to be. */
export function pastIds(own: number): PromotionId[] {
  const ids = new Set([...restingIds(own, 'waiting'), ...restingIds(own, 'history')]);
  return [...ids].flatMap((id) => promotionIdSchema.safeParse(id).data ?? []);
}

/** Reads a kept promotion, or undefined where there is none. Throws JournalDamaged, UntrustedFile. */
export function readPast(own: number, id: string): PastPromotion | undefined {
  const isWaiting = isResting(own, 'waiting', id);
  const place = isWaiting ? 'waiting' : 'history';
  if (!isResting(own, place, id)) return undefined;
  const folder = new RestingFolder(own, place, id);
  try {
    if (!folder.has(JOURNAL)) return undefined;
    const found = readJournal(folder.open(), JOURNAL, 'committed');
    if (found.state === 'staging' || found.prepared.begin.promotion !== id)
      throw new JournalDamaged('a journal of another promotion');
    const state = isWaiting ? 'waiting' : folder.has(UNDONE) ? 'undone' : 'kept';
    return { prepared: found.prepared, digest: found.digest, state };
  } finally {
    folder.close();
  }
}

/** Notes that a promotion was undone, by another one, so that it is not undone twice; its old files are back and go. May be repeated. Throws NativeError. */
export function markUndone(own: number, id: string, by: string): void {
  if (!isResting(own, 'history', id)) return;
  dropOldFiles(own, id);
  const folder = new RestingFolder(own, 'history', id);
  try {
    if (!hasOwn(folder.open(), UNDONE)) replaceOwn(folder.open(), UNDONE, Buffer.from(by));
  } finally {
    folder.close();
  }
}

/** Whether a disk has no room. */
export function isFull(error: unknown): boolean {
  return error instanceof NativeError && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
}

/** Notes that the disk was full when the old files of a promotion were to be kept; those that were undo nothing alone, and make room for the note. Throws NativeError for anything but a disk that is still full. */
export function noteNotKept(own: number, id: string, count: number): void {
  const folder = new RestingFolder(own, 'history', id);
  try {
    if (isResting(own, 'history', id)) dropOldFiles(own, id);
    replaceOwn(folder.open(), NOT_KEPT, Buffer.from(String(count)));
  } catch (error) {
    // Then nobody is told why, only that they are not kept.
    if (!isFull(error)) throw error;
  } finally {
    folder.close();
  }
}

/** Whether a full disk is why a promotion's old files are not kept. */
export function wasFull(own: number, id: string): boolean {
  const folder = new RestingFolder(own, 'history', id);
  try {
    return folder.has(NOT_KEPT);
  } finally {
    folder.close();
  }
}

/** How many old files are kept of a promotion, and their bytes. */
export function oldFilesOf(own: number, id: string): { readonly count: number; readonly bytes: number } {
  if (!isResting(own, 'history', id)) return { count: 0, bytes: 0 };
  const folder = new RestingFolder(own, 'history', id);
  try {
    const old = oldFilesIn(folder.open());
    return { count: old.length, bytes: old.reduce((sum, name) => sum + Number(statx(folder.open(), name).size), 0) };
  } finally {
    folder.close();
  }
}

/** Drops what a kept promotion could be undone with; that it was committed stays known. */
function dropOldFiles(own: number, id: string): void {
  const folder = new RestingFolder(own, 'history', id);
  try {
    const old = oldFilesIn(folder.open());
    for (const name of old) unlinkat(folder.open(), name, 0);
    if (old.length > 0) fsync(folder.open());
  } finally {
    folder.close();
  }
}

/** Old files lie under the slots of their steps. */
function oldFilesIn(folder: number): Buffer[] {
  return namesIn(folder).filter((name) => /^\d+$/.test(name.toString('latin1')));
}

function forget(own: number, id: string): void {
  const history = openFolderAt(own, Buffer.from('history'));
  try {
    const folder = openFolderAt(history, Buffer.from(id));
    try {
      for (const name of namesIn(folder)) unlinkat(folder, name, 0);
    } finally {
      closeSync(folder);
    }
    unlinkat(history, Buffer.from(id), AT_REMOVEDIR);
    fsync(history);
  } finally {
    closeSync(history);
  }
}
