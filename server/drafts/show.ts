import type { PersonId, PromotionId } from '../../helpers/protocol/ids.ts';
import { Refusal } from '../refusal.ts';
import type { Reader } from '../store/store.ts';
import type { PromotionSummary } from './answers.ts';
import { findPromotion } from './store.ts';
import type { PromotionRow } from './store.ts';

/** One promotion of a person's own. Throws Refusal PROMOTION_ABSENT. */
export async function showPromotion(reader: Reader, person: PersonId, id: PromotionId): Promise<PromotionSummary> {
  const promotion = await ownPromotion(reader, person, id);
  const review = await reader
    .selectFrom('reviews')
    .select('changeCount')
    .where('id', '=', promotion.review)
    .executeTakeFirst();
  const executor = await reader
    .selectFrom('executors')
    .select('label')
    .where('id', '=', promotion.executor)
    .executeTakeFirst();
  const { review: reviewId, run, state, manifestDigest, expiresAt, outcome, code } = promotion;
  return {
    promotion: id,
    review: reviewId,
    run,
    state,
    manifestDigest,
    changeCount: review?.changeCount ?? 0,
    executorLabel: executor?.label ?? '',
    expiresAt,
    outcome,
    code,
  };
}

/** A promotion that this person prepared. Throws Refusal PROMOTION_ABSENT. */
export async function ownPromotion(reader: Reader, person: PersonId, id: PromotionId): Promise<PromotionRow> {
  const promotion = await findPromotion(reader, id);
  if (promotion?.person === person) return promotion;
  throw absent();
}

/** Refuses a promotion that was decided or is past its time. Throws Refusal PROMOTION_EXPIRED or PROMOTION_USED. */
export function requirePrepared(promotion: PromotionRow, now: number): void {
  if (promotion.state === 'expired' || (promotion.state === 'prepared' && now >= promotion.expiresAt)) {
    throw new Refusal('PROMOTION_EXPIRED', 'This promotion was prepared more than ten minutes ago; prepare it anew.');
  }
  if (promotion.state !== 'prepared') throw new Refusal('PROMOTION_USED', 'This promotion was decided already.');
}

function absent(): Refusal {
  return new Refusal('PROMOTION_ABSENT', 'There is no such promotion among yours.', { status: 404 });
}
