import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { resolve } from '../availability/store.ts';
import { readStanding } from '../executors/store.ts';
import type { Reader } from '../store/store.ts';
import { stepInside } from './finish.ts';
import { tellCancel } from './cancel.ts';
import { YES } from './store.ts';
import type { CommandRow } from './store.ts';
import type { Work } from './work.ts';

/**
 * Ends every open command of an executor whose conditions fell: a grant, a share, an assignment, a policy, a person. What nobody
 * was given is refused with the reason; of the rest the machine is asked to stop. What
 * is only offline keeps running; its own connection decides about it (N-103). A revoked machine never comes back: what waits for it ends.
 */
export async function cancelWithdrawn(work: Work, executor: ExecutorId): Promise<void> {
  if ((await openOf(work.store.read, executor)).length === 0) return;
  const rows = await work.store.write(async (tx) => {
    const cancelled: CommandRow[] = [];
    const isRevoked = (await readStanding(tx, executor))?.state === 'revoked';
    for (const { id, state, operation, agent, person, project } of await openOf(tx, executor)) {
      const wish = { person, agent: agent ?? undefined, operation, executor, origin: { project } };
      const answer = await resolve(work, tx, wish);
      const isLost = isRevoked && state === 'queued';
      if (answer.available || (answer.reason === 'offline' && !isLost)) continue;
      const row =
        state === 'queued'
          ? await stepInside(work, tx, id, {
              type: 'command.refused',
              code: isLost ? 'EXECUTOR_REVOKED' : answer.reason,
            })
          : await stepInside(work, tx, id, { type: 'command.cancel', by: 'withdrawn' }, { cancelWanted: 1 });
      if (row) cancelled.push(row);
    }
    return cancelled;
  });
  tellCancel(work, rows);
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
