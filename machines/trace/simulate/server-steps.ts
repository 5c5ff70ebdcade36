/*
 * Steps of the control plane inside a transaction: a stored machine takes an event, its row is put back, the trace hears of it once it
 * is committed, and what hangs on it follows. What server/executors/lifecycle.ts, commands/finish.ts and drafts/follow.ts do.
 */
import type { CommandEvent } from '../../command/types.ts';
import type { ExecutorEvent } from '../../executor/types.ts';
import type { PromotionEvent } from '../../promotion/types.ts';
import { step } from '../../step.ts';
import { stateName } from '../../../server/commands/rules.ts';
import { Refused } from './database.ts';
import type { Database, Transaction } from './database.ts';
import type { Result } from './messages.ts';
import type { Setting } from './setting.ts';
import type { CommandRow, ExecutorRow, PromotionRow } from './tables.ts';

/** The row of a machine. Throws Refused EXECUTOR_ABSENT. */
export function executorOf(tx: Transaction, id: string): ExecutorRow {
  const row = tx.get('executors', id);
  if (!row) throw new Refused('EXECUTOR_ABSENT');
  return row;
}

/** Takes an event of a machine's lifecycle. Throws Refused with the lifecycle's own code. */
export function stepExecutor(setting: Setting, tx: Transaction, id: string, event: ExecutorEvent): ExecutorRow {
  const row = executorOf(tx, id);
  const stepped = step(setting.rules.executorMachine, row.stored, event);
  if (!stepped.ok) throw new Refused(stepped.code);
  const after = { ...row, stored: stepped.stored };
  tx.put('executors', after);
  tx.told.push({ machine: 'executor', actor: id, event });
  tx.audit.push(event.type);
  return after;
}

/** A grant or the confirmed revision changed: authorisation counts on, every connection is fenced (N-205). */
export function advanceAccess(
  setting: Setting,
  tx: Transaction,
  id: string,
  type: 'access.changed' | 'descriptor.reviewed' = 'access.changed',
): void {
  const row = executorOf(tx, id);
  tx.put('executors', { ...row, authorizationRevision: row.authorizationRevision + 1 });
  tx.audit.push(type);
  if (stateName(row.stored.value) !== 'revoked') stepExecutor(setting, tx, id, { type });
}

/** Takes an event of a command; undefined where it changes nothing. */
export function stepCommand(
  setting: Setting,
  tx: Transaction,
  id: string,
  event: CommandEvent,
  more: Partial<Pick<CommandRow, 'cancelWanted'>> = {},
): CommandRow | undefined {
  const row = tx.get('commands', id);
  if (!row) return undefined;
  const stepped = step(setting.rules.commandMachine, row.stored, event);
  if (!stepped.ok) return undefined;
  return storeCommand(setting, tx, { ...row, ...more, stored: stepped.stored }, [event], undefined);
}

/** Puts a stepped command back; a promotion that hangs on it follows in the same transaction. */
export function storeCommand(
  setting: Setting,
  tx: Transaction,
  after: CommandRow,
  events: readonly CommandEvent[],
  result: Result | undefined,
): CommandRow {
  // What is unknown may still run: the wish to end it stands until a late receipt settles it.
  const row = after.stored.status === 'done' ? { ...after, cancelWanted: false } : after;
  tx.put('commands', row);
  for (const event of events) tx.told.push({ machine: 'command', actor: row.id, event });
  if (row.stored.status === 'done') tx.audit.push('command.ended');
  followPromotion(setting, tx, row, result);
  return row;
}

function followPromotion(setting: Setting, tx: Transaction, row: CommandRow, result: Result | undefined): void {
  const promotion = row.promotion === undefined ? undefined : tx.get('promotions', row.promotion);
  if (!promotion) return;
  const state = stateName(row.stored.value);
  const outcome = row.stored.status === 'done' || state === 'unknown' ? state : null;
  const events = setting.rules.promotionEvents(
    {
      state: stateName(promotion.stored.value),
      confirmation: promotion.stored.context.confirmation,
      manifestDigest: promotion.stored.context.manifestDigest,
    },
    {
      state,
      // A closed command's outcome is the name of its final state.
      outcome: outcome as Parameters<typeof setting.rules.promotionEvents>[1]['outcome'],
      code: row.stored.context.code,
      appliedManifest: result?.manifestDigest,
    },
  );
  for (const event of events) stepPromotion(setting, tx, promotion.id, event);
}

/** Takes an event of a promotion; undefined where it changes nothing. */
export function stepPromotion(
  setting: Setting,
  tx: Transaction,
  id: string,
  event: PromotionEvent,
): PromotionRow | undefined {
  const row = tx.get('promotions', id);
  if (!row) return undefined;
  const stepped = step(setting.rules.promotionMachine, row.stored, event);
  if (!stepped.ok) return undefined;
  const after = { ...row, stored: stepped.stored };
  tx.put('promotions', after);
  tx.told.push({ machine: 'promotion', actor: id, event });
  tx.audit.push(event.type);
  return after;
}

/** Every command that a connection before this epoch was given and did not end is unknown now (R59). */
export function loseCommands(
  { setting, database }: { readonly setting: Setting; readonly database: Database },
  tx: Transaction,
  executor: string,
  before: number,
): void {
  for (const id of database.unsettled(executor)) {
    const epoch = tx.get('commands', id)?.epoch;
    if (epoch === null || epoch === undefined || epoch >= before) continue;
    stepCommand(setting, tx, id, { type: 'connection.lost', epoch });
  }
}
