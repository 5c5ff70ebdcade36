import { sql } from 'kysely';
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

/** Remembers further statements, the highest of each number, in the transaction that takes them: one statement of SQL. */
export async function rememberStated(
  tx: Writer,
  executor: ExecutorId,
  ...statements: readonly {
    readonly guard: number;
    readonly ledgerCount?: number;
    readonly ledgerHead?: Uint8Array;
  }[]
): Promise<void> {
  const stated = statements.reduce(
    (known, { ledgerHead, ...rest }) =>
      remember(known, ledgerHead ? { ...rest, ledgerHead: Buffer.from(ledgerHead).toString('hex') } : rest),
    nothingRemembered,
  );
  const row = { ...stated, ledgerHead: Buffer.from(stated.ledgerHead, 'hex') };
  await tx
    .insertInto('channels')
    .values({ executor, ...row, fence: 0, approval: 0 })
    .onConflict((conflict) =>
      conflict.column('executor').doUpdateSet({
        guard: sql`case when excluded."guard" > "channels"."guard" then excluded."guard" else "channels"."guard" end`,
        ledgerHead: sql`case when excluded."ledgerCount" > "channels"."ledgerCount" then excluded."ledgerHead" else "channels"."ledgerHead" end`,
        ledgerCount: sql`case when excluded."ledgerCount" > "channels"."ledgerCount" then excluded."ledgerCount" else "channels"."ledgerCount" end`,
      }),
    )
    .execute();
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
