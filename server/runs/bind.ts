/*
 * From a wish to a machine: candidates behind opaque handles, then bindings with rising fences.
 *
 * INVARIANT 1  Of a handle only a digest is stored, with who it was resolved for and for what (N-099).
 * INVARIANT 2  A binding is made in one transaction that asks all conditions again (N-100); a run and operation has one (N-101).
 * INVARIANT 3  All bindings of a run are of one machine, for ever (N-104).
 */
import type { AgentId, ExecutorId, RunId } from '../../helpers/protocol/ids.ts';
import { workspaceBundle } from '../../helpers/protocol/operations.ts';
import type { OperationKey } from '../../helpers/protocol/operations.ts';
import type { AvailabilityReason } from '../../helpers/protocol/errors.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import { record } from '../audit/record.ts';
import { candidates, resolve } from '../availability/store.ts';
import { nextNumber } from '../channel/store.ts';
import type { Work } from '../commands/work.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import { CANDIDATE_MS, chooseMachine, judgeCandidate } from './rules.ts';
import { bindingsOf, findRun } from './store.ts';
import type { BindingRow, RunRow } from './store.ts';

/** Opaque tokens by the operation that each stands for, 32 random bytes each. */
export type Handles = ReadonlyMap<OperationKey, Buffer>;

/** Handles for all keys that are available together on one machine, or the one reason why there is none. */
export type Resolved =
  | { readonly handles: Handles }
  | { readonly handles: ReadonlyMap<OperationKey, never>; readonly reason: AvailabilityReason };

/** Resolves the keys of the workspace bundle that the run has not bound yet. Nothing about a machine is in the answer. */
export async function resolveBundle(work: Work, run: RunRow): Promise<Resolved> {
  const bound = new Set((await bindingsOf(work.store.read, run.id)).map(({ operation }) => operation));
  const granted = await grantedTo(work.store.read, run);
  const wanted = workspaceBundle.filter((key) => !bound.has(key));
  // Without any grant one key is asked for the reason: each further one would ask every machine for the same answer.
  const keys = granted.size > 0 ? wanted.filter((key) => granted.has(key)) : wanted.slice(0, 1);
  const offers = new Map<ExecutorId, OperationKey[]>();
  let reason: AvailabilityReason | undefined;
  for (const operation of keys) {
    const found = await machinesFor(work, work.store.read, run, operation);
    if ('reason' in found) reason ??= found.reason;
    for (const executor of found.executors) offers.set(executor, [...(offers.get(executor) ?? []), operation]);
  }
  const machine = chooseMachine([...offers].map(([id, { length }]) => ({ machine: id, keys: length })));
  if (machine === undefined) return { handles: new Map<OperationKey, never>(), reason: reason ?? 'not_discoverable' };
  const handles = new Map((offers.get(machine) ?? []).map((key) => [key, work.random(32)]));
  await work.store.write((tx) => keepCandidates(work, tx, run, machine, handles));
  return { handles };
}

async function grantedTo(reader: Reader, { agent }: RunRow): Promise<ReadonlySet<string>> {
  const rows = await reader.selectFrom('grants').select('operation').distinct().where('agent', '=', agent).execute();
  return new Set(rows.map(({ operation }) => operation));
}

async function machinesFor(work: Work, reader: Reader, run: RunRow, operation: OperationKey) {
  const { person, agent, project } = run;
  const wish = { person, agent, operation, origin: { project } };
  const fixed = run.executor ?? run.chosen;
  if (fixed === null) return candidates(work, reader, wish);
  const answer = await resolve(work, reader, { ...wish, executor: fixed });
  return answer.available ? { executors: [fixed] } : { executors: [], reason: answer.reason };
}

async function keepCandidates(
  work: Work,
  tx: Writer,
  run: RunRow,
  executor: ExecutorId,
  handles: Handles,
): Promise<void> {
  const now = work.clock.now();
  await tx.deleteFrom('candidates').where('expiresAt', '<', now).where('usedAt', 'is', null).execute();
  const { id, person, agent } = run;
  const rows = [...handles].map(([operation, handle]) => ({
    handleDigest: sha256(handle),
    run: id,
    person,
    agent,
    operation,
    executor,
    expiresAt: now + CANDIDATE_MS,
    usedAt: null,
  }));
  await tx.insertInto('candidates').values(rows).execute();
}

/** Who presents a handle, and for what. */
export interface Presented {
  readonly run: RunId;
  readonly person: RunRow['person'];
  readonly agent: AgentId | null;
  readonly operation: string;
  readonly handle: Uint8Array;
}

