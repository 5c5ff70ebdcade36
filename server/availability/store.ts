import type { AvailabilityReason } from '../../helpers/protocol/errors.ts';
import type { AgentId, ExecutorId, PersonId, ProjectId } from '../../helpers/protocol/ids.ts';
import { findOperation } from '../../helpers/protocol/operations.ts';
import { findMembership } from '../accounts/membership.ts';
import type { Membership } from '../accounts/rules.ts';
import type { Context } from '../context.ts';
import { readDescriptors } from '../descriptors/store.ts';
import type { DescriptorsInForce } from '../descriptors/store.ts';
import { isInScope, mayDiscover } from '../executors/rules.ts';
import type { Access } from '../executors/rules.ts';
import { isSilent, readAccess } from '../executors/store.ts';
import type { Reader } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';
import { decideAvailability, nearestReason } from './rules.ts';
import type { Availability, AvailabilityFacts } from './rules.ts';

/** Who wants which operation, in which immutable context; without an agent the person acts alone. */
export interface Wish {
  readonly person: PersonId;
  readonly agent: AgentId | undefined;
  readonly operation: string;
  readonly origin: { readonly project: ProjectId };
}

/** A wish for one executor. */
export interface Question extends Wish {
  readonly executor: ExecutorId;
}

/** Answers one question from what stands in the store at this moment; inside a transaction it is what that transaction sees. */
export async function resolve(
  context: Pick<Context, 'clock'>,
  reader: Reader,
  question: Question,
): Promise<Availability> {
  return decideAvailability(await readFacts(context, reader, question));
}

/** Every executor on which the wish is available, oldest first, or the one reason why there is none. */
export async function candidates(
  context: Pick<Context, 'clock'>,
  reader: Reader,
  wish: Wish,
): Promise<
  | { readonly executors: readonly ExecutorId[] }
  | { readonly executors: readonly []; readonly reason: AvailabilityReason }
> {
  const executors: ExecutorId[] = [];
  const reasons: AvailabilityReason[] = [];
  for (const executor of await executorsToTry(reader, wish)) {
    const answer = await resolve(context, reader, { ...wish, executor });
    if (answer.available) executors.push(executor);
    else reasons.push(answer.reason);
  }
  return executors.length > 0 ? { executors } : { executors: [], reason: nearestReason(reasons) };
}

/** Executors with a grant for the wish; where there is none, all of the organisation, so that the reason is the true one. */
async function executorsToTry(reader: Reader, wish: Wish): Promise<ExecutorId[]> {
  const member = await fact(undefined, () => findMembership(reader, wish.person));
  if (member === undefined) return [];
  const listed = reader
    .selectFrom('executors')
    .select('executors.id')
    .where('organisation', '=', member.organisation)
    .where('listed', '=', 1)
    .where('state', '!=', 'revoked')
    .orderBy('executors.createdAt')
    .orderBy('executors.id');
  const agent = wish.agent;
  if (agent !== undefined) {
    const granted = await fact([], () =>
      listed
        .innerJoin('grants', 'grants.executor', 'executors.id')
        .where('grants.agent', '=', agent)
        .where('grants.operation', '=', wish.operation)
        .execute(),
    );
    if (granted.length > 0) return granted.map((row) => row.id);
  }
  return (await fact([], () => listed.execute())).map((row) => row.id);
}

/** A fact that cannot be read is the value that refuses (N-096). */
async function fact<Value>(refusing: Value, read: () => Promise<Value>): Promise<Value> {
  try {
    return await read();
  } catch {
    // Which fact it was is seen in the answer: the condition it belongs to is false.
    return refusing;
  }
}

/** What the resolver needs of an executor beside its descriptors. */
type Machine = Pick<
  Tables['executors'],
  'organisation' | 'scope' | 'project' | 'state' | 'accepting' | 'listed' | 'lastSeenAt'
>;

