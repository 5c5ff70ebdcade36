import type { CommandId } from '../../helpers/protocol/ids.ts';
import type { Plain } from '../../helpers/protocol/codec.ts';
import type { CommandEvent } from '../../machines/command/types.ts';
import type { Outcome } from '../../machines/values.ts';
import { record } from '../audit/record.ts';
import { followCommand } from '../drafts/follow.ts';
import type { Writer } from '../store/store.ts';
import type { CommandEnd } from './outcomes.ts';
import { dequeue, findCommand, saveCommand, stepRow } from './store.ts';
import type { CommandRow, CommandStep } from './store.ts';
import type { Work } from './work.ts';

/** Stores a stepped command; where its outcome closed, everything that hangs on it follows in the same transaction. */
export async function storeStep(
  work: Work,
  tx: Writer,
  before: CommandRow,
  after: CommandRow,
  result: Plain | undefined,
): Promise<CommandRow> {
  const closed = after.outcome !== before.outcome;
  // What is unknown may still run: the wish to end it stands until a late receipt settles it, or its time has passed.
  const settled = closed && after.outcome !== 'unknown';
  const row = {
    ...after,
    ...(closed ? { endedAt: work.clock.now() } : {}),
    ...(settled ? { cancelWanted: 0 as const } : {}),
  };
  await saveCommand(tx, row);
  if (closed) {
    if (before.state === 'queued') await dequeue(tx, row.id);
    const { executor, run, id: command, outcome, code, agent } = row;
    await record(work, tx, {
      action: 'command.ended',
      ...(agent === null ? {} : { agent }),
      executor,
      run,
      command,
      outcome: outcome === 'succeeded' ? 'done' : outcome === 'refused' ? 'refused' : 'failed',
      facts: { outcome: outcome ?? '', late: before.state === 'unknown' ? 1 : 0 },
      ...(code === null ? {} : { reason: code }),
    });
  }
  if (row.state !== before.state) await followCommand(work, tx, row, result);
  return row;
}

/** Tells whoever waits, after the commit. */
export function tellEnd(work: Work, row: CommandRow, result: Plain | undefined): void {
  work.wake.run(row.run);
  if (row.outcome === null) return;
  work.outcomes.tell(row.id, endOf(row, result));
}

/** How a closed command ended. */
export function endOf(row: CommandRow, result: Plain | undefined): CommandEnd {
  // Columns of `storeStep`: the outcome is a final state's name, the gate a side's.
  const outcome = row.outcome as Outcome;
  // As above.
  const gate = row.gate as CommandEnd['gate'];
  return { outcome, gate, code: row.code, result };
}

/** Takes one event of the control plane's own on a command, in a transaction of its own. Undefined where nothing is changed by it. */
export async function stepCommand(
  work: Work,
  id: CommandId,
  event: CommandEvent,
  more: Partial<Pick<CommandRow, 'cancelWanted'>> = {},
): Promise<CommandRow | undefined> {
  const row = await work.store.write((tx) => stepInside(work, tx, id, event, more));
  if (row) tellEnd(work, row, undefined);
  return row;
}

/** As stepCommand, inside the caller's transaction; the caller tells the end after its commit. */
export async function stepInside(
  work: Work,
  tx: Writer,
  id: CommandId,
  event: CommandEvent,
  more: Partial<Pick<CommandRow, 'cancelWanted'>> = {},
): Promise<CommandRow | undefined> {
  const before = await findCommand(tx, id);
  if (!before) return undefined;
  const stepped: CommandStep = stepRow(before, event);
  if (!stepped.ok) return undefined;
  return storeStep(work, tx, before, { ...stepped.row, ...more }, undefined);
}
