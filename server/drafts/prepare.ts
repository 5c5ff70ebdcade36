import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import type { PersonId, PromotionId, ReviewId } from '../../helpers/protocol/ids.ts';
import type { Work } from '../commands/work.ts';
import { findExecutor } from '../executors/store.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { RunRow } from '../runs/store.ts';
import type { Writer } from '../store/store.ts';
import type { PromotionSummary } from './answers.ts';
import { ownReview } from './reviews.ts';
import { PREPARED_MS } from './rules.ts';
import { showPromotion } from './show.ts';
import { preparedState } from './store.ts';
import type { ReviewRow } from './store.ts';

interface Preparing {
  readonly review: ReviewRow;
  readonly run: RunRow;
  readonly confirmed: Descriptor;
  readonly authorizationRevision: number;
  readonly now: number;
}

/** Prepares the promotion of a review; one that is prepared already is given again. Throws Refusal REVIEW_ABSENT or what stands against it. */
export async function preparePromotion(work: Work, person: PersonId, id: ReviewId): Promise<PromotionSummary> {
  const { review, run } = await ownReview(work.store.read, person, id);
  const promotion = await work.store.write(async (tx) => {
    const now = work.clock.now();
    const standing = await tx
      .selectFrom('promotions')
      .select('id')
      .where('review', '=', id)
      .where('state', '=', 'prepared')
      .where('expiresAt', '>', now)
      .executeTakeFirst();
    if (standing) return standing.id;
    const executor = await findExecutor(tx, review.executor);
    const { confirmed, authorizationRevision } = executor ?? {};
    if (!confirmed || authorizationRevision === undefined) {
      throw new Refusal('DESCRIPTOR_UNREVIEWED', 'No descriptor of this machine is confirmed.');
    }
    return insertPromotion(tx, { review, run, confirmed, authorizationRevision, now });
  });
  return showPromotion(work.store.read, person, promotion);
}

async function insertPromotion(
  tx: Writer,
  { review, run, confirmed, authorizationRevision, now }: Preparing,
): Promise<PromotionId> {
  const id = newId('prm');
  const digests = {
    reviewDigest: review.digest.toString('hex'),
    manifestDigest: review.manifestDigest.toString('hex'),
  };
  await tx
    .insertInto('promotions')
    .values({
      id,
      run: run.id,
      review: review.id,
      person: run.person,
      agent: run.agent,
      executor: review.executor,
      ...preparedState({
        promotionId: id,
        runId: run.id,
        executorId: review.executor,
        confirmation: confirmed.promotion,
        ...digests,
      }),
      reviewDigest: review.digest,
      manifestDigest: review.manifestDigest,
      authorizationRevision,
      policyDigest: Buffer.from(confirmed.policyDigest, 'hex'),
      approvalDigest: null,
      approvalPayload: null,
      approvalSignature: null,
      command: null,
      outcome: null,
      code: null,
      createdAt: now,
      expiresAt: now + PREPARED_MS,
      endedAt: null,
    })
    .execute();
  return id;
}
