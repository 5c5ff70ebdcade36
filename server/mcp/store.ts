import type { Selectable } from 'kysely';
import type { RunId } from '../../helpers/protocol/ids.ts';
import type { AgentIdentity } from '../accounts/agents.ts';
import { limits, takeLimit } from '../accounts/limits.ts';
import type { WorkTables } from '../commands/tables.ts';
import type { Work } from '../commands/work.ts';
import { Refusal } from '../refusal.ts';
import { findRun, makeRun } from '../runs/store.ts';
import type { RunRow } from '../runs/store.ts';
import type { Writer } from '../store/store.ts';

/** A client's session as its row keeps it. */
export type SessionRow = Selectable<WorkTables['mcpSessions']>;

/** Most sessions of one agent that stand at once. */
const SESSION_LIMIT = 64;
/** Most runs that one agent opened itself and that are under way at once. */
const ACTIVE_RUN_LIMIT = 32;

/**
 * Makes a session. Where the person allows it, its run is opened with it, with the session's id as the conversation; else the
 * newest run that the person launched for this agent, and that no other session has, is picked up. Throws Refusal SESSION_LIMIT,
 * RUN_LIMIT or RATE_LIMITED (429), and UNAVAILABLE (503) where runs cannot be counted.
 */
export async function makeSession(
  work: Work,
  identity: AgentIdentity,
  id: string,
  initialize: unknown,
): Promise<{ readonly session: SessionRow; readonly run: RunRow | undefined }> {
  const { person, agent, project, mayOpenRuns } = identity;
  if (mayOpenRuns) await takeLimit(work, limits.runsOfAgent, agent);
  return work.store.write(async (tx) => {
    const now = work.clock.now();
    await requireRoom(tx, identity);
    if (mayOpenRuns) await requireRunRoom(tx, identity);
    const run = mayOpenRuns
      ? await makeRun(work, tx, { person, agent, project, conversation: id, openedBy: 'agent', chosen: null })
      : await findLaunched(tx, identity);
    const session: SessionRow = {
      id,
      person,
      agent,
      project,
      initialize: JSON.stringify(initialize),
      run: run?.id ?? null,
      createdAt: now,
      activeAt: now,
      endedAt: null,
    };
    await tx.insertInto('mcpSessions').values(session).execute();
    return { session, run };
  });
}

/** Gives a session without a run the one that was launched meanwhile; undefined while there is none. */
export async function pickUpRun(work: Work, identity: AgentIdentity, session: string): Promise<RunRow | undefined> {
  return work.store.write(async (tx) => {
    const run = await findLaunched(tx, identity);
    if (run) await tx.updateTable('mcpSessions').set({ run: run.id }).where('id', '=', session).execute();
    return run;
  });
}

/** A session that stands and belongs to this identity, with its run. */
export async function findSession(
  work: Work,
  identity: AgentIdentity,
  id: string,
): Promise<{ readonly session: SessionRow; readonly run: RunRow | undefined } | undefined> {
  const session = await work.store.read
    .selectFrom('mcpSessions')
    .selectAll()
    .where('id', '=', id)
    .where('person', '=', identity.person)
    .where('agent', '=', identity.agent)
    .where('project', '=', identity.project)
    .where('endedAt', 'is', null)
    .executeTakeFirst();
  if (!session) return undefined;
  return { session, run: session.run === null ? undefined : await findRun(work.store.read, session.run) };
}

/** Notes that a client was heard, in its session and its run. */
export async function touchSession(work: Work, id: string, run: RunId | undefined): Promise<void> {
  const activeAt = work.clock.now();
  await work.store.write(async (tx) => {
    await tx.updateTable('mcpSessions').set({ activeAt }).where('id', '=', id).execute();
    if (run) await tx.updateTable('runs').set({ activeAt }).where('id', '=', run).execute();
  });
}

/** Ends a session for good: its id is never taken up again. */
export async function endSession(work: Work, id: string): Promise<void> {
  const endedAt = work.clock.now();
  await work.store.write((tx) => tx.updateTable('mcpSessions').set({ endedAt }).where('id', '=', id).execute());
}

async function requireRoom(tx: Writer, { agent }: AgentIdentity): Promise<void> {
  const standing = await tx
    .selectFrom('mcpSessions')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('agent', '=', agent)
    .where('endedAt', 'is', null)
    .executeTakeFirstOrThrow();
  if (standing.count < SESSION_LIMIT) return;
  throw new Refusal('SESSION_LIMIT', `This agent has ${SESSION_LIMIT} sessions open; end one of them first.`, {
    status: 429,
  });
}

async function requireRunRoom(tx: Writer, { agent }: AgentIdentity): Promise<void> {
  const active = await tx
    .selectFrom('runs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('agent', '=', agent)
    .where('openedBy', '=', 'agent')
    .where('state', '=', 'active')
    .executeTakeFirstOrThrow();
  if (active.count < ACTIVE_RUN_LIMIT) return;
  throw new Refusal('RUN_LIMIT', `This agent has ${ACTIVE_RUN_LIMIT} runs under way.`, {
    status: 429,
    remedy: 'End a session with DELETE, stop a run on the page, or wait: a run ends after 30 minutes of silence.',
  });
}

async function findLaunched(tx: Writer, { person, agent, project }: AgentIdentity): Promise<RunRow | undefined> {
  return tx
    .selectFrom('runs')
    .selectAll()
    .where('person', '=', person)
    .where('agent', '=', agent)
    .where('project', '=', project)
    .where('openedBy', '=', 'person')
    .where('state', '=', 'active')
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('mcpSessions')
            .select('mcpSessions.id')
            .whereRef('mcpSessions.run', '=', 'runs.id')
            .where('mcpSessions.endedAt', 'is', null),
        ),
      ),
    )
    .orderBy('startedAt', 'desc')
    .executeTakeFirst();
}
