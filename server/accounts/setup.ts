import type { OrganisationId, PersonId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import { record } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import { linkAddress, linkTimes, makeLink } from './links.ts';
import { hashPassword } from './password.ts';

/** What the first person states. */
export interface FirstRun {
  readonly organisation: string;
  readonly team: string;
  readonly project: string;
  readonly login: string;
  readonly name: string;
  /** Absent where the owner signs in by one-time links until setting one. */
  readonly password: string | undefined;
}

/** What first-run setup made. */
export interface FirstAccount {
  readonly organisation: OrganisationId;
  readonly team: TeamId;
  readonly project: ProjectId;
  readonly person: PersonId;
}

/** Whether there is anybody yet. */
export async function isSetUp(reader: Reader): Promise<boolean> {
  return (await reader.selectFrom('people').select('id').limit(1).executeTakeFirst()) !== undefined;
}

/** The one-time address of first-run setup, making every earlier one void; undefined once there is an owner. */
export async function setupAddress(context: Context): Promise<string | undefined> {
  return context.store.write(async (tx) => {
    if (await isSetUp(tx)) return undefined;
    const token = await makeLink(context, tx, { purpose: 'setup', person: null, lifeMs: linkTimes.setupMs });
    return linkAddress(context, 'setup', token);
  });
}

/**
 * Makes the owner with an organisation, a team and a project. `permit` uses up what gives the right to do so, in the same
 * transaction. Throws Refusal SETUP_DONE, PASSWORD_WEAK, and what `permit` throws.
 */
export async function setUp(
  context: Context,
  first: FirstRun,
  permit: (tx: Writer) => Promise<void>,
): Promise<FirstAccount> {
  const password = first.password === undefined ? null : await hashPassword(first.password);
  return context.store.write(async (tx) => {
    await permit(tx);
    if (await isSetUp(tx)) throw new Refusal('SETUP_DONE', 'This control plane has an owner already; sign in.');
    return makeFirstAccount(context, tx, first, password);
  });
}

async function makeFirstAccount(
  context: Context,
  tx: Writer,
  first: FirstRun,
  password: string | null,
): Promise<FirstAccount> {
  const createdAt = context.clock.now();
  const made = { organisation: newId('org'), team: newId('team'), project: newId('prj'), person: newId('per') };
  const { organisation, team, project, person } = made;
  await tx.insertInto('organisations').values({ id: organisation, name: first.organisation, createdAt }).execute();
  await tx.insertInto('teams').values({ id: team, organisation, name: first.team, createdAt }).execute();
  await tx.insertInto('projects').values({ id: project, organisation, team, name: first.project, createdAt }).execute();
  await tx
    .insertInto('people')
    .values({
      id: person,
      organisation,
      login: first.login,
      name: first.name,
      role: 'owner',
      active: 1,
      password,
      enteredAt: null,
      createdAt,
    })
    .execute();
  await tx.insertInto('teamMembers').values({ team, person, role: 'admin' }).execute();
  await tx.insertInto('projectMembers').values({ project, person, role: 'owner' }).execute();
  await record(context, tx, { action: 'organisation.made', organisation, person, outcome: 'done' });
  return made;
}