/** Reads every fact of one question; each stands or falls by itself. */
export async function readFacts(
  { clock }: Pick<Context, 'clock'>,
  reader: Reader,
  question: Question,
): Promise<AvailabilityFacts> {
  const { person, agent, operation, executor: id } = question;
  const member = await fact(undefined, () => findMembership(reader, person));
  const machine = await fact(undefined, () => findMachine(reader, id));
  const access = await fact(undefined, () => readAccess(reader, id, person));
  const descriptors = await fact(undefined, () => readDescriptors(reader, id));
  const known = findOperation(operation);
  const alone = agent === undefined && known?.caller === 'person';
  const byAgent = agent !== undefined && known?.caller === 'agent';
  return {
    discoverable: isDiscoverable(member, machine, access),
    granted: alone || (byAgent && (await fact(false, () => isGranted(reader, id, agent, operation)))),
    toolGranted: alone || (byAgent && (await fact(false, () => isToolGranted(reader, agent, operation)))),
    inScope: await fact(false, () => matchesScope(reader, member, machine, access, question)),
    online: isOnline(machine, clock.now()),
    approved: isApproved(descriptors),
    permittedLocally: isPermittedLocally(descriptors, operation),
  };
}

async function findMachine(reader: Reader, id: ExecutorId): Promise<Machine | undefined> {
  return reader
    .selectFrom('executors')
    .select(['organisation', 'scope', 'project', 'state', 'accepting', 'listed', 'lastSeenAt'])
    .where('id', '=', id)
    .executeTakeFirst();
}

function isDiscoverable(
  member: Membership | undefined,
  machine: Machine | undefined,
  access: Access | undefined,
): boolean {
  if (member === undefined || machine === undefined || access === undefined) return false;
  return machine.listed === 1 && mayDiscover(member, machine, access);
}

async function isGranted(reader: Reader, executor: ExecutorId, agent: AgentId, operation: string): Promise<boolean> {
  const row = await reader
    .selectFrom('grants')
    .select('operation')
    .where('executor', '=', executor)
    .where('agent', '=', agent)
    .where('operation', '=', operation)
    .executeTakeFirst();
  return row !== undefined;
}

async function isToolGranted(reader: Reader, agent: AgentId, operation: string): Promise<boolean> {
  const row = await reader
    .selectFrom('toolGrants')
    .innerJoin('agents', 'agents.id', 'toolGrants.agent')
    .select('operation')
    .where('agent', '=', agent)
    .where('operation', '=', operation)
    .where('endedAt', 'is', null)
    .executeTakeFirst();
  return row !== undefined;
}

async function matchesScope(
  reader: Reader,
  member: Membership | undefined,
  machine: Machine | undefined,
  access: Access | undefined,
  { agent, origin }: Question,
): Promise<boolean> {
  if (member === undefined || machine === undefined || access === undefined) return false;
  const project = await reader
    .selectFrom('projects')
    .select('organisation')
    .where('id', '=', origin.project)
    .executeTakeFirst();
  if (project === undefined) return false;
  return isInScope(member, agent, machine, access, { organisation: project.organisation, project: origin.project });
}

function isOnline(machine: Machine | undefined, now: number): boolean {
  if (machine === undefined || machine.state !== 'online' || machine.accepting === 0) return false;
  return !isSilent(machine.lastSeenAt, now);
}

/** After a change of root nothing is served until a person confirmed it (D-22). */
function isApproved(descriptors: DescriptorsInForce | undefined): boolean {
  if (descriptors?.confirmed === undefined) return false;
  return descriptors.latest?.rootName === descriptors.confirmed.rootName;
}

/** What the machine no longer permits is refused at once, whatever was confirmed (N-088). */
function isPermittedLocally(descriptors: DescriptorsInForce | undefined, operation: string): boolean {
  if (descriptors?.confirmed === undefined || descriptors.latest === undefined) return false;
  return descriptors.confirmed.operations.includes(operation) && descriptors.latest.operations.includes(operation);
}
