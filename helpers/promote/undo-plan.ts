/*
 * From a kept promotion to the steps that take it back, and where their content lies.
 *
 * INVARIANT  The steps fit only what the promotion left: the very file, its content and its mode where something stands, and nothing
 *            where it took something away. A file that an undo put there since counts as the one whose place it took, so that
 *            promotions can be undone one after the other.
 */
import { rootIdentity } from '../files/root.ts';
import type { UndoCode, UndoRefusal } from '../protocol/history-facts.ts';
import type { PromotionId } from '../protocol/ids.ts';
import { toPathText } from '../protocol/path-text.ts';
import { statx } from '../runtime/native-files.ts';
import { pastIds, readPast, wasFull } from './history.ts';
import type { PastPromotion } from './history.ts';
import type { Prepared } from './journal.ts';
import type { Facts, Step } from './journal-records.ts';
import { openTrusted, ownTrust, UntrustedFile } from './own-folder.ts';
import { inOrder } from './plan.ts';
import type { Planned, Side } from './plan.ts';
import { needsPerson } from './recover.ts';
import { RestingFolder } from './resting-place.ts';
import type { Scene } from './stage-end.ts';
import type { Contents } from './stage-plan.ts';
import { named, Stopped } from './stop.ts';
import { slotName, statusAt } from './tree.ts';

/** An undo that cannot be, for a reason that lies in the history. `path` is path text. */
export class UndoRefused extends Error {
  override readonly name = 'UndoRefused';
  readonly code: UndoCode;
  readonly path: string | undefined;
  readonly detail: string | undefined;

  constructor(code: UndoCode, path?: Buffer, detail?: string) {
    super(code);
    this.code = code;
    this.detail = detail;
    this.path = path === undefined ? undefined : toPathText(path);
  }
}

/** A refusal as an answer carries it. */
export function refusalOf(refused: UndoRefused | Stopped): UndoRefusal {
  return named<UndoRefusal['code']>(refused);
}

/** A promotion that the history holds whole, and the steps that take it back. */
export interface Reversal {
  readonly past: PastPromotion;
  readonly plan: readonly Planned[];
}

/** The reverse of a kept promotion; `undos` are those of the history. Throws UndoRefused, and Stopped where the root is another one. */
export function reverse(
  { own, root }: Scene,
  promotion: PromotionId,
  past: PastPromotion | undefined,
  undos: readonly Prepared[],
): Reversal {
  if (past === undefined) throw new UndoRefused('UNDO_UNKNOWN');
  if (past.state === 'waiting') throw new UndoRefused('UNDO_WAITING');
  if (past.state === 'undone') throw new UndoRefused('UNDO_DONE');
  const { begin, steps } = past.prepared;
  const { ino } = statx(root, Buffer.alloc(0));
  const isRoot = begin.rootIdentity === rootIdentity(root).toString('hex') && begin.rootIno === ino.toString();
  if (!isRoot) throw new Stopped('PROMOTION_UNSAFE_ROOT');
  checkKept(own, promotion, steps);
  const since = placedSince(undos, begin.at);
  return { past, plan: inOrder(steps.map((step) => reverseOf(step, since))) };
}

/** Whether every old file is there, as far as its size tells; its content is compared when it is staged. */
function checkKept(own: number, promotion: PromotionId, steps: readonly Step[]): void {
  const folder = new RestingFolder(own, 'history', promotion);
  try {
    for (const { slot, path, before, type } of steps) {
      if (before === null || type === 'directory') continue;
      const size = statusAt(folder.open(), slotName(slot))?.size;
      if (size === BigInt(before.size)) continue;
      const why = wasFull(own, promotion) ? 'the disk was full when they were to be' : undefined;
      throw new UndoRefused('UNDO_NOT_KEPT', Buffer.from(path), why);
    }
  } finally {
    folder.close();
  }
}

/** Every undo of the history that can be believed. */
export function undosIn(own: number): Prepared[] {
  const found: Prepared[] = [];
  for (const id of pastIds(own)) {
    try {
      const past = readPast(own, id);
      if (past !== undefined && past.prepared.begin.undoes !== null) found.push(past.prepared);
    } catch (error) {
      // One that is damaged places nothing that anybody could know again.
      if (!needsPerson(error)) throw error;
    }
  }
  return found;
}

type Placed = ReadonlyMap<string, readonly string[]>;

const keyOf = (path: Uint8Array): string => Buffer.from(path).toString('latin1');

/** Inodes that undos have placed since a time, by path. */
function placedSince(undos: readonly Prepared[], since: number): Placed {
  const placed = new Map<string, string[]>();
  for (const { begin, steps } of undos) {
    if (begin.at < since) continue;
    for (const { path, after } of steps) {
      if (after !== null) placed.set(keyOf(path), [...(placed.get(keyOf(path)) ?? []), after.ino]);
    }
  }
  return placed;
}

const REVERSED = { created: 'deleted', modified: 'modified', deleted: 'created' } as const;

function reverseOf({ slot, path, change, type, before, after }: Step, since: Placed): Omit<Planned, 'slot'> {
  return {
    path: Buffer.from(path),
    change: REVERSED[change],
    type,
    before: sideOf(after, since.get(keyOf(path)) ?? []),
    after: sideOf(before, []),
    content: before !== null && type === 'file' ? slot : null,
  };
}

function sideOf(facts: Facts | null, alsoInos: readonly string[]): Side | null {
  if (facts === null) return null;
  const { ino, mode, size, mtimeNs, sha256 } = facts;
  return { mode, bytes: sha256 === '' ? 0 : size, sha256, lost: [], known: { inos: [ino, ...alsoInos], mtimeNs } };
}

/** Old files of a kept promotion, by the slots of its steps. */
export function keptContents(old: RestingFolder): Contents {
  return {
    mismatch: 'PROMOTION_JOURNAL_INVALID',
    open: (slot) => {
      const descriptor = openTrusted(old.open(), String(slot), ownTrust());
      if (descriptor === undefined) throw new UntrustedFile('an old file of the history went away');
      return descriptor;
    },
  };
}