/**
 * Consumes handles and binds, all or none, in one transaction. The same handle again gives the same binding. Throws Refusal
 * CANDIDATE_UNKNOWN, CANDIDATE_FOREIGN, CANDIDATE_EXPIRED, BINDING_CONFLICT, RUN_ENDED, or the reason of availability.
 */
export async function bind(work: Work, presented: readonly Presented[]): Promise<BindingRow[]> {
  return work.store.write(async (tx) => {
    const bindings: BindingRow[] = [];
    for (const one of presented) bindings.push(await bindOne(work, tx, one));
    return bindings;
  });
}

async function bindOne(work: Work, tx: Writer, presented: Presented): Promise<BindingRow> {
  const handleDigest = sha256(presented.handle);
  const stored = await tx
    .selectFrom('candidates')
    .selectAll()
    .where('handleDigest', '=', handleDigest)
    .executeTakeFirst();
  const judged = judgeCandidate(stored, presented, work.clock.now());
  if (!stored || (judged !== 'bind' && judged !== 'repeat')) throw refusalOf(judged);
  const bound = await tx
    .selectFrom('bindings')
    .selectAll()
    .where('run', '=', presented.run)
    .where('operation', '=', presented.operation)
    .executeTakeFirst();
  if (bound) {
    if (bound.handleDigest.equals(handleDigest)) return bound;
    throw new Refusal('BINDING_CONFLICT', 'This run is bound for this operation already, by another handle.');
  }
  if (judged === 'repeat') throw refusalOf('CANDIDATE_EXPIRED');
  await tx
    .updateTable('candidates')
    .set({ usedAt: work.clock.now() })
    .where('handleDigest', '=', handleDigest)
    .execute();
  return insertBinding(work, tx, presented, stored.executor, handleDigest);
}

async function insertBinding(
  work: Work,
  tx: Writer,
  { run: id, person, agent, operation }: Omit<Presented, 'handle'>,
  executor: ExecutorId,
  handleDigest: Buffer,
): Promise<BindingRow> {
  const run = await findRun(tx, id);
  if (!run || (run.state !== 'active' && agent !== null)) {
    throw new Refusal('RUN_ENDED', 'This run has ended; nothing more is bound in it.');
  }
  if (run.executor !== null && run.executor !== executor) {
    throw new Refusal('BINDING_CONFLICT', 'This run belongs to another machine, for as long as it exists.');
  }
  const wish = { person, agent: agent ?? undefined, operation, origin: { project: run.project }, executor };
  const answer = await resolve(work, tx, wish);
  if (!answer.available) throw new Refusal(answer.reason, 'This operation is not available in this run now.');
  const fence = await nextNumber(tx, executor, 'fence');
  const row = { id: newId('bnd'), run: id, operation, executor, fence, handleDigest, createdAt: work.clock.now() };
  await tx.insertInto('bindings').values(row).execute();
  if (run.executor === null) await tx.updateTable('runs').set({ executor }).where('id', '=', id).execute();
  await record(work, tx, {
    action: 'run.bound',
    person,
    ...(agent === null ? {} : { agent }),
    executor,
    run: id,
    outcome: 'done',
    facts: { operation, fence },
  });
  return row;
}

/** The binding of what a person does alone with the machine of a run: made once, kept. Throws Refusal. */
export async function bindForPerson(work: Work, run: RunRow, operation: OperationKey): Promise<BindingRow> {
  const { executor, person, id } = run;
  if (executor === null) throw new Refusal('RUN_UNBOUND', 'No machine has worked for this run yet.');
  return work.store.write(async (tx) => {
    const bound = (await bindingsOf(tx, id)).find((binding) => binding.operation === operation);
    if (bound) return bound;
    // Resolved and consumed in one transaction: the handle exists for nobody and its digest only fills the row.
    return insertBinding(work, tx, { run: id, person, agent: null, operation }, executor, sha256(work.random(32)));
  });
}

function refusalOf(judged: string): Refusal {
  switch (judged) {
    case 'CANDIDATE_EXPIRED':
      return new Refusal(judged, 'The candidate is older than five minutes; resolve the operation again.');
    case 'CANDIDATE_FOREIGN':
      return new Refusal(judged, 'The candidate was resolved for somebody else or for something else.');
    default:
      return new Refusal('CANDIDATE_UNKNOWN', 'There is no such candidate.');
  }
}
