import type { PersonId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import { recordDecision } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { advanceGroup } from '../executors/lifecycle.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { OrganisationRole } from '../store/tables.ts';
import { linkAddress, linkTimes, makeLink } from './links.ts';
import { hashPassword, isPassword } from './password.ts';
import { limits, takeLimit } from './limits.ts';
import { membershipOf, requireOrganisationAdministrator, requirePerson } from './membership.ts';
import { administersOrganisation, administersProject } from './rules.ts';
import type { Membership } from './rules.ts';
import type { SignedIn } from './sessions.ts';

/** Somebody whom an administrator takes in. */
export interface Invitation {
  readonly login: string;
  readonly name: string;
  readonly role: OrganisationRole;
  readonly team: TeamId;
}

/** Takes a person in; the one-time address to sign in with is in this answer and nowhere else. Throws Refusal NOT_ADMINISTRATOR, LOGIN_TAKEN, TEAM_ABSENT or OWNER_REQUIRED. */
export async function invitePerson(
  context: Context,
  by: SignedIn,
  wish: Invitation,
): Promise<{ readonly person: PersonId; readonly address: string }> {
  const person = newId('per');
  const token = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    requireOrganisationAdministrator(member);
    if (wish.role === 'owner' && member.role !== 'owner') {
      throw new Refusal('OWNER_REQUIRED', 'Only an owner makes another owner.', { status: 403 });
    }
    await requireTeam(tx, member, wish.team);
    const taken = await tx.selectFrom('people').select('id').where('login', '=', wish.login).executeTakeFirst();
    if (taken !== undefined) throw new Refusal('LOGIN_TAKEN', 'Somebody has this login name already.');
    const { login, name, role } = wish;
    const createdAt = context.clock.now();
    await tx
      .insertInto('people')
      .values({
        id: person,
        organisation: member.organisation,
        login,
        name,
        role,
        active: 1,
        password: null,
        enteredAt: null,
        createdAt,
      })
      .execute();
    await tx.insertInto('teamMembers').values({ team: wish.team, person, role: 'member' }).execute();
    await recordDecision(context, tx, by, { action: 'person.invited', facts: { subject: person } });
    return makeLink(context, tx, { purpose: 'sign-in', person, lifeMs: linkTimes.invitationMs });
  });
  return { person, address: linkAddress(context, 'sign-in', token) };
}

/** A new one-time address for somebody of the organisation who has no other way in. Throws Refusal NOT_ADMINISTRATOR or PERSON_ABSENT. */
export async function renewInvitation(
  context: Context,
  by: SignedIn,
  person: PersonId,
): Promise<{ readonly address: string }> {
  const token = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    requireOrganisationAdministrator(member);
    const { enteredAt } = await requirePerson(tx, member, person);
    // THREAT: an administrator signs in as somebody else and has their private machines. A link is given while nobody has come in.
    if (enteredAt !== null) {
      throw new Refusal('PERSON_ENTERED', 'This person has signed in already; nobody is given a link in their place.', {
        remedy: 'On the machine that runs the control plane: server --config FILE reset-password LOGIN.',
      });
    }
    await recordDecision(context, tx, by, { action: 'person.link-renewed', facts: { subject: person } });
    return makeLink(context, tx, { purpose: 'sign-in', person, lifeMs: linkTimes.invitationMs });
  });
  return { address: linkAddress(context, 'sign-in', token) };
}

/** Makes a project in a team. Throws Refusal NOT_ADMINISTRATOR or TEAM_ABSENT. */
export async function createProject(context: Context, by: SignedIn, team: TeamId, name: string): Promise<ProjectId> {
  const id = newId('prj');
  await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    requireOrganisationAdministrator(member);
    await requireTeam(tx, member, team);
    await tx
      .insertInto('projects')
      .values({ id, organisation: member.organisation, team, name, createdAt: context.clock.now() })
      .execute();
    await tx.insertInto('projectMembers').values({ project: id, person: by.person, role: 'owner' }).execute();
    await recordDecision(context, tx, by, { action: 'project.made', facts: { project: id } });
  });
  return id;
}

/** Makes a team. Throws Refusal NOT_ADMINISTRATOR. */
export async function createTeam(context: Context, by: SignedIn, name: string): Promise<TeamId> {
  const id = newId('team');
  await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    requireOrganisationAdministrator(member);
    await tx
      .insertInto('teams')
      .values({ id, organisation: member.organisation, name, createdAt: context.clock.now() })
      .execute();
    await tx.insertInto('teamMembers').values({ team: id, person: by.person, role: 'admin' }).execute();
    await recordDecision(context, tx, by, { action: 'team.made', facts: { team: id } });
  });
  return id;
}

/** Puts a person into a team or takes them out (role null). Throws Refusal NOT_ADMINISTRATOR, TEAM_ABSENT or PERSON_ABSENT. */
export async function setTeamMember(
  context: Context,
  by: SignedIn,
  team: TeamId,
  person: PersonId,
  role: 'admin' | 'member' | null,
): Promise<void> {
  const touched = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    requireOrganisationAdministrator(member);
    await requireTeam(tx, member, team);
    await requirePerson(tx, member, person);
    await tx.deleteFrom('teamMembers').where('team', '=', team).where('person', '=', person).execute();
    if (role !== null) await tx.insertInto('teamMembers').values({ team, person, role }).execute();
    await recordDecision(context, tx, by, {
      action: 'team.member-set',
      facts: { subject: person, team, role: role ?? 'none' },
    });
    return advanceGroup(context, tx, team);
  });
  for (const id of touched) context.wake.executor(id);
}

