import type { Selectable } from 'kysely';
import type { CommandId, PromotionId } from '../../helpers/protocol/ids.ts';
import { promotionMachine } from '../../machines/promotion/machine.ts';
import type { Confirmation, PromotionEvent } from '../../machines/promotion/types.ts';
import { begin, step } from '../../machines/step.ts';
import type { Stored } from '../../machines/step.ts';
import { record } from '../audit/record.ts';
import { stateName } from '../commands/rules.ts';
import type { WorkTables } from '../commands/tables.ts';
import type { Context } from '../context.ts';
import type { Reader, Writer } from '../store/store.ts';

type PromotionColumns = Selectable<WorkTables['promotions']>;

/** A promotion as its row keeps it, digests as hexadecimal digits. */
export type PromotionRow = Omit<PromotionColumns, 'manifestDigest' | 'reviewDigest' | 'policyDigest'> & {
  readonly manifestDigest: string;
  readonly reviewDigest: string;
  readonly policyDigest: string;
  readonly confirmation: Confirmation;
};

/** A review as its row keeps it. */
export type ReviewRow = Selectable<WorkTables['reviews']>;

/** First machine state of a prepared promotion. */
export function preparedState(input: {
  readonly promotionId: string;
  readonly runId: string;
  readonly executorId: string;
  readonly reviewDigest: string;
  readonly manifestDigest: string;
  readonly confirmation: Confirmation;
}): { readonly stored: string; readonly state: string } {
  const { stored } = begin(promotionMachine, input);
  return { stored: JSON.stringify(stored), state: stateName(stored.value) };
}

/** The promotion that a command carries out, or undefined. */
export async function findPromotionOf(reader: Reader, command: CommandId): Promise<PromotionRow | undefined> {
  const row = await reader.selectFrom('promotions').selectAll().where('command', '=', command).executeTakeFirst();
  return row && readRow(row);
}

/** One promotion, or undefined. */
export async function findPromotion(reader: Reader, id: PromotionId): Promise<PromotionRow | undefined> {
  const row = await reader.selectFrom('promotions').selectAll().where('id', '=', id).executeTakeFirst();
  return row && readRow(row);
}

/** Reads a row's digests and its machine's confirmation. */
export function readRow(row: PromotionColumns): PromotionRow {
  return {
    ...row,
    manifestDigest: row.manifestDigest.toString('hex'),
    reviewDigest: row.reviewDigest.toString('hex'),
    policyDigest: row.policyDigest.toString('hex'),
    confirmation: storedOf(row).context.confirmation,
  };
}

function storedOf(row: { readonly stored: string }): Stored<typeof promotionMachine> {
  // Written by this file alone; `step` refuses what its machine never wrote.
  return JSON.parse(row.stored) as Stored<typeof promotionMachine>;
}

/** Takes one event in the caller's transaction, with its audit entry. Undefined where the machine refuses it: nothing changed. */
export async function stepPromotion(
  context: Pick<Context, 'secrets' | 'clock'>,
  tx: Writer,
  row: PromotionRow,
  event: PromotionEvent,
): Promise<PromotionRow | undefined> {
  const stepped = step(promotionMachine, storedOf(row), event);
  if (!stepped.ok) return undefined;
  const { stored } = stepped;
  const done = stored.status === 'done';
  const columns = {
    stored: JSON.stringify(stored),
    state: stateName(stored.value),
    outcome: done ? stateName(stored.value) : null,
    code: stored.context.code,
    endedAt: done ? context.clock.now() : null,
  };
  await tx.updateTable('promotions').set(columns).where('id', '=', row.id).execute();
  const { person, agent, executor, run, command } = row;
  await record(context, tx, {
    action: event.type,
    person,
    agent,
    executor,
    run,
    ...(command === null ? {} : { command }),
    outcome: ['refused', 'failed'].includes(columns.state) ? 'failed' : 'done',
    ...(columns.code === null ? {} : { reason: columns.code }),
    facts: { from: row.state, to: columns.state },
  });
  return { ...row, ...columns };
}
