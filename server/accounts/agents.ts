import type { AgentId, PersonId, ProjectId } from '../../helpers/protocol/ids.ts';
import { findOperation, workspaceBundle } from '../../helpers/protocol/operations.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import { recordDecision } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { advanceAccess } from '../executors/lifecycle.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { AgentsAnswer } from './answers.ts';
import { findMembership } from './membership.ts';
import { isInProject, administersOrganisation } from './rules.ts';
import type { Membership } from './rules.ts';

/** Whom a token speaks for: immutable for the life of what it opens. */
export interface AgentIdentity {
  readonly person: PersonId;
  readonly agent: AgentId;
  readonly project: ProjectId;
  /** The person allows this agent to open workspace runs itself. */
  readonly mayOpenRuns: boolean;
}

/** Makes an agent of the person; the ordinary tool grants cover every operation that an agent may call today (N-092). */
export async function createAgent(context: Context, by: Membership, name: string): Promise<AgentId> {
  const id = newId('agt');
  const now = context.clock.now();
  await context.store.write(async (tx) => {
    await tx
      .insertInto('agents')
      .values({ id, organisation: by.organisation, owner: by.person, name, createdAt: now, endedAt: null })
      .execute();
    for (const operation of workspaceBundle) {
      await tx
        .insertInto('toolGrants')
        .values({ agent: id, operation, grantedAt: now, grantedBy: by.person })
        .execute();
    }
    await recordDecision(context, tx, by, { action: 'agent.made', agent: id });
  });
  return id;
}

/** Gives an agent a token for one project. Its text is in this answer and nowhere else (R92). Throws Refusal PROJECT_ABSENT or AGENT_ABSENT. */
export async function issueToken(
  context: Context,
  by: Membership,
  wish: { readonly agent: AgentId; readonly project: ProjectId; readonly mayOpenRuns: boolean },
): Promise<{ readonly id: string; readonly token: string }> {
  const token = `nessie_${context.random(32).toString('base64url')}`;
  const id = `tok_${context.random(16).toString('hex')}`;
  await context.store.write(async (tx) => {
    await requireOwnAgent(tx, by, wish.agent);
    await requireProject(tx, by, wish.project);
    await tx
      .insertInto('agentTokens')
      .values({
        id,
        digest: tokenDigest(token),
        agent: wish.agent,
        person: by.person,
        project: wish.project,
        mayOpenRuns: wish.mayOpenRuns ? 1 : 0,
        createdAt: context.clock.now(),
        endedAt: null,
      })
      .execute();
    await recordDecision(context, tx, by, {
      action: 'agent.token-issued',
      agent: wish.agent,
      facts: { token: id, project: wish.project },
    });
  });
  return { id, token };
}

/** Ends a token at once. Throws Refusal TOKEN_ABSENT. */
export async function endToken(context: Context, by: Membership, agent: AgentId, id: string): Promise<void> {
  await context.store.write(async (tx) => {
    await requireOwnAgent(tx, by, agent);
    const ended = await tx
      .updateTable('agentTokens')
      .set({ endedAt: context.clock.now() })
      .where('id', '=', id)
      .where('agent', '=', agent)
      .where('endedAt', 'is', null)
      .executeTakeFirst();
    if (ended.numUpdatedRows === 0n)
      throw new Refusal('TOKEN_ABSENT', 'This agent has no such token.', { status: 404 });
    await recordDecision(context, tx, by, { action: 'agent.token-ended', agent, facts: { token: id } });
  });
}

/** Replaces the ordinary tool grants of an agent; what it may no longer do ends at its next step on every machine. Throws Refusal OPERATION_UNKNOWN. */
export async function setToolGrants(
  context: Context,
  by: Membership,
  agent: AgentId,
  wished: readonly string[],
): Promise<void> {
  for (const key of wished) {
    if (findOperation(key)?.caller === 'agent') continue;
    throw new Refusal('OPERATION_UNKNOWN', `There is no operation ${key} that an agent may call.`, { status: 400 });
  }
  const machines = await context.store.write(async (tx) => {
    await requireOwnAgent(tx, by, agent);
    await tx.deleteFrom('toolGrants').where('agent', '=', agent).execute();
    for (const operation of new Set(wished)) {
      await tx
        .insertInto('toolGrants')
        .values({ agent, operation, grantedAt: context.clock.now(), grantedBy: by.person })
        .execute();
    }
    await recordDecision(context, tx, by, { action: 'agent.tools-set', agent, facts: { count: wished.length } });
    const granted = await tx.selectFrom('grants').select('executor').distinct().where('agent', '=', agent).execute();
    for (const { executor } of granted) await advanceAccess(context, tx, executor);
    return granted;
  });
  for (const { executor } of machines) context.wake.executor(executor);
}

