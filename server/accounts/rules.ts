import type { OrganisationId, PersonId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import type { OrganisationRole } from '../store/tables.ts';

/** What one person belongs to, as read at one moment. */
export interface Membership {
  readonly person: PersonId;
  readonly organisation: OrganisationId;
  readonly role: OrganisationRole;
  readonly active: boolean;
  readonly teams: ReadonlyMap<TeamId, 'admin' | 'member'>;
  readonly projects: ReadonlyMap<ProjectId, 'owner' | 'admin' | 'member'>;
}

/** Whether a person administers the organisation. */
export function administersOrganisation(member: Membership): boolean {
  return member.active && (member.role === 'owner' || member.role === 'admin');
}

/** Whether a person may act in a team. */
export function isInTeam(member: Membership, team: TeamId): boolean {
  return member.active && (member.teams.has(team) || administersOrganisation(member));
}

/** Whether a person is entitled to a project of their own organisation. */
export function isInProject(member: Membership, project: ProjectId): boolean {
  return member.active && (member.projects.has(project) || administersOrganisation(member));
}

/** Whether a person administers a project of their own organisation. */
export function administersProject(member: Membership, project: ProjectId): boolean {
  if (!member.active) return false;
  const role = member.projects.get(project);
  return administersOrganisation(member) || role === 'owner' || role === 'admin';
}
