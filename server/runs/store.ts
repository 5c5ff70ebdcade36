import type { Selectable } from 'kysely';
import type { AgentId, ExecutorId, PersonId, ProjectId, RunId } from '../../helpers/protocol/ids.ts';
import { record } from '../audit/record.ts';
import { cancelRunCommands, tellCancel } from '../commands/cancel.ts';
import type { CommandRow } from '../commands/store.ts';
import type { WorkTables } from '../commands/tables.ts';
import type { Work } from '../commands/work.ts';
import { newId } from '../new-id.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { RunEnd } from './rules.ts';

/** A run as its row keeps it: its context never changes. */
export type RunRow = Selectable<WorkTables['runs']>;
/** A binding as its row keeps it. */
export type BindingRow = Selectable<WorkTables['bindings']>;

/** One run, or undefined. */
export async function findRun(reader: Reader, id: RunId): Promise<RunRow | undefined> {
  return reader.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Bindings of a run. */
export async function bindingsOf(reader: Reader, run: RunId): Promise<BindingRow[]> {
  return reader.selectFrom('bindings').selectAll().where('run', '=', run).orderBy('fence').execute();
}

/** Makes a run with its immutable context, in the caller's transaction. */
export async function makeRun(
  work: Pick<Work, 'clock' | 'secrets'>,
  tx: Writer,
  context: {
    readonly person: PersonId;
    readonly agent: AgentId;
    readonly project: ProjectId;
    readonly conversation: string;
    readonly openedBy: 'person' | 'agent';
    readonly chosen: ExecutorId | null;
  },
): Promise<RunRow> {
  const now = work.clock.now();
  const run: RunRow = {
    id: newId('run'),
    ...context,
    bundle: 'workspace',
    executor: null,
    state: 'active',
    endedBecause: null,
    startedAt: now,
    activeAt: now,
    endedAt: null,
    endTold: 0,
  };
  await tx.insertInto('runs').values(run).execute();
  const { id, person, agent, project, openedBy } = run;
  await record(work, tx, {
    action: 'run.opened',
    person,
    agent,
    run: id,
    outcome: 'done',
    facts: { openedBy, project },
  });
  return run;
}

/** Ends a run: nothing new is leased, what is under way is cancelled, and its machine is told. Undefined where it had ended already. */
export async function endRun(
  work: Work,
  id: RunId,
  because: RunEnd,
  by: { readonly person?: PersonId } = {},
): Promise<RunRow | undefined> {
  const ended = await work.store.write((tx) => endRunInside(work, tx, id, because, by));
  if (!ended) return undefined;
  tellCancel(work, ended.cancelled);
  if (ended.run.executor) work.lanes.find(ended.run.executor)?.wake();
  work.wake.run(id);
  return ended.run;
}

async function endRunInside(
  work: Work,
  tx: Writer,
  id: RunId,
  because: RunEnd,
  by: { readonly person?: PersonId },
): Promise<{ readonly run: RunRow; readonly cancelled: readonly CommandRow[] } | undefined> {
  const run = await findRun(tx, id);
  if (run?.state !== 'active') return undefined;
  const cancelled = await cancelRunCommands(work, tx, id, because === 'stopped' ? 'person' : 'run-ended');
  const ended = {
    state: 'ended' as const,
    endedBecause: because,
    endedAt: work.clock.now(),
    endTold: run.executor === null ? (1 as const) : (0 as const),
  };
  await tx.updateTable('runs').set(ended).where('id', '=', id).execute();
  await tx.deleteFrom('candidates').where('run', '=', id).where('usedAt', 'is', null).execute();
  const { agent, executor } = run;
  await record(work, tx, {
    action: 'run.ended',
    ...by,
    agent,
    ...(executor === null ? {} : { executor }),
    run: id,
    outcome: 'done',
    facts: { because },
  });
  return { run: { ...run, ...ended }, cancelled };
}
