import type { CommandId, ExecutorId, RunId } from '../../helpers/protocol/ids.ts';
import type { Canceller } from '../../machines/command/types.ts';
import type { Writer } from '../store/store.ts';
import { stepInside, tellEnd } from './finish.ts';
import { YES } from './store.ts';
import type { CommandRow } from './store.ts';
import type { Work } from './work.ts';

/** Wants one command ended: what nobody was given ends at once, the rest is asked of its machine by the next control answer. */
export async function cancelCommand(work: Work, id: CommandId, by: Canceller): Promise<void> {
  const row = await work.store.write((tx) =>
    stepInside(work, tx, id, { type: 'command.cancel', by }, { cancelWanted: 1 }),
  );
  if (row) tellCancel(work, [row]);
}

/** Wants every open command of a run ended, in the caller's transaction. Give the answer to tellCancel after the commit. */
export async function cancelRunCommands(work: Work, tx: Writer, run: RunId, by: Canceller): Promise<CommandRow[]> {
  const open = await tx
    .selectFrom('commands')
    .select('id')
    // a run has one machine, and the index of open commands begins with it
    .where('executor', '=', (of) => of.selectFrom('runs').select('executor').where('id', '=', run))
    .where('run', '=', run)
    .where('open', '=', YES)
    .execute();
  const rows: CommandRow[] = [];
  for (const { id } of open) {
    const row = await stepInside(work, tx, id, { type: 'command.cancel', by }, { cancelWanted: 1 });
    if (row) rows.push(row);
  }
  return rows;
}

/** Wakes waiters and control lanes after the commit. */
export function tellCancel(work: Work, rows: readonly CommandRow[]): void {
  for (const row of rows) tellEnd(work, row, undefined);
  for (const executor of new Set(rows.map((row) => row.executor))) work.lanes.find(executor)?.wake();
}

/** Every command that a connection before this epoch was given and did not end is unknown now (R59), in the caller's transaction. */
export async function loseCommands(
  work: Work,
  tx: Writer,
  executor: ExecutorId,
  before: number,
): Promise<CommandRow[]> {
  const open = await tx
    .selectFrom('commands')
    .select(['id', 'epoch'])
    .where('executor', '=', executor)
    .where('open', '=', YES)
    .where('epoch', '<', before)
    .execute();
  const rows: CommandRow[] = [];
  for (const { id, epoch } of open) {
    if (epoch === null) continue;
    const row = await stepInside(work, tx, id, { type: 'connection.lost', epoch });
    if (row) rows.push(row);
  }
  return rows;
}
