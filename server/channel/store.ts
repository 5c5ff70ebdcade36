import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import type { Reader, Writer } from '../store/store.ts';
import { nothingRemembered, remember } from './rules.ts';
import type { Remembered } from './rules.ts';

/** What is remembered of a machine's statements; nothing before its first proof. */
export async function findRemembered(reader: Reader, executor: ExecutorId): Promise<Remembered> {
  const row = await reader
    .selectFrom('channels')
    .select(['ledgerCount', 'ledgerHead', 'guard'])
    .where('executor', '=', executor)
    .executeTakeFirst();
  return row ? { ...row, ledgerHead: row.ledgerHead.toString('hex') } : nothingRemembered;
}

/** Remembers a further statement in the transaction that takes it. */
export async function rememberStated(
  tx: Writer,
  executor: ExecutorId,
  stated: { readonly guard: number; readonly ledgerCount?: number; readonly ledgerHead?: Uint8Array },
): Promise<void> {
  const before = await findRemembered(tx, executor);
  const { ledgerHead, ...rest } = stated;
  const after = remember(before, ledgerHead ? { ...rest, ledgerHead: Buffer.from(ledgerHead).toString('hex') } : rest);
  const row = { ...after, ledgerHead: Buffer.from(after.ledgerHead, 'hex') };
  await ensureChannel(tx, executor);
  await tx.updateTable('channels').set(row).where('executor', '=', executor).execute();
}

/** Counts one of an executor's numbers on and returns it; the first is 1. */
export async function nextNumber(tx: Writer, executor: ExecutorId, of: 'fence' | 'approval'): Promise<number> {
  await ensureChannel(tx, executor);
  const row = await tx
    .updateTable('channels')
    .set((column) => ({ [of]: column(of, '+', 1) }))
    .where('executor', '=', executor)
    .returning(of)
    .executeTakeFirstOrThrow();
  return row[of];
}

async function ensureChannel(tx: Writer, executor: ExecutorId): Promise<void> {
  const empty = { ledgerCount: 0, ledgerHead: Buffer.alloc(32), guard: 0, fence: 0, approval: 0 };
  await tx
    .insertInto('channels')
    .values({ executor, ...empty })
    .onConflict((conflict) => conflict.column('executor').doNothing())
    .execute();
}
