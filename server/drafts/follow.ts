import { encode } from '../../helpers/protocol/codec.ts';
import { canonicalBytes } from '../../helpers/protocol/descriptor.ts';
import { operationShape } from '../../helpers/protocol/operations.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import type { Outcome } from '../../machines/values.ts';
import type { CommandRow } from '../commands/store.ts';
import type { Work } from '../commands/work.ts';
import { newId } from '../new-id.ts';
import type { Writer } from '../store/store.ts';
import { promotionEvents } from './rules.ts';
import { findPromotionOf, stepPromotion } from './store.ts';

/** What hangs on a command follows it in the same transaction: a review is kept, a promotion moves on. */
export async function followCommand(work: Work, tx: Writer, row: CommandRow, result: unknown): Promise<void> {
  if (row.operation === 'workspace.review' && row.outcome === 'succeeded' && isFirstPage(row))
    await keepReview(work, tx, row, result);
  if (row.operation === 'workspace.promote') await movePromotion(work, tx, row, result);
}

/** Arguments of a review's first page; later pages belong to the same review. */
const firstPages = [{}, { cursor: '0' }].map((value) => sha256(encode(value)));

function isFirstPage({ argumentsDigest }: CommandRow): boolean {
  return firstPages.some((digest) => digest.equals(argumentsDigest));
}

/** Only digests and the number of changes are kept; the list itself stays in the sealed result. */
async function keepReview(work: Work, tx: Writer, row: CommandRow, result: unknown): Promise<void> {
  const reviewed = operationShape('workspace.review').result.safeParse(result);
  const run = await tx.selectFrom('runs').selectAll().where('id', '=', row.run).executeTakeFirst();
  if (!reviewed.success || !run) return;
  const { manifestDigest, rootIdentity, changeCount } = reviewed.data;
  const { person, agent } = run;
  const { executor, run: runId, id: command } = row;
  await tx
    .insertInto('reviews')
    .values({
      id: newId('rev'),
      run: runId,
      person,
      agent,
      executor,
      command,
      digest: sha256(
        canonicalBytes({ agent, changeCount, executor, manifestDigest, person, rootIdentity, run: runId }),
      ),
      manifestDigest: Buffer.from(manifestDigest, 'hex'),
      rootIdentity: Buffer.from(rootIdentity, 'hex'),
      changeCount,
      createdAt: work.clock.now(),
    })
    .execute();
}

async function movePromotion(work: Work, tx: Writer, row: CommandRow, result: unknown): Promise<void> {
  const promotion = await findPromotionOf(tx, row.id);
  if (!promotion) return;
  const applied = operationShape('workspace.promote').result.safeParse(result);
  const events = promotionEvents(
    { state: promotion.state, confirmation: promotion.confirmation, manifestDigest: promotion.manifestDigest },
    {
      state: row.state,
      // A closed command's outcome is the name of its final state.
      outcome: row.outcome as Outcome | null,
      code: row.code,
      appliedManifest: applied.success ? applied.data.manifestDigest : undefined,
    },
  );
  let current = promotion;
  for (const event of events) current = (await stepPromotion(work, tx, current, event)) ?? current;
}