/** Whom a bearer token speaks for. Undefined for one that is unknown or ended, or whose person left or lost the project. */
export async function agentOfToken(reader: Reader, token: string): Promise<AgentIdentity | undefined> {
  if (token.length > 128) return undefined;
  const row = await reader
    .selectFrom('agentTokens')
    .innerJoin('agents', 'agents.id', 'agentTokens.agent')
    .select(['person', 'agent', 'project', 'mayOpenRuns'])
    .where('digest', '=', tokenDigest(token))
    .where('agentTokens.endedAt', 'is', null)
    .where('agents.endedAt', 'is', null)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const member = await findMembership(reader, row.person);
  if (member === undefined || !isInProject(member, row.project)) return undefined;
  return { person: row.person, agent: row.agent, project: row.project, mayOpenRuns: row.mayOpenRuns === 1 };
}

/** Ends an agent for good: its tokens, its grants and its assignments go at once. Throws Refusal AGENT_ABSENT. */
export async function endAgent(context: Context, by: Membership, agent: AgentId): Promise<void> {
  const machines = await context.store.write(async (tx) => {
    await requireOwnAgent(tx, by, agent);
    const endedAt = context.clock.now();
    await tx.updateTable('agents').set({ endedAt }).where('id', '=', agent).execute();
    await tx
      .updateTable('agentTokens')
      .set({ endedAt })
      .where('agent', '=', agent)
      .where('endedAt', 'is', null)
      .execute();
    const granted = await tx.deleteFrom('grants').where('agent', '=', agent).returning('executor').execute();
    const assigned = await tx
      .deleteFrom('assignments')
      .where('kind', '=', 'agent')
      .where('subject', '=', agent)
      .returning('executor')
      .execute();
    await recordDecision(context, tx, by, { action: 'agent.ended', agent });
    const touched = new Set([...granted, ...assigned].map((row) => row.executor));
    for (const executor of touched) await advanceAccess(context, tx, executor);
    return touched;
  });
  for (const executor of machines) context.wake.executor(executor);
}

/** Agents that a person may look after: their own, and all of the organisation for who administers it. */
export async function listAgents(reader: Reader, by: Membership): Promise<AgentsAnswer['agents']> {
  const all = reader
    .selectFrom('agents')
    .innerJoin('people', 'people.id', 'agents.owner')
    .select(['agents.id', 'agents.name', 'owner', 'people.name as ownerName'])
    .where('agents.organisation', '=', by.organisation)
    .where('endedAt', 'is', null)
    .orderBy('agents.createdAt');
  const agents = await (administersOrganisation(by) ? all : all.where('owner', '=', by.person)).execute();
  const ids = agents.map((agent) => agent.id);
  if (ids.length === 0) return [];
  const tokens = await reader
    .selectFrom('agentTokens')
    .innerJoin('projects', 'projects.id', 'agentTokens.project')
    .select(['agentTokens.id', 'agent', 'person', 'project', 'projects.name as projectName', 'mayOpenRuns'])
    .select('agentTokens.createdAt')
    .where('agent', 'in', ids)
    .where('endedAt', 'is', null)
    .execute();
  const tools = await reader
    .selectFrom('toolGrants')
    .select(['agent', 'operation'])
    .where('agent', 'in', ids)
    .execute();
  return agents.map((agent) => ({
    ...agent,
    tools: tools.filter((tool) => tool.agent === agent.id).map((tool) => tool.operation),
    tokens: tokens
      .filter((token) => token.agent === agent.id)
      .map(({ id, person, project, projectName, mayOpenRuns, createdAt }) => {
        return { id, person, project, projectName, mayOpenRuns: mayOpenRuns === 1, createdAt };
      }),
  }));
}

async function requireOwnAgent(tx: Writer, by: Membership, agent: AgentId): Promise<void> {
  const row = await tx
    .selectFrom('agents')
    .select('owner')
    .where('id', '=', agent)
    .where('organisation', '=', by.organisation)
    .where('endedAt', 'is', null)
    .executeTakeFirst();
  if (row !== undefined && (row.owner === by.person || administersOrganisation(by))) return;
  throw new Refusal('AGENT_ABSENT', 'There is no such agent among yours.', { status: 404 });
}

async function requireProject(tx: Writer, by: Membership, project: ProjectId): Promise<void> {
  const row = await tx
    .selectFrom('projects')
    .select('id')
    .where('id', '=', project)
    .where('organisation', '=', by.organisation)
    .executeTakeFirst();
  if (row !== undefined && isInProject(by, project)) return;
  throw new Refusal('PROJECT_ABSENT', 'There is no such project among yours.', { status: 404 });
}

function tokenDigest(token: string): Buffer {
  return sha256(Buffer.from(token, 'utf8'));
}
