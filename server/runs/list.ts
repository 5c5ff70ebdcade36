import { sql } from 'kysely';
import type { ExecutorId, PersonId, RunId } from '../../helpers/protocol/ids.ts';
import { workspaceBundle } from '../../helpers/protocol/operations.ts';
import { candidates, resolve } from '../availability/store.ts';
import type { Work } from '../commands/work.ts';
import { listReviews } from '../drafts/reviews.ts';
import { showPromotion } from '../drafts/show.ts';
import { Refusal } from '../refusal.ts';
import type { Reader } from '../store/store.ts';
import type { CommandSummary, RunDetail, RunSummary } from './answers.ts';
import { findRun } from './store.ts';
import type { RunRow } from './store.ts';

/** Runs in one page of a list. */
const PAGE = 50;
/** Commands in a run's own view. */
const COMMANDS = 200;

/** A run that this person started; to anybody else it is absent. Throws Refusal RUN_ABSENT. */
export async function ownRun(reader: Reader, person: PersonId, id: RunId): Promise<RunRow> {
  const run = await findRun(reader, id);
  if (run?.person === person) return run;
  throw new Refusal('RUN_ABSENT', 'There is no such run among yours.', { status: 404 });
}

/** A page of a person's runs, newest first, of one machine where it is named, started before a time where one is given. */
export async function listRuns(
  reader: Reader,
  person: PersonId,
  { executor, before }: { readonly executor?: ExecutorId | undefined; readonly before?: number | undefined },
): Promise<{ readonly runs: RunSummary[]; readonly more: boolean }> {
  let wanted = reader.selectFrom('runs').selectAll().where('person', '=', person);
  if (executor !== undefined) wanted = wanted.where('executor', '=', executor);
  if (before !== undefined) wanted = wanted.where('startedAt', '<', before);
  const rows = await wanted
    .orderBy('startedAt', 'desc')
    .limit(PAGE + 1)
    .execute();
  const runs = await Promise.all(rows.slice(0, PAGE).map((row) => summariseRun(reader, row)));
  return { runs, more: rows.length > PAGE };
}

/** One run as lists show it. */
export async function summariseRun(reader: Reader, run: RunRow): Promise<RunSummary> {
  const named = await reader
    .selectFrom('runs')
    .innerJoin('agents', 'agents.id', 'runs.agent')
    .innerJoin('projects', 'projects.id', 'runs.project')
    .leftJoin('executors', 'executors.id', 'runs.executor')
    .select(['agents.name as agentName', 'projects.name as projectName', 'executors.label as executorLabel'])
    .where('runs.id', '=', run.id)
    .executeTakeFirstOrThrow();
  const counted = await reader
    .selectFrom('commands')
    .select(({ fn }) => [
      fn.countAll<number>().as('commandCount'),
      sql<number>`coalesce(sum("open"), 0)`.as('openCount'),
      sql<number>`coalesce(sum(case when "state" = 'unknown' then 1 else 0 end), 0)`.as('unknownCount'),
    ])
    .where('run', '=', run.id)
    .executeTakeFirstOrThrow();
  const { id, agent, project, executor, state, endedBecause, openedBy, startedAt, activeAt, endedAt } = run;
  return {
    run: id,
    agent,
    project,
    executor,
    state,
    endedBecause,
    openedBy,
    startedAt,
    activeAt,
    endedAt,
    ...named,
    ...counted,
  };
}

/** One run with its availability, commands, reviews and promotions. Throws Refusal RUN_ABSENT. */
export async function showRun(work: Work, person: PersonId, id: RunId): Promise<RunDetail> {
  const { read } = work.store;
  const run = await ownRun(read, person, id);
  const promotions = await read
    .selectFrom('promotions')
    .select('id')
    .where('run', '=', id)
    .orderBy('createdAt', 'desc')
    .limit(PAGE)
    .execute();
  return {
    ...(await summariseRun(read, run)),
    availability: await availabilityOf(work, run),
    commands: await commandsOf(read, id),
    reviews: await listReviews(read, person, id),
    promotions: await Promise.all(promotions.map((promotion) => showPromotion(read, person, promotion.id))),
  };
}

async function availabilityOf(work: Work, run: RunRow): Promise<RunDetail['availability']> {
  const { person, agent, project } = run;
  const executor = run.executor ?? run.chosen;
  const answers: RunDetail['availability'] = [];
  for (const operation of workspaceBundle) {
    const wish = { person, agent, operation, origin: { project } };
    if (executor === null) {
      const found = await candidates(work, work.store.read, wish);
      answers.push({
        operation,
        available: found.executors.length > 0,
        reason: 'reason' in found ? found.reason : null,
      });
    } else {
      const answer = await resolve(work, work.store.read, { ...wish, executor });
      answers.push({ operation, available: answer.available, reason: answer.available ? null : answer.reason });
    }
  }
  return answers;
}

async function commandsOf(reader: Reader, run: RunId): Promise<CommandSummary[]> {
  const rows = await reader
    .selectFrom('commands')
    .select(['id as command', 'operation', 'state', 'outcome', 'gate', 'code', 'createdAt', 'leasedAt', 'endedAt'])
    .where('run', '=', run)
    .orderBy('createdAt', 'desc')
    .limit(COMMANDS)
    .execute();
  return rows.toReversed();
}
