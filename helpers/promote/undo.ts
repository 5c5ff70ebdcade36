/*
 * An undo: the reverse of a kept promotion, applied as every promotion is (journal.ts), with the old files of the history for its
 * content. It is kept in the history too, so it can itself be undone.
 *
 * INVARIANT  It needs what the owner confirmed at this machine for exactly this journal, once, within an hour.
 *
 * THREAT: a `daemon` that was taken over takes back promotions that a person wants to keep (test/helpers/promote/undo-confirmation.test.ts).
 */
import { randomBytes } from 'node:crypto';
import { rootIdentity } from '../files/root.ts';
import type { Undone } from '../protocol/history-facts.ts';
import type { PromotionId } from '../protocol/ids.ts';
import { apply } from './apply.ts';
import type { Applied, Opening, Pace } from './apply.ts';
import { isFresh } from './approval.ts';
import type { Given } from './approve.ts';
import { readPast } from './history.ts';
import type { PastPromotion } from './history.ts';
import { readMark, writeMark } from './mark.ts';
import { UntrustedFile } from './own-folder.ts';
import { readUndoConfirmation } from './owner-folder.ts';
import type { UndoConfirmation } from './protocol.ts';
import { RestingFolder } from './resting-place.ts';
import { checkOpenRoot } from './root-check.ts';
import type { Scene } from './stage-end.ts';
import { named, Stopped } from './stop.ts';
import { STAGE_PREFIX } from './tree.ts';
import { keptContents, refusalOf, reverse, UndoRefused, undosIn } from './undo-plan.ts';

/** Which promotion is undone, in which boot of the kernel. */
export interface Wish {
  readonly promotion: PromotionId;
  readonly bootId: string;
}

/** Takes a kept promotion back, all or restore. Throws as an apply does, and JournalDamaged. */
export async function undo(given: Given, scene: Scene, { promotion, bootId }: Wish, pace: Pace): Promise<Undone> {
  const { root, draft, own, owner, configuration, forbidden } = given;
  checkOpenRoot(root, [draft, own, owner, configuration], forbidden);
  const old = new RestingFolder(own, 'history', promotion);
  try {
    const { past, plan } = reverse(scene, promotion, readPast(own, promotion), undosIn(own));
    useConfirmation(given, promotion, past.digest);
    return undoneOf(await apply(scene, keptContents(old), openingOf(past, bootId), plan, pace));
  } catch (error) {
    if (error instanceof UndoRefused) return { outcome: 'refused', ...refusalOf(error) };
    throw error;
  } finally {
    old.close();
  }
}

/** Uses up what the owner confirmed of this undo; that is on the disk when it returns. Throws Stopped, MarkDamaged, NativeError. */
function useConfirmation({ own, root, owner }: Given, promotion: PromotionId, digest: string): void {
  const mark = readMark(own);
  const confirmation = confirmationIn(owner, digest);
  const fits =
    confirmation !== undefined &&
    confirmation.undo === promotion &&
    confirmation.journalDigest === digest &&
    confirmation.rootIdentity === rootIdentity(root).toString('hex');
  if (!fits || !isFresh(confirmation.at, mark, digest, Date.now()))
    throw new Stopped('PROMOTION_CONFIRMATION_REQUIRED');
  const others = mark.spent.filter((spent) => spent.manifestDigest !== digest);
  writeMark(own, { ...mark, spent: [...others, { manifestDigest: digest, at: confirmation.at }] });
}

/** A confirmation that cannot be believed is none. */
function confirmationIn(owner: number, digest: string): UndoConfirmation | undefined {
  try {
    return readUndoConfirmation(owner, digest);
  } catch (error) {
    if (error instanceof UntrustedFile) return undefined;
    throw error;
  }
}

function openingOf({ prepared: { begin }, digest }: PastPromotion, bootId: string): Opening {
  return {
    promotion: `prm_${randomBytes(16).toString('hex')}`,
    executor: begin.executor,
    run: begin.run,
    undoes: begin.promotion,
    manifestDigest: begin.manifestDigest,
    // What the owner confirmed stands where an approval would.
    approvalDigest: digest,
    rootIdentity: begin.rootIdentity,
    bootId,
    // nobody can have put a folder of this name there before
    stage: STAGE_PREFIX + randomBytes(16).toString('hex'),
    at: Date.now(),
  };
}

function undoneOf(applied: Applied): Undone {
  switch (applied.outcome) {
    case 'promoted':
      return {
        outcome: 'undone',
        kept: [...applied.kept],
        ...(applied.notKept > 0 ? { notKept: applied.notKept } : {}),
      };
    case 'refused':
      return { outcome: 'refused', ...named(applied) };
    case 'rolled-back':
      return { outcome: 'rolled-back', ...named(applied), kept: [...applied.kept] };
  }
}
