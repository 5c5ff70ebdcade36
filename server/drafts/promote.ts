/*
 * From a reviewed draft to the person's workspace. The person sees a review, prepares its promotion, and confirms with the current
 * password; the machine verifies the signed approval itself.
 *
 * INVARIANT 1  All eight facts of N-146 are read again in the transaction that makes the command; the first that changed is named,
 *              and there is no command then.
 * INVARIANT 2  An approval serves once: its promotion's id is the command's idempotency key and its state is left for good (N-147).
 */
import { encode } from '../../helpers/protocol/codec.ts';
import type { PersonId, PromotionId } from '../../helpers/protocol/ids.ts';
import { statementDigest } from '../../helpers/protocol/signed.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import type { Approval } from '../../helpers/protocol/statements.ts';
import { requirePassword } from '../accounts/password.ts';
import { nextNumber } from '../channel/store.ts';
import { cancelCommand } from '../commands/cancel.ts';
import { EARLY_MS } from '../commands/rules.ts';
import type { Work } from '../commands/work.ts';
import { Refusal } from '../refusal.ts';
import { bindForPerson } from '../runs/bind.ts';
import { start } from '../runs/call.ts';
import { findRun } from '../runs/store.ts';
import type { Writer } from '../store/store.ts';
import type { PromotionSummary } from './answers.ts';
import { changedNow, factRefusal } from './facts.ts';
import { isFactChanged } from './rules.ts';
import { ownPromotion, requirePrepared, showPromotion } from './show.ts';
import { findPromotion, stepPromotion } from './store.ts';
import type { PromotionRow } from './store.ts';

/** How long after the confirmation a machine may begin, in ms: the command's lifetime and a margin. */
const APPROVED_MS = 180_000;

/**
 * Approves a prepared promotion with the person's current password and sends it to its machine. Throws Refusal PASSWORD_WRONG, then
 * nothing changed; PROMOTION_USED or PROMOTION_EXPIRED; `offline` and the like, then it may be tried again; or the
 * fact of N-146 that changed, and the promotion is refused for good.
 */
export async function approvePromotion(
  work: Work,
  person: PersonId,
  id: PromotionId,
  password: string,
): Promise<PromotionSummary> {
  const promotion = await ownPromotion(work.store.read, person, id);
  await requirePassword(work, person, password);
  requirePrepared(promotion, work.clock.now());
  try {
    await dispatch(work, promotion);
  } catch (error) {
    if (error instanceof Refusal && isFactChanged(error.code)) await withdraw(work, promotion, error.code);
    throw error;
  }
  work.wake.run(promotion.run);
  return showPromotion(work.store.read, person, id);
}

async function dispatch(work: Work, promotion: PromotionRow): Promise<void> {
  const { read } = work.store;
  const changed = await changedNow(work, read, promotion);
  if (changed) throw factRefusal(changed);
  const run = await findRun(read, promotion.run);
  const review = await read.selectFrom('reviews').selectAll().where('id', '=', promotion.review).executeTakeFirst();
  if (!run || !review) throw factRefusal('PROMOTION_RUN_CHANGED');
  const binding = await bindForPerson(work, run, 'workspace.promote');
  const sequence = await work.store.write((tx) => nextNumber(tx, promotion.executor, 'approval'));
  const now = work.clock.now();
  const { id, executor, run: runId, person, agent } = promotion;
  const approval = await signApproval(work, {
    promotion: id,
    executor,
    run: runId,
    person,
    agent,
    review: review.id,
    manifestDigest: review.manifestDigest,
    rootIdentity: review.rootIdentity,
    fence: binding.fence,
    policyDigest: Buffer.from(promotion.policyDigest, 'hex'),
    sequence,
    notBefore: now - EARLY_MS,
    expiresAt: now + APPROVED_MS,
  });
  const approvalDigest = statementDigest('control.approval', approval.payload).toString('hex');
  await start(work, {
    run,
    binding,
    arguments: { approvalDigest, manifestDigest: promotion.manifestDigest, promotionId: id },
    content: encode(approval),
    idempotencyKey: id,
    also: (tx, command) => approveInside(work, tx, promotion, { approval, approvalDigest, command }),
  });
}

async function signApproval(work: Work, fields: Omit<Approval, 'guard'>): Promise<Signed> {
  const [signed] = await work.signer.sign([{ type: 'control.approval', fields }]);
  if (!signed) throw new Error('the command key gave no signature');
  return signed;
}

/** In the transaction of the command: the facts once more, then both steps of the promotion. */
async function approveInside(
  work: Work,
  tx: Writer,
  prepared: PromotionRow,
  made: {
    readonly approval: Signed;
    readonly approvalDigest: string;
    readonly command: NonNullable<PromotionRow['command']>;
  },
): Promise<void> {
  const promotion = await findPromotion(tx, prepared.id);
  if (!promotion) throw factRefusal('PROMOTION_RUN_CHANGED');
  requirePrepared(promotion, work.clock.now());
  const changed = await changedNow(work, tx, promotion);
  if (changed) throw factRefusal(changed);
  const { approval, approvalDigest, command } = made;
  const { reviewDigest, manifestDigest } = promotion;
  const approved = await stepPromotion(work, tx, promotion, {
    type: 'promotion.approve',
    reviewDigest,
    manifestDigest,
    approvalDigest,
  });
  const sent =
    approved && (await stepPromotion(work, tx, approved, { type: 'promotion.dispatched', commandId: command }));
  if (!sent) throw factRefusal('PROMOTION_REVIEW_CHANGED');
  await tx
    .updateTable('promotions')
    .set({
      command,
      approvalDigest: Buffer.from(approvalDigest, 'hex'),
      approvalPayload: Buffer.from(approval.payload),
      approvalSignature: Buffer.from(approval.signature),
    })
    .where('id', '=', promotion.id)
    .execute();
}

async function withdraw(work: Work, { id }: PromotionRow, code: string): Promise<void> {
  await work.store.write(async (tx) => {
    const promotion = await findPromotion(tx, id);
    if (promotion) await stepPromotion(work, tx, promotion, { type: 'promotion.withdrawn', code });
  });
}

/** Gives a promotion up: at once before it is approved; afterwards its machine restores up to its commit (N-533). Throws Refusal. */
export async function cancelPromotion(work: Work, person: PersonId, id: PromotionId): Promise<void> {
  const promotion = await ownPromotion(work.store.read, person, id);
  const stepped = await work.store.write(async (tx) => {
    const now = await findPromotion(tx, id);
    return now && stepPromotion(work, tx, now, { type: 'promotion.cancel', by: 'person' });
  });
  if (!stepped) throw new Refusal('PROMOTION_ENDED', 'This promotion has ended, or its cancel is under way.');
  if (stepped.command && stepped.endedAt === null) await cancelCommand(work, stepped.command, 'person');
  work.wake.run(promotion.run);
}