/** Puts a person into a project or takes them out (role null). Throws Refusal NOT_ADMINISTRATOR, PROJECT_ABSENT or PERSON_ABSENT. */
export async function setProjectMember(
  context: Context,
  by: SignedIn,
  project: ProjectId,
  person: PersonId,
  role: 'owner' | 'admin' | 'member' | null,
): Promise<void> {
  const touched = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    const row = await tx
      .selectFrom('projects')
      .select('id')
      .where('id', '=', project)
      .where('organisation', '=', member.organisation)
      .executeTakeFirst();
    if (row === undefined) throw new Refusal('PROJECT_ABSENT', 'There is no such project.', { status: 404 });
    if (!administersProject(member, project)) {
      throw new Refusal('NOT_ADMINISTRATOR', 'Only an administrator of the project may do this.', { status: 403 });
    }
    await requirePerson(tx, member, person);
    await tx.deleteFrom('projectMembers').where('project', '=', project).where('person', '=', person).execute();
    if (role !== null) await tx.insertInto('projectMembers').values({ project, person, role }).execute();
    await recordDecision(context, tx, by, {
      action: 'project.member-set',
      facts: { subject: person, project, role: role ?? 'none' },
    });
    return advanceGroup(context, tx, project);
  });
  for (const id of touched) context.wake.executor(id);
}

/**
 * Sets the account's password. One that has a password states it; a first one is set in a session that began with a one-time link.
 * Every other session of the person ends. Throws Refusal PASSWORD_WRONG, PASSWORD_WEAK or LINK_REQUIRED.
 */
export async function setPassword(
  context: Context,
  by: SignedIn,
  wish: { readonly current: string | undefined; readonly next: string },
): Promise<void> {
  await takeLimit(context, limits.passwordsOfPerson, by.person);
  const before = await context.store.read
    .selectFrom('people')
    .select('password')
    .where('id', '=', by.person)
    .executeTakeFirstOrThrow();
  if (before.password === null && !by.byLink) {
    throw new Refusal('LINK_REQUIRED', 'A first password is set in a session that began with a one-time link.', {
      status: 403,
    });
  }
  if (before.password !== null && !(await isPassword(wish.current ?? '', before.password))) {
    throw new Refusal('PASSWORD_WRONG', 'This is not the current password; nothing was changed.', { status: 403 });
  }
  const password = await hashPassword(wish.next);
  await context.store.write(async (tx) => {
    const changed = await tx
      .updateTable('people')
      .set({ password })
      .where('id', '=', by.person)
      .where('password', before.password === null ? 'is' : '=', before.password)
      .executeTakeFirst();
    if (changed.numUpdatedRows === 0n)
      throw new Refusal('PASSWORD_WRONG', 'The password was changed meanwhile.', { status: 409 });
    await tx.deleteFrom('sessions').where('person', '=', by.person).where('id', '!=', by.session).execute();
    await recordDecision(context, tx, by, { action: 'person.password-set', facts: { subject: by.person } });
  });
}

/** Organisation, teams, projects and people as a member sees them. */
export async function readOrganisation(reader: Reader, by: SignedIn) {
  const member = await membershipOf(reader, by.person);
  const { organisation } = member;
  const { name } = await reader
    .selectFrom('organisations')
    .select('name')
    .where('id', '=', organisation)
    .executeTakeFirstOrThrow();
  const teams = await reader
    .selectFrom('teams')
    .select(['id', 'name'])
    .where('organisation', '=', organisation)
    .orderBy('createdAt')
    .execute();
  const projects = await reader
    .selectFrom('projects')
    .select(['id', 'name', 'team'])
    .where('organisation', '=', organisation)
    .orderBy('createdAt')
    .execute();
  const people = await reader
    .selectFrom('people')
    .select(['id', 'name', 'login', 'role', 'active', 'password'])
    .where('organisation', '=', organisation)
    .orderBy('createdAt')
    .execute();
  const administers = administersOrganisation(member);
  const inTeams = administers ? await reader.selectFrom('teamMembers').selectAll().execute() : [];
  const inProjects = administers ? await reader.selectFrom('projectMembers').selectAll().execute() : [];
  return {
    id: organisation,
    name,
    teams: teams.filter((team) => administers || member.teams.has(team.id)),
    projects: projects.filter((project) => administers || member.projects.has(project.id)),
    people: people.map(({ active, password, ...person }) => ({
      ...person,
      active: active === 1,
      hasPassword: password !== null,
      teams: inTeams.filter((row) => row.person === person.id).map(({ team, role }) => ({ team, role })),
      projects: inProjects.filter((row) => row.person === person.id).map(({ project, role }) => ({ project, role })),
    })),
  };
}

async function requireTeam(tx: Writer, member: Membership, team: TeamId): Promise<void> {
  const row = await tx
    .selectFrom('teams')
    .select('id')
    .where('id', '=', team)
    .where('organisation', '=', member.organisation)
    .executeTakeFirst();
  if (row === undefined) throw new Refusal('TEAM_ABSENT', 'There is no such team.', { status: 404 });
}
