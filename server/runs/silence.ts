import type { Work } from '../commands/work.ts';
import { SILENCE_MS } from './rules.ts';
import { endRun } from './store.ts';

/** Ends runs that an agent opened itself and left silent for half an hour. */
export async function endSilentRuns(work: Work): Promise<void> {
  const silent = await work.store.read
    .selectFrom('runs')
    .select('id')
    .where('state', '=', 'active')
    .where('openedBy', '=', 'agent')
    .where('activeAt', '<=', work.clock.now() - SILENCE_MS)
    .limit(64)
    .execute();
  for (const { id } of silent) await endRun(work, id, 'silent');
}
