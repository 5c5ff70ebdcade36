import { sql } from 'kysely';
import type { Selectable } from 'kysely';
import type { CommandId } from '../../helpers/protocol/ids.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import { commandMachine } from '../../machines/command/machine.ts';
import type { CommandEvent } from '../../machines/command/types.ts';
import { begin, step } from '../../machines/step.ts';
import type { StepRefusal, Stepped, Stored } from '../../machines/step.ts';
import type { Reader, Writer } from '../store/store.ts';
import { isOpen, stateName } from './rules.ts';
import type { WorkTables } from './tables.ts';

/** A 1 that stands in the query's own text: only then a partial index is used. */
export const YES = sql.lit<1>(1);

/** A command as its row keeps it. */
export type CommandRow = Selectable<WorkTables['commands']>;
/** A stored signed statement. */
export type ReceiptRow = Selectable<WorkTables['receipts']>;

/** Machine columns of a command: its state and what queries need of it. */
type MachineColumns = Pick<CommandRow, 'stored' | 'state' | 'open' | 'outcome' | 'gate' | 'code'>;

/** A step of a command that was taken, and the row after it. */
export type CommandStep =
  | { readonly ok: true; readonly row: CommandRow; readonly actions: Stepped<typeof commandMachine>['actions'] }
  | StepRefusal;

function columnsOf(stored: Stored<typeof commandMachine>): MachineColumns {
  const state = stateName(stored.value);
  const open = isOpen(state);
  return {
    stored: JSON.stringify(stored),
    state,
    open: open ? 1 : 0,
    outcome: open ? null : state,
    gate: stored.context.gate,
    code: stored.context.code,
  };
}

/** Machine columns of a command that waits. */
export function queuedColumns(input: Parameters<typeof begin<typeof commandMachine>>[1]): MachineColumns {
  return columnsOf(begin(commandMachine, input).stored);
}

/** The machine's state of a row. */
export function storedOf(row: CommandRow): Stored<typeof commandMachine> {
  // The column is written by `columnsOf` alone; step() checks machine, version and state before it uses them.
  return JSON.parse(row.stored) as Stored<typeof commandMachine>;
}

/** A row with another state of its machine; not stored yet. */
export function rowAfter(row: CommandRow, stored: Stored<typeof commandMachine>): CommandRow {
  return { ...row, ...columnsOf(stored) };
}

/** Takes one event on a row without storing it. */
export function stepRow(row: CommandRow, event: CommandEvent): CommandStep {
  const stepped = step(commandMachine, storedOf(row), event);
  return stepped.ok ? { ok: true, row: rowAfter(row, stepped.stored), actions: stepped.actions } : stepped;
}

/** The row of a command, or undefined. */
export async function findCommand(reader: Reader, id: CommandId): Promise<CommandRow | undefined> {
  return reader.selectFrom('commands').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Writes a stepped row back. */
export async function saveCommand(tx: Writer, { id, ...row }: CommandRow): Promise<void> {
  const { stored, state, open, outcome, gate, code, epoch, cancelWanted, resultDigest, deadline, leasedAt, endedAt } =
    row;
  await tx
    .updateTable('commands')
    .set({ stored, state, open, outcome, gate, code, epoch, cancelWanted, resultDigest, deadline, leasedAt, endedAt })
    .where('id', '=', id)
    .execute();
}

/** Signed statements of a command in chain order. */
export async function chainOf(reader: Reader, command: CommandId): Promise<ReceiptRow[]> {
  return reader.selectFrom('receipts').selectAll().where('command', '=', command).orderBy('position').execute();
}

/** Adds signed statements to the chain of a command, the first at `position`. */
export async function addToChain(
  tx: Writer,
  command: CommandId,
  position: number,
  at: number,
  statements: readonly { readonly type: string; readonly signed: Signed; readonly digest: Uint8Array }[],
): Promise<void> {
  if (statements.length === 0) return;
  await tx
    .insertInto('receipts')
    .values(
      statements.map(({ type, signed, digest }, index) => ({
        command,
        position: position + index,
        type,
        payload: Buffer.from(signed.payload),
        signature: Buffer.from(signed.signature),
        digest: Buffer.from(digest),
        at,
      })),
    )
    .execute();
}

/** Puts a command at the end of the queue. */
export async function enqueue(tx: Writer, command: CommandId): Promise<void> {
  const last = await tx
    .selectFrom('jobs')
    .select(({ fn }) => fn.max('position').as('position'))
    .executeTakeFirst();
  await tx
    .insertInto('jobs')
    .values({ position: (last?.position ?? 0) + 1, command })
    .execute();
}

/** Takes a command off the queue. */
export async function dequeue(tx: Writer, command: CommandId): Promise<void> {
  await tx.deleteFrom('jobs').where('command', '=', command).execute();
}
