import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { findOperation } from '../../helpers/protocol/operations.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import { requireAdministrator } from '../executors/entitled.ts';
import type { Reader } from '../store/store.ts';
import type { AgentAccessAnswer, SharingAnswer } from './answers.ts';

/** What each agent of the organisation may do on one machine, for its administrators (N-188). */
export async function readAgentAccess(reader: Reader, by: SignedIn, executor: ExecutorId): Promise<AgentAccessAnswer> {
  const standing = await requireAdministrator(reader, by.person, executor);
  const approved = (standing.executor.confirmed?.operations ?? []).filter(
    (key) => findOperation(key)?.caller === 'agent',
  );
  const agents = await reader
    .selectFrom('agents')
    .innerJoin('people', 'people.id', 'agents.owner')
    .select(['agents.id', 'agents.name', 'people.name as ownerName'])
    .where('agents.organisation', '=', standing.member.organisation)
    .where('endedAt', 'is', null)
    .orderBy('agents.createdAt')
    .execute();
  const grants = await reader
    .selectFrom('grants')
    .select(['agent', 'operation'])
    .where('executor', '=', executor)
    .orderBy('operation')
    .execute();
  return {
    agents: agents.map(({ id, name, ownerName }) => {
      const operations = grants.filter((grant) => grant.agent === id).map((grant) => grant.operation);
      const isOn = operations.length > 0 && approved.every((key) => operations.includes(key));
      return {
        agent: id,
        name,
        ownerName,
        access: isOn ? 'on' : operations.length > 0 ? 'partial' : 'off',
        operations,
      };
    }),
  };
}

/** Who may use one machine beside its scope, for its administrators (N-189). */
export async function readSharing(reader: Reader, by: SignedIn, executor: ExecutorId): Promise<SharingAnswer> {
  const standing = await requireAdministrator(reader, by.person, executor);
  const { organisation } = standing.member;
  const assigned = await reader
    .selectFrom('assignments')
    .select(['subject', 'role'])
    .where('executor', '=', executor)
    .where('kind', '=', 'person')
    .execute();
  const roles = new Map<string, 'use' | 'admin'>(assigned.map((row) => [row.subject, row.role]));
  const shares = await reader.selectFrom('shares').select('subject').where('executor', '=', executor).execute();
  const shared = new Set<string>(shares.map((row) => row.subject));
  const everybody = await reader
    .selectFrom('people')
    .select(['id as person', 'name', 'login'])
    .where('organisation', '=', organisation)
    .where('active', '=', 1)
    .orderBy('name')
    .execute();
  const projects = await reader
    .selectFrom('projects')
    .select(['id', 'name'])
    .where('organisation', '=', organisation)
    .orderBy('name')
    .execute();
  const teams = await reader
    .selectFrom('teams')
    .select(['id', 'name'])
    .where('id', '=', standing.executor.team)
    .execute();
  const people = everybody.flatMap((person) => {
    const role = roles.get(person.person);
    return role === undefined ? [] : [{ ...person, role }];
  });
  return {
    people,
    projects: projects.filter(({ id }) => shared.has(id)),
    teams: teams.filter(({ id }) => shared.has(id)),
    candidates: {
      people: everybody.filter(({ person }) => !roles.has(person)),
      projects: projects.filter(({ id }) => !shared.has(id)),
      teams: teams.filter(({ id }) => !shared.has(id)),
    },
  };
}
