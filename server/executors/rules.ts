import type { AgentId, OrganisationId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import type { Scope } from '../store/tables.ts';
import { administersOrganisation, administersProject, isInProject, isInTeam } from '../accounts/rules.ts';
import type { Membership } from '../accounts/rules.ts';

/** Where an executor belongs; fixed when it was made (N-012, N-013). */
export interface Belonging {
  readonly organisation: OrganisationId;
  readonly scope: Scope;
  readonly project: ProjectId | null;
}

/** What was given beside the scope: to this person, and to groups; agents are named one by one. */
export interface Access {
  /** Role of the asking person, null where none was assigned. */
  readonly personRole: 'use' | 'admin' | null;
  readonly sharedProjects: ReadonlySet<ProjectId>;
  readonly sharedTeams: ReadonlySet<TeamId>;
  readonly assignedAgents: ReadonlySet<AgentId>;
}

/** Whether a person administers an executor (N-009 to N-011). Owning the organisation gives nothing over private ones. */
export function mayAdminister(member: Membership, executor: Belonging, access: Pick<Access, 'personRole'>): boolean {
  if (!member.active || member.organisation !== executor.organisation) return false;
  switch (executor.scope) {
    case 'private':
      return access.personRole === 'admin';
    case 'project':
      return executor.project !== null && administersProject(member, executor.project);
    case 'organization':
      return administersOrganisation(member);
  }
}

/** Whether a share covers a person. With a run's project, a share to a project covers only what runs there. */
export function isCovered(member: Membership, access: Access, project?: ProjectId): boolean {
  const byTeam = [...access.sharedTeams].some((team) => member.active && member.teams.has(team));
  const byProject = [...access.sharedProjects].some(
    (shared) => member.active && member.projects.has(shared) && (project === undefined || project === shared),
  );
  return byTeam || byProject;
}

/** Whether a person may know that an executor exists (N-090). */
export function mayDiscover(member: Membership, executor: Belonging, access: Access): boolean {
  if (!member.active || member.organisation !== executor.organisation) return false;
  if (access.personRole !== null || isCovered(member, access)) return true;
  if (executor.scope === 'private') return false;
  if (executor.scope === 'organization') return true;
  return executor.project !== null && isInProject(member, executor.project);
}

/** Whether a private executor would be left without administrator if this person no longer were one (N-014, N-015). */
export function isLastAdministrator(scope: Scope, administrators: readonly string[], person: string): boolean {
  return scope === 'private' && administrators.includes(person) && administrators.length === 1;
}

/** The immutable context of a run, as far as scopes look at it. */
export interface RunContext {
  readonly organisation: OrganisationId;
  readonly project: ProjectId;
}

/** Whether the scope of an executor matches a run of this person and agent (N-093). Without an agent the person acts alone. */
export function isInScope(
  member: Membership,
  agent: AgentId | undefined,
  executor: Belonging,
  access: Access,
  run: RunContext,
): boolean {
  if (!member.active || member.organisation !== executor.organisation || run.organisation !== executor.organisation) {
    return false;
  }
  const named = access.personRole !== null || isCovered(member, access, run.project);
  switch (executor.scope) {
    case 'private':
      return named && (agent === undefined || access.assignedAgents.has(agent));
    case 'project':
      return run.project === executor.project && (named || isInProject(member, run.project));
    case 'organization':
      return true;
  }
}

/** Whether a person may make an executor of a scope (N-060). */
export function mayCreate(
  member: Membership,
  wish: { readonly scope: Scope; readonly team: TeamId; readonly project: ProjectId | null },
): boolean {
  if (!member.active) return false;
  switch (wish.scope) {
    case 'private':
      return isInTeam(member, wish.team);
    case 'project':
      return wish.project !== null && administersProject(member, wish.project);
    case 'organization':
      return administersOrganisation(member);
  }
}
