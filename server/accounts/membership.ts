import type { PersonId } from '../../helpers/protocol/ids.ts';
import { Refusal } from '../refusal.ts';
import type { Reader } from '../store/store.ts';
import type { Membership } from './rules.ts';

/** What a person belongs to now, or undefined where no such person is. */
export async function findMembership(reader: Reader, person: PersonId): Promise<Membership | undefined> {
  const row = await reader
    .selectFrom('people')
    .select(['organisation', 'role', 'active'])
    .where('id', '=', person)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const teams = await reader.selectFrom('teamMembers').select(['team', 'role']).where('person', '=', person).execute();
  const projects = await reader
    .selectFrom('projectMembers')
    .select(['project', 'role'])
    .where('person', '=', person)
    .execute();
  return {
    person,
    organisation: row.organisation,
    role: row.role,
    active: row.active === 1,
    teams: new Map(teams.map((member) => [member.team, member.role])),
    projects: new Map(projects.map((member) => [member.project, member.role])),
  };
}

/** As findMembership, for somebody who is signed in. Throws Refusal for a person who is not active any longer. */
export async function membershipOf(reader: Reader, person: PersonId): Promise<Membership> {
  const member = await findMembership(reader, person);
  if (member === undefined || !member.active) {
    throw new Refusal('SIGN_IN_REQUIRED', 'This account is not active any longer.', { status: 401 });
  }
  return member;
}
