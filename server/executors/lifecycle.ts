/*
 * The stored lifecycle of each executor, stepped by machines/executor in the transaction of its audit entry. Whoever steps wakes
 * the held questions of that executor once the transaction stands.
 */
import type { ExecutorId, PersonId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import { executorMachine } from '../../machines/executor/machine.ts';
import type { ExecutorEvent } from '../../machines/executor/types.ts';
import { begin, step } from '../../machines/step.ts';
import type { Stepped, Stored } from '../../machines/step.ts';
import { record } from '../audit/record.ts';
import { stateName } from '../commands/rules.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';

type Machine = typeof executorMachine;
type Row = Tables['executors'];

/** Who is behind a step, for the audit entry; nobody where the machine itself or the clock is. */
export interface Actor {
  readonly person?: PersonId;
  readonly assistant?: string;
}

/** Where an executor belongs and what it is called. */
export type NewExecutor = Pick<Row, 'id' | 'organisation' | 'team' | 'project' | 'scope' | 'label' | 'createdBy'> &
  Partial<Pick<Row, 'publicKey' | 'fingerprint'>>;

/** Makes an executor in `pending_pairing`; a private one gets its maker as administrator (N-014). */
export async function createExecutor(context: Context, tx: Writer, wish: NewExecutor): Promise<void> {
  const createdAt = context.clock.now();
  await tx
    .insertInto('executors')
    .values({
      ...wish,
      publicKey: wish.publicKey ?? null,
      fingerprint: wish.fingerprint ?? null,
      ...columnsOf(begin(executorMachine, { executorId: wish.id }).stored),
      rotation: 0,
      authorizationRevision: 0,
      lastSeenAt: null,
      createdAt,
    })
    .execute();
  if (wish.scope === 'private') {
    await tx
      .insertInto('assignments')
      .values({
        executor: wish.id,
        kind: 'person',
        subject: wish.createdBy,
        role: 'admin',
        createdAt,
        createdBy: wish.createdBy,
      })
      .execute();
  }
  await record(context, tx, {
    action: 'executor.made',
    organisation: wish.organisation,
    person: wish.createdBy,
    executor: wish.id,
    outcome: 'done',
    facts: { scope: wish.scope, team: wish.team },
  });
}

/**
 * Takes one event in the caller's transaction: state, handles, sealed payloads and audit entry change together. Throws Refusal
 * EXECUTOR_ABSENT, or with the code of the lifecycle's own refusal (STATE_TRANSITION_INVALID among them). Call `context.wake.executor`
 * after the commit.
 */
export async function stepExecutor(
  context: Context,
  tx: Writer,
  id: ExecutorId,
  event: ExecutorEvent,
  actor: Actor = {},
): Promise<Stored<Machine>> {
  const row = await tx
    .selectFrom('executors')
    .select(['stored', 'organisation'])
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined) throw absent();
  // The column is written by this file alone; `step` refuses what its machine never wrote.
  const stored = JSON.parse(row.stored) as Stored<Machine>;
  const next = step(executorMachine, stored, event);
  if (!next.ok) {
    throw new Refusal(next.code, `A machine that is ${sayState(stateName(next.state))} does not take this.`);
  }
  await tx.updateTable('executors').set(columnsOf(next.stored)).where('id', '=', id).execute();
  await actOn(tx, id, next);
  await record(context, tx, {
    action: event.type,
    organisation: row.organisation,
    ...actor,
    executor: id,
    outcome: 'done',
    facts: { from: stateName(stored.value), to: stateName(next.stored.value), epoch: next.stored.context.epoch },
  });
  return next.stored;
}

/** As stepExecutor, in a transaction of its own, waking whoever waits. */
export async function changeExecutor(
  context: Context,
  id: ExecutorId,
  event: ExecutorEvent,
  actor: Actor = {},
): Promise<Stored<Machine>> {
  const stored = await context.store.write((tx) => stepExecutor(context, tx, id, event, actor));
  context.wake.executor(id);
  if (event.type === 'executor.delete') await context.store.scrub();
  return stored;
}

/** A grant, share, assignment or confirmed revision changed: the authorisation counts on and every connection is fenced (N-205). */
export async function advanceAccess(
  context: Context,
  tx: Writer,
  id: ExecutorId,
  event: Extract<ExecutorEvent['type'], 'access.changed' | 'descriptor.reviewed'> = 'access.changed',
): Promise<void> {
  await tx
    .updateTable('executors')
    .set((column) => ({ authorizationRevision: column('authorizationRevision', '+', 1) }))
    .where('id', '=', id)
    .execute();
  const row = await tx.selectFrom('executors').select('state').where('id', '=', id).executeTakeFirst();
  // A revoked executor has no future and its epoch stands for good.
  if (row === undefined || row.state === 'revoked') return;
  await stepExecutor(context, tx, id, { type: event });
}

/** Somebody came into a project or team or left it: access of its executors and of those shared with it changed. Answers which to wake. */
export async function advanceGroup(
  context: Context,
  tx: Writer,
  group: ProjectId | TeamId,
): Promise<readonly ExecutorId[]> {
  const own = await tx
    .selectFrom('executors')
    .select('id')
    .where('state', '!=', 'revoked')
    .where((where) =>
      where.or([
        // A project's id never equals a team's: each begins with its own prefix.
        where('project', '=', group as ProjectId),
        where.exists(
          where
            .selectFrom('shares')
            .select('subject')
            .whereRef('shares.executor', '=', 'executors.id')
            .where('subject', '=', group),
        ),
      ]),
    )
    .execute();
  for (const { id } of own) await advanceAccess(context, tx, id);
  return own.map((row) => row.id);
}

/** What a hidden and an absent executor both answer (N-096). */
export function absent(): Refusal {
  return new Refusal('EXECUTOR_ABSENT', 'There is no such machine.', { status: 404 });
}

async function actOn(tx: Writer, id: ExecutorId, next: Stepped<Machine>): Promise<void> {
  for (const action of next.actions) {
    if (action.type === 'invalidateHandles') await tx.deleteFrom('candidates').where('executor', '=', id).execute();
    if (action.type === 'eraseSealedPayloads') {
      const ofExecutor = tx.selectFrom('commands').select('id').where('executor', '=', id);
      await tx.deleteFrom('payloads').where('command', 'in', ofExecutor).execute();
    }
  }
}

function columnsOf(stored: Stored<Machine>): Pick<Row, 'stored' | 'state' | 'epoch' | 'accepting' | 'listed'> {
  return {
    stored: JSON.stringify(stored),
    // The machine's six states are the column's (N-198); xstate says `value` more widely.
    state: stored.value as Row['state'],
    epoch: stored.context.epoch,
    accepting: stored.context.accepting ? 1 : 0,
    listed: stored.context.listed ? 1 : 0,
  };
}

function sayState(state: string): string {
  return state === 'pending_pairing' ? 'not paired yet' : state;
}
