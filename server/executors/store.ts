import { sql } from 'kysely';
import type { AgentId, ExecutorId, OrganisationId, PersonId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import type { executorMachine } from '../../machines/executor/machine.ts';
import type { ExecutorFault, RevocationReason } from '../../machines/executor/types.ts';
import type { Stored } from '../../machines/step.ts';
import { channelTimes } from '../protocol.ts';
import type { Context } from '../context.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { ExecutorState, Scope } from '../store/tables.ts';
import { readDescriptors } from '../descriptors/store.ts';
import { stepExecutor } from './lifecycle.ts';
import type { Access } from './rules.ts';

/** One executor with what its last confirmed descriptor says. */
export interface ExecutorRow {
  readonly executor: ExecutorId;
  readonly organisation: OrganisationId;
  readonly team: TeamId;
  readonly project: ProjectId | null;
  readonly scope: Scope;
  readonly label: string;
  readonly state: ExecutorState;
  readonly epoch: number;
  readonly accepting: boolean;
  readonly listed: boolean;
  /** Kept after a revocation, so that a proof of it can be answered as revoked; null before pairing. */
  readonly publicKey: Buffer | null;
  readonly fingerprint: string | null;
  readonly rotation: number;
  readonly fault: ExecutorFault | null;
  readonly revokedBecause: RevocationReason | null;
  readonly lastSeenAt: number | null;
  readonly createdAt: number;
  readonly authorizationRevision: number;
  /** Highest revision that ever arrived, 0 before the first. */
  readonly latestRevision: number;
  /** Revision that a person confirmed last, 0 before the first. */
  readonly confirmedRevision: number;
  readonly confirmedPolicyDigest: string | undefined;
  readonly confirmedCatalogueDigest: string | undefined;
  readonly confirmed: Descriptor | undefined;
  readonly latest: Descriptor | undefined;
}

/** One executor, or undefined where there is none. */
export async function findExecutor(reader: Reader, id: ExecutorId): Promise<ExecutorRow | undefined> {
  const row = await reader.selectFrom('executors').selectAll().where('id', '=', id).executeTakeFirst();
  if (row === undefined) return undefined;
  const { confirmed, latest } = await readDescriptors(reader, id);
  // Written by lifecycle.ts alone.
  const { context } = JSON.parse(row.stored) as Stored<typeof executorMachine>;
  const { id: executor, stored: _, createdBy: __, accepting, listed, ...rest } = row;
  return {
    ...rest,
    executor,
    accepting: accepting === 1,
    listed: listed === 1,
    fault: context.fault,
    revokedBecause: context.revokedBecause,
    latestRevision: latest?.revision ?? 0,
    confirmedRevision: confirmed?.revision ?? 0,
    confirmedPolicyDigest: confirmed?.policyDigest,
    confirmedCatalogueDigest: confirmed?.catalogueDigest,
    confirmed,
    latest,
  };
}

/** Where an executor stands, without anything else of it. */
export async function readStanding(reader: Reader, executor: ExecutorId) {
  const row = await reader
    .selectFrom('executors')
    .select(['state', 'epoch', 'accepting'])
    .where('id', '=', executor)
    .executeTakeFirst();
  return row && { ...row, accepting: row.accepting === 1 };
}

/** One row of what was given on an executor: an assignment with its role, or a share. */
interface Given {
  readonly kind: 'person' | 'agent' | 'project' | 'team';
  readonly subject: string;
  readonly role: 'use' | 'admin' | null;
}

/** What was given on an executor beside its scope, as one person stands to it. */
export async function readAccess(reader: Reader, id: ExecutorId, person: PersonId): Promise<Access> {
  const { rows } = await sql<Given>`
    select "kind", "subject", "role" from "assignments" where "executor" = ${id}
      and ("kind" = 'agent' or "subject" = ${person})
    union all select "kind", "subject", null from "shares" where "executor" = ${id}
  `.execute(reader);
  const subjects = (kind: Given['kind']): string[] => rows.flatMap((row) => (row.kind === kind ? [row.subject] : []));
  // `kind` says which id a subject is; the schema keeps all of them in one column.
  const projects = subjects('project') as ProjectId[];
  // As above.
  const teams = subjects('team') as TeamId[];
  // As above.
  const agents = subjects('agent') as AgentId[];
  return {
    personRole: rows.find((row) => row.kind === 'person')?.role ?? null,
    sharedProjects: new Set(projects),
    sharedTeams: new Set(teams),
    assignedAgents: new Set(agents),
  };
}

/** Notes an authenticated sign of life in the caller's transaction; never backwards. */
export async function touchExecutor(tx: Writer, id: ExecutorId, at: number): Promise<void> {
  await tx
    .updateTable('executors')
    .set({ lastSeenAt: at })
    .where('id', '=', id)
    .where((where) => where.or([where('lastSeenAt', 'is', null), where('lastSeenAt', '<', at)]))
    .execute();
}

/** Whether a sign of life is too old to call an executor online (N-210). */
export function isSilent(lastSeenAt: number | null, now: number): boolean {
  return lastSeenAt === null || now - lastSeenAt > channelTimes.offlineMs;
}

/** Marks every silent executor offline, durably, before anybody lists, selects or is sent work (N-210). Answers those it marked. */
export async function markSilent(context: Context): Promise<readonly ExecutorId[]> {
  const before = context.clock.now() - channelTimes.offlineMs;
  const silent = await silentBefore(context.store.read, before);
  if (silent.length === 0) return [];
  const marked = await context.store.write(async (tx) => {
    const still = await silentBefore(tx, before);
    for (const id of still) await stepExecutor(context, tx, id, { type: 'executor.silent' });
    return still;
  });
  for (const id of marked) context.wake.executor(id);
  return marked;
}

async function silentBefore(reader: Reader, before: number): Promise<ExecutorId[]> {
  const rows = await reader
    .selectFrom('executors')
    .select('id')
    .where('state', '=', 'online')
    .where((where) => where.or([where('lastSeenAt', 'is', null), where('lastSeenAt', '<', before)]))
    .execute();
  return rows.map((row) => row.id);
}
