import type { Work } from '../commands/work.ts';
import { SILENT_AFTER_MS } from './rules.ts';
import { endRun } from './store.ts';

/** Sessions of clients that went away without a word; a run that a person launched stays for the next one. */
async function endSilentSessions(work: Work): Promise<void> {
  const before = work.clock.now() - SILENT_AFTER_MS;
  const silent = work.store.read
    .selectFrom('mcpSessions')
    .select('id')
    .where('endedAt', 'is', null)
    .where('activeAt', '<=', before);
  if ((await silent.limit(1).execute()).length === 0) return;
  await work.store.write((tx) =>
    tx
      .updateTable('mcpSessions')
      .set({ endedAt: work.clock.now() })
      .where('endedAt', 'is', null)
      .where('activeAt', '<=', before)
      .execute(),
  );
}

/** Ends runs that an agent opened itself and left silent for half an hour, and those of agents that are no more. */
export async function endSilentRuns(work: Work): Promise<void> {
  const silent = await work.store.read
    .selectFrom('runs')
    .select('id')
    .where('state', '=', 'active')
    .where('openedBy', '=', 'agent')
    .where('activeAt', '<=', work.clock.now() - SILENT_AFTER_MS)
    .limit(64)
    .execute();
  for (const { id } of silent) await endRun(work, id, 'silent');
  const orphaned = await work.store.read
    .selectFrom('runs')
    .innerJoin('agents', 'agents.id', 'runs.agent')
    .select('runs.id')
    .where('state', '=', 'active')
    .where('agents.endedAt', 'is not', null)
    .limit(64)
    .execute();
  for (const { id } of orphaned) await endRun(work, id, 'agent-ended');
  await endSilentSessions(work);
}
