import { sql } from 'kysely';
import type { OrganisationId, PersonId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import { Refusal } from '../refusal.ts';
import type { Reader } from '../store/store.ts';
import type { OrganisationRole } from '../store/tables.ts';
import { administersOrganisation } from './rules.ts';
import type { Membership } from './rules.ts';

/** One row of what a person belongs to; `kind` says what the id and the role are of. */
type Belongs =
  | {
      readonly kind: 'organisation';
      readonly id: OrganisationId;
      readonly role: OrganisationRole;
      readonly active: 0 | 1;
    }
  | { readonly kind: 'team'; readonly id: TeamId; readonly role: 'admin' | 'member'; readonly active: 1 }
  | {
      readonly kind: 'project';
      readonly id: ProjectId;
      readonly role: 'owner' | 'admin' | 'member';
      readonly active: 1;
    };

/** What a person belongs to now, or undefined where no such person is. One read, since every call of an agent asks. */
export async function findMembership(reader: Reader, person: PersonId): Promise<Membership | undefined> {
  const { rows } = await sql<Belongs>`
    select 'organisation' as "kind", "organisation" as "id", "role", "active" from "people" where "id" = ${person}
    union all select 'team', "team", "role", 1 from "teamMembers" where "person" = ${person}
    union all select 'project', "project", "role", 1 from "projectMembers" where "person" = ${person}
  `.execute(reader);
  const own = rows.find((row) => row.kind === 'organisation');
  if (own === undefined) return undefined;
  return {
    person,
    organisation: own.id,
    role: own.role,
    active: own.active === 1,
    teams: new Map(rows.flatMap((row) => (row.kind === 'team' ? [[row.id, row.role]] : []))),
    projects: new Map(rows.flatMap((row) => (row.kind === 'project' ? [[row.id, row.role]] : []))),
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

/** Throws Refusal NOT_ADMINISTRATOR for who does not administer the organisation. */
export function requireOrganisationAdministrator(member: Membership): void {
  if (administersOrganisation(member)) return;
  throw new Refusal('NOT_ADMINISTRATOR', 'Only an administrator of the organisation may do this.', { status: 403 });
}

/** An active person of the member's own organisation. Throws Refusal PERSON_ABSENT, the same for one of another and one who left. */
export async function requirePerson(
  reader: Reader,
  member: Membership,
  person: PersonId,
): Promise<{ readonly role: OrganisationRole; readonly enteredAt: number | null }> {
  const row = await reader
    .selectFrom('people')
    .select(['role', 'enteredAt'])
    .where('id', '=', person)
    .where('organisation', '=', member.organisation)
    .where('active', '=', 1)
    .executeTakeFirst();
  if (row === undefined) throw new Refusal('PERSON_ABSENT', 'There is no such person.', { status: 404 });
  return row;
}
