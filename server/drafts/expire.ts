import type { Work } from '../commands/work.ts';
import { readRow, stepPromotion } from './store.ts';

/** Ends promotions that nobody approved within their time (N-147). */
export async function expirePromotions(work: Work): Promise<void> {
  const now = work.clock.now();
  const due = work.store.read
    .selectFrom('promotions')
    .select('id')
    .where('state', 'in', ['prepared', 'approved'])
    .where('expiresAt', '<=', now)
    .limit(64);
  if ((await due.execute()).length === 0) return;
  await work.store.write(async (tx) => {
    const rows = await tx
      .selectFrom('promotions')
      .selectAll()
      .where('state', 'in', ['prepared', 'approved'])
      .where('expiresAt', '<=', now)
      .execute();
    for (const row of rows) await stepPromotion(work, tx, readRow(row), { type: 'promotion.expired' });
  });
}
