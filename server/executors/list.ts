import { operations } from '../../helpers/protocol/operations.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { membershipOf } from '../accounts/membership.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import type { Reader } from '../store/store.ts';
import type { ExecutorAction, ExecutorDetail, ExecutorSummary } from './answers.ts';
import { requireDiscoverable } from './entitled.ts';
import type { Standing } from './entitled.ts';
import { mayAdminister, mayDiscover } from './rules.ts';
import { findExecutor, markSilent, readAccess } from './store.ts';

/** What the Computer menu offers in each state (N-200 to N-203). */
function actionsFor({ executor, administers, member }: Standing): ExecutorAction[] {
  const { state, accepting } = executor;
  if (!administers) return member.role === 'owner' && state !== 'revoked' ? ['end'] : [];
  switch (state) {
    case 'online':
    case 'offline':
      return [accepting ? 'pause' : 'resume', 'disconnect', 'delete'];
    case 'draining':
    case 'error':
      return ['disconnect', 'delete'];
    case 'pending_pairing':
    case 'revoked':
      return ['delete'];
  }
}

async function summarise(reader: Reader, standing: Standing): Promise<ExecutorSummary> {
  const { executor, administers } = standing;
  const { confirmed, latest, project } = executor;
  const team = await reader
    .selectFrom('teams')
    .select(['id', 'name'])
    .where('id', '=', executor.team)
    .executeTakeFirstOrThrow();
  const ofProject =
    project === null
      ? null
      : await reader.selectFrom('projects').select(['id', 'name']).where('id', '=', project).executeTakeFirstOrThrow();
  const stated = confirmed ?? latest;
  const isWaiting = latest !== undefined && latest.revision > executor.confirmedRevision;
  return {
    executor: executor.executor,
    label: executor.label,
    scope: executor.scope,
    team,
    project: ofProject,
    state: executor.state,
    accepting: executor.accepting,
    lastSeenAt: executor.lastSeenAt,
    fault: executor.fault,
    revokedBecause: executor.revokedBecause,
    administers,
    fingerprint: executor.fingerprint,
    rootName: stated?.rootName ?? null,
    platform: stated?.platform ?? null,
    sandbox: stated?.sandbox ?? null,
    promotion: stated?.promotion ?? null,
    difference: stated?.difference ?? null,
    confirmedRevision: executor.confirmedRevision,
    latestRevision: executor.latestRevision,
    pendingRevision: isWaiting ? latest.revision : null,
    createdAt: executor.createdAt,
    actions: actionsFor(standing),
  };
}

/** Every machine that a person may know of, silent ones marked offline first (N-210). */
export async function listExecutors(context: Context, by: SignedIn): Promise<ExecutorSummary[]> {
  await markSilent(context);
  const reader = context.store.read;
  const member = await membershipOf(reader, by.person);
  const rows = await reader
    .selectFrom('executors')
    .select('id')
    .where('organisation', '=', member.organisation)
    .where('listed', '=', 1)
    .orderBy('createdAt')
    .orderBy('id')
    .execute();
  const shown: ExecutorSummary[] = [];
  for (const { id } of rows) {
    const executor = await findExecutor(reader, id);
    const access = await readAccess(reader, id, by.person);
    if (executor === undefined) continue;
    const administers = mayAdminister(member, executor, access);
    if (administers || mayDiscover(member, executor, access)) {
      shown.push(await summarise(reader, { member, executor, access, administers }));
    }
  }
  return shown;
}

/** One machine with what it can do. Throws Refusal EXECUTOR_ABSENT. */
export async function showExecutor(context: Context, by: SignedIn, id: ExecutorId): Promise<ExecutorDetail> {
  await markSilent(context);
  const reader = context.store.read;
  const standing = await requireDiscoverable(reader, by.person, id);
  const { confirmed, rotation } = standing.executor;
  return {
    ...(await summarise(reader, standing)),
    descriptor: confirmed ?? null,
    operations: operations.map(({ key, description, writes, caller }) => ({
      key,
      description,
      writes,
      caller,
      confirmed: confirmed?.operations.includes(key) ?? false,
    })),
    rotation,
  };
}
