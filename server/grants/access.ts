/*
 * Who may use an executor beside its scope, and what agents may do on it. Every change takes effect at once, fences the daemon's
 * connection (N-187, N-205) and is recorded with it. A private executor never loses its last administrator here (N-014, N-015).
 */
import type { AgentId, ExecutorId, PersonId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import { findOperation } from '../../helpers/protocol/operations.ts';
import { requirePerson } from '../accounts/membership.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import { recordDecision } from '../audit/record.ts';
import type { Decided } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { requireAdministrator } from '../executors/entitled.ts';
import type { Standing } from '../executors/entitled.ts';
import { advanceAccess } from '../executors/lifecycle.ts';
import { isLastAdministrator } from '../executors/rules.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';

/** One access change: entitled, done, counted, recorded and told, or nothing of it. */
async function changeAccess(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  change: (tx: Writer, standing: Standing) => Promise<Omit<Decided, 'executor'>>,
): Promise<void> {
  await context.store.write(async (tx) => {
    const standing = await requireAdministrator(tx, by.person, executor);
    const decided = await change(tx, standing);
    await recordDecision(context, tx, by, { ...decided, executor });
    await advanceAccess(context, tx, executor);
  });
  context.wake.executor(executor);
}

/**
 * Switches an agent's access on: one grant for each operation that is approved at this moment, a later one stays denied (D-19, N-188).
 * A private executor names the agent among its assignees too (N-009). Throws Refusal AGENT_ABSENT or DESCRIPTOR_UNREVIEWED.
 */
export async function switchAgentOn(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  agent: AgentId,
): Promise<void> {
  await changeAccess(context, by, executor, async (tx, standing) => {
    await requireAgent(tx, standing, agent);
    const approved = standing.executor.confirmed?.operations ?? [];
    const operations = approved.filter((key) => findOperation(key)?.caller === 'agent');
    if (operations.length === 0) {
      throw new Refusal(
        'DESCRIPTOR_UNREVIEWED',
        'No descriptor of this machine is confirmed, so there is nothing to grant yet.',
        {
          remedy: 'Review and confirm its descriptor first.',
        },
      );
    }
    const made = { createdAt: context.clock.now(), createdBy: by.person };
    for (const operation of operations) await insertGrant(tx, { executor, agent, operation, ...made });
    await tx
      .insertInto('assignments')
      .values({ executor, kind: 'agent', subject: agent, role: 'use', ...made })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return { action: 'access.agent-on', agent, facts: { operations: operations.length } };
  });
}

/** Switches an agent's access off: every grant and its assignment go. */
export async function switchAgentOff(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  agent: AgentId,
): Promise<void> {
  await changeAccess(context, by, executor, async (tx) => {
    const ended = await tx
      .deleteFrom('grants')
      .where('executor', '=', executor)
      .where('agent', '=', agent)
      .executeTakeFirst();
    await tx
      .deleteFrom('assignments')
      .where('executor', '=', executor)
      .where('kind', '=', 'agent')
      .where('subject', '=', agent)
      .execute();
    return { action: 'access.agent-off', agent, facts: { operations: Number(ended.numDeletedRows) } };
  });
}

/** Grants one agent one operation. Throws Refusal OPERATION_UNKNOWN, OPERATION_NOT_IMPLEMENTED, OPERATION_UNREVIEWED or AGENT_ABSENT. */
export async function grantOperation(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  agent: AgentId,
  operation: string,
): Promise<void> {
  await changeAccess(context, by, executor, async (tx, standing) => {
    await requireAgent(tx, standing, agent);
    if (findOperation(operation)?.caller !== 'agent') {
      throw new Refusal('OPERATION_NOT_IMPLEMENTED', 'No operation of that name can be granted to an agent.', {
        status: 400,
      });
    }
    if (standing.executor.confirmed?.operations.includes(operation) !== true) {
      throw new Refusal(
        'OPERATION_UNREVIEWED',
        'The confirmed descriptor of this machine does not have that operation.',
      );
    }
    await insertGrant(tx, { executor, agent, operation, createdAt: context.clock.now(), createdBy: by.person });
    return { action: 'access.operation-granted', agent, facts: { operation } };
  });
}

/** Takes one operation back from one agent; repeated, it has one effect. */
export async function withdrawOperation(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  agent: AgentId,
  operation: string,
): Promise<void> {
  await changeAccess(context, by, executor, async (tx) => {
    await tx
      .deleteFrom('grants')
      .where('executor', '=', executor)
      .where('agent', '=', agent)
      .where('operation', '=', operation)
      .execute();
    return { action: 'access.operation-withdrawn', agent, facts: { operation } };
  });
}

/** Gives a person `use` or `admin`. Administration is assigned on private executors alone: elsewhere the scope says who administers. */
export async function assignPerson(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  person: PersonId,
  role: 'use' | 'admin',
): Promise<void> {
  await changeAccess(context, by, executor, async (tx, standing) => {
    await requirePerson(tx, standing.member, person);
    if (role === 'admin' && standing.executor.scope !== 'private') {
      throw new Refusal('SCOPE_ADMINISTERS', 'The project or organisation says who administers this machine.', {
        status: 400,
      });
    }
    if (role === 'use') await requireOtherAdministrator(tx, standing, person);
    const made = { role, createdAt: context.clock.now(), createdBy: by.person };
    await tx
      .insertInto('assignments')
      .values({ executor, kind: 'person', subject: person, ...made })
      .onConflict((conflict) => conflict.columns(['executor', 'kind', 'subject']).doUpdateSet(made))
      .execute();
    return { action: 'access.person-assigned', facts: { subject: person, role } };
  });
}

/** Takes a person's assignment back. Throws Refusal PRIVATE_FINAL_ADMIN_REQUIRED for the last administrator of a private executor. */
export async function unassignPerson(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  person: PersonId,
): Promise<void> {
  await changeAccess(context, by, executor, async (tx, standing) => {
    await requireOtherAdministrator(tx, standing, person);
    await tx
      .deleteFrom('assignments')
      .where('executor', '=', executor)
      .where('kind', '=', 'person')
      .where('subject', '=', person)
      .execute();
    return { action: 'access.person-unassigned', facts: { subject: person } };
  });
}

/** Whom a share extends use to. */
export type ShareTarget =
  | { readonly kind: 'project'; readonly subject: ProjectId }
  | { readonly kind: 'team'; readonly subject: TeamId };

/** Extends use to a project, or to all members of the executor's own team; it never brings administration (N-189, D-2). Throws Refusal SHARE_INVALID. */
export async function addShare(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  share: ShareTarget,
): Promise<void> {
  await changeAccess(context, by, executor, async (tx, standing) => {
    await requireShareTarget(tx, standing, share);
    await tx
      .insertInto('shares')
      .values({ executor, ...share, createdAt: context.clock.now(), createdBy: by.person })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    return { action: 'access.shared', facts: { kind: share.kind, subject: share.subject } };
  });
}

/** Ends a share; repeated, it has one effect. */
export async function endShare(
  context: Context,
  by: SignedIn,
  executor: ExecutorId,
  share: ShareTarget,
): Promise<void> {
  await changeAccess(context, by, executor, async (tx) => {
    await tx
      .deleteFrom('shares')
      .where('executor', '=', executor)
      .where('kind', '=', share.kind)
      .where('subject', '=', share.subject)
      .execute();
    return { action: 'access.share-ended', facts: { kind: share.kind, subject: share.subject } };
  });
}

async function insertGrant(
  tx: Writer,
  grant: { executor: ExecutorId; agent: AgentId; operation: string; createdAt: number; createdBy: PersonId },
): Promise<void> {
  await tx
    .insertInto('grants')
    .values(grant)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

async function requireAgent(tx: Writer, { member }: Standing, agent: AgentId): Promise<void> {
  const row = await tx
    .selectFrom('agents')
    .select('id')
    .where('id', '=', agent)
    .where('organisation', '=', member.organisation)
    .where('endedAt', 'is', null)
    .executeTakeFirst();
  if (row === undefined) throw new Refusal('AGENT_ABSENT', 'There is no such agent.', { status: 404 });
}

async function requireShareTarget(tx: Writer, { executor }: Standing, share: ShareTarget): Promise<void> {
  const isOwnTeam = share.kind === 'team' && share.subject === executor.team;
  const project =
    share.kind === 'team'
      ? undefined
      : await tx
          .selectFrom('projects')
          .select('id')
          .where('id', '=', share.subject)
          .where('organisation', '=', executor.organisation)
          .executeTakeFirst();
  if (isOwnTeam || project !== undefined) return;
  throw new Refusal('SHARE_INVALID', 'Use is extended to a project of the organisation or to the machine’s own team.', {
    status: 400,
  });
}

/** Refuses what would leave a private executor without an active human administrator (N-014, N-015). */
async function requireOtherAdministrator(tx: Writer, { executor }: Standing, person: PersonId): Promise<void> {
  const administrators = await activeAdministrators(tx, executor.executor);
  if (!isLastAdministrator(executor.scope, administrators, person)) return;
  throw new Refusal(
    'PRIVATE_FINAL_ADMIN_REQUIRED',
    'A private machine keeps at least one administrator; nothing was changed.',
    {
      remedy: 'Make somebody else an administrator first, or disconnect the machine.',
    },
  );
}

/** People who administer a private executor and can still sign in. */
export async function activeAdministrators(tx: Writer, executor: ExecutorId): Promise<readonly PersonId[]> {
  const rows = await tx
    .selectFrom('assignments')
    .innerJoin('people', (join) => join.onRef('people.id', '=', 'assignments.subject'))
    .select('people.id')
    .where('executor', '=', executor)
    .where('kind', '=', 'person')
    .where('assignments.role', '=', 'admin')
    .where('active', '=', 1)
    .execute();
  return rows.map((row) => row.id);
}
