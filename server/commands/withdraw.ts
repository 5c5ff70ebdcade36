import { sql } from 'kysely';
import type { CommandId, ExecutorId } from '../../helpers/protocol/ids.ts';
import { withdrawnBecause } from '../availability/rules.ts';
import { readFacts } from '../availability/store.ts';
import { readStanding } from '../executors/store.ts';
import type { Reader, Writer } from '../store/store.ts';
import { stepInside } from './finish.ts';
import { tellCancel } from './cancel.ts';
import { findCommand, saveCommand, YES } from './store.ts';
import type { CommandRow } from './store.ts';
import type { Work } from './work.ts';

/**
 * Ends every open command of an executor whose conditions fell: a grant, a share, an assignment, a policy, a person. What nobody
 * was given is refused with the reason; of the rest the machine is asked to stop, also of what became unknown a moment before and may
 * still run. What is only offline keeps running; its own connection decides about it (N-103). A revoked machine never comes back: what
 * waits for it ends.
 */
export async function cancelWithdrawn(work: Work, executor: ExecutorId): Promise<void> {
  if ((await mayRun(work, work.store.read, executor)).length === 0) return;
  const rows = await work.store.write(async (tx) => {
    const cancelled: CommandRow[] = [];
    const isRevoked = (await readStanding(tx, executor))?.state === 'revoked';
    for (const { id, state, operation, agent, person, project } of await mayRun(work, tx, executor)) {
      const wish = { person, agent: agent ?? undefined, operation, executor, origin: { project } };
      const reason = withdrawnBecause(await readFacts(work, tx, wish));
      const code = isRevoked && state === 'queued' ? 'EXECUTOR_REVOKED' : reason;
      if (code === undefined) continue;
      const row =
        state === 'queued'
          ? await stepInside(work, tx, id, { type: 'command.refused', code })
          : state === 'unknown'
            ? await wantCancelled(tx, id)
            : await stepInside(work, tx, id, { type: 'command.cancel', by: 'withdrawn' }, { cancelWanted: 1 });
      if (row) cancelled.push(row);
    }
    return cancelled;
  });
  tellCancel(work, rows);
}

/** An unknown outcome takes no wish as an event; the next control answer names it all the same. */
async function wantCancelled(tx: Writer, id: CommandId): Promise<CommandRow | undefined> {
  const row = await findCommand(tx, id);
  if (row === undefined) return undefined;
  const wanted: CommandRow = { ...row, cancelWanted: 1 };
  await saveCommand(tx, wanted);
  return wanted;
}

/** Commands that are open, and those of an unknown outcome whose time has not passed and whose end nobody wants yet. */
async function mayRun(work: Work, reader: Reader, executor: ExecutorId) {
  const unknown = await reader
    .selectFrom('commands')
    .innerJoin('runs', 'runs.id', 'commands.run')
    .select(['commands.id', 'commands.state', 'commands.operation', 'commands.agent', 'runs.person', 'runs.project'])
    .where('commands.executor', '=', executor)
    // Its text must be in the query, so that the partial index is used.
    .where('commands.state', '=', sql.lit('unknown'))
    .where('commands.deadline', '>', work.clock.now())
    .where('commands.cancelWanted', '=', 0)
    .execute();
  return [...(await openOf(reader, executor)), ...unknown];
}

async function openOf(reader: Reader, executor: ExecutorId) {
  return reader
    .selectFrom('commands')
    .innerJoin('runs', 'runs.id', 'commands.run')
    .select(['commands.id', 'commands.state', 'commands.operation', 'commands.agent', 'runs.person', 'runs.project'])
    .where('commands.executor', '=', executor)
    .where('open', '=', YES)
    .execute();
}
