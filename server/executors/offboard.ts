import type { ExecutorId, PersonId } from '../../helpers/protocol/ids.ts';
import { membershipOf, requireOrganisationAdministrator, requirePerson } from '../accounts/membership.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import { recordDecision } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { activeAdministrators } from '../grants/access.ts';
import type { EmergencyAnswer } from './answers.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import { advanceAccess, stepExecutor } from './lifecycle.ts';

/**
 * Ends a person's account: sessions, links, agents' tokens and own assignments go at once, everybody else's stay as they were (N-019).
 * A private executor that would be left without administrator takes no new work, finishes what it holds and is revoked (N-016).
 * Throws Refusal NOT_ADMINISTRATOR, PERSON_ABSENT or OWNER_REQUIRED.
 */
export async function offboardPerson(context: Context, by: SignedIn, person: PersonId): Promise<void> {
  const touched = await context.store.write(async (tx) => {
    await requireRemovable(tx, by, person);
    await tx.updateTable('people').set({ active: 0 }).where('id', '=', person).execute();
    await tx.deleteFrom('sessions').where('person', '=', person).execute();
    await tx.deleteFrom('links').where('person', '=', person).execute();
    await tx
      .updateTable('agentTokens')
      .set({ endedAt: context.clock.now() })
      .where('person', '=', person)
      .where('endedAt', 'is', null)
      .execute();
    const own = await tx
      .selectFrom('assignments')
      .innerJoin('executors', 'executors.id', 'assignments.executor')
      .select(['executors.id', 'scope'])
      .where('kind', '=', 'person')
      .where('subject', '=', person)
      .execute();
    await tx.deleteFrom('assignments').where('kind', '=', 'person').where('subject', '=', person).execute();
    await recordDecision(context, tx, by, { action: 'person.offboarded', facts: { subject: person } });
    for (const { id, scope } of own) {
      await advanceAccess(context, tx, id);
      if (scope === 'private' && (await activeAdministrators(tx, id)).length === 0) await windDown(context, tx, id);
    }
    return [...own.map((row) => row.id), ...(await machinesAtWork(tx, person))];
  });
  context.wake.account(person);
  for (const id of new Set(touched)) context.wake.executor(id);
}

/** Machines that work in runs of the person: what runs there is looked at again at once. */
async function machinesAtWork(tx: Writer, person: PersonId): Promise<ExecutorId[]> {
  const runs = await tx
    .selectFrom('runs')
    .select('executor')
    .distinct()
    .where('person', '=', person)
    .where('state', '=', 'active')
    .execute();
  return runs.flatMap(({ executor }) => (executor === null ? [] : [executor]));
}

async function requireRemovable(tx: Writer, by: SignedIn, person: PersonId): Promise<void> {
  const member = await membershipOf(tx, by.person);
  requireOrganisationAdministrator(member);
  const { role } = await requirePerson(tx, member, person);
  if (role !== 'owner') return;
  const owners = await tx
    .selectFrom('people')
    .select('id')
    .where('organisation', '=', member.organisation)
    .where('role', '=', 'owner')
    .where('active', '=', 1)
    .execute();
  if (member.role === 'owner' && owners.length > 1) return;
  throw new Refusal(
    'OWNER_REQUIRED',
    'An organisation keeps at least one owner, and only an owner may end an owner’s account.',
    {
      status: 403,
    },
  );
}

/** Finish and end: what is at work drains, what cannot drain ends at once. */
async function windDown(context: Context, tx: Writer, id: ExecutorId): Promise<void> {
  const { state } = await tx.selectFrom('executors').select('state').where('id', '=', id).executeTakeFirstOrThrow();
  if (state === 'online' || state === 'offline') await stepExecutor(context, tx, id, { type: 'executor.drain' });
  if (state === 'pending_pairing') await stepExecutor(context, tx, id, { type: 'executor.delete' });
  if (state === 'error') await stepExecutor(context, tx, id, { type: 'executor.disconnect', by: 'administrator' });
}

/** Every executor of the organisation that could be ended, for its owner. Throws Refusal NOT_OWNER. */
export async function listForEmergency(context: Context, by: SignedIn): Promise<EmergencyAnswer['executors']> {
  const member = await membershipOf(context.store.read, by.person);
  if (member.role !== 'owner') throw notOwner();
  return context.store.read
    .selectFrom('executors')
    .select(['id as executor', 'label', 'team', 'state', 'createdAt'])
    .where('organisation', '=', member.organisation)
    .where('listed', '=', 1)
    .where('state', '!=', 'revoked')
    .orderBy('createdAt')
    .execute();
}

/** Ends an executor that the organisation's owner does not manage; this path can do nothing else (N-017). Throws Refusal NOT_OWNER or EXECUTOR_ABSENT. */
export async function revokeInEmergency(context: Context, by: SignedIn, id: ExecutorId): Promise<void> {
  await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    if (member.role !== 'owner') throw notOwner();
    const row = await tx
      .selectFrom('executors')
      .select('state')
      .where('id', '=', id)
      .where('organisation', '=', member.organisation)
      .where('listed', '=', 1)
      .executeTakeFirst();
    if (row === undefined) throw new Refusal('EXECUTOR_ABSENT', 'There is no such machine.', { status: 404 });
    const event = { type: 'executor.disconnect', by: 'organization-owner' } as const;
    await stepExecutor(context, tx, id, event, { person: by.person });
  });
  context.wake.executor(id);
}

function notOwner(): Refusal {
  return new Refusal('NOT_OWNER', 'Only an owner of the organisation may do this.', { status: 403 });
}
