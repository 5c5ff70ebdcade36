import type { ExecutorId, ProjectId, TeamId } from '../../helpers/protocol/ids.ts';
import type { Membership } from '../accounts/rules.ts';
import type { Context } from '../context.ts';
import { createExecutor } from '../executors/lifecycle.ts';
import { mayCreate } from '../executors/rules.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import type { Scope } from '../store/tables.ts';
import type { PairingRow } from './store.ts';

/** What a person decides when a machine is taken in: its name, who it is for, and where it belongs. */
export interface Destination {
  readonly label: string;
  readonly scope: Scope;
  readonly team: TeamId;
  /** For project executors alone. */
  readonly project: ProjectId | null;
}

/** Checks that a person may make an executor there, and that team and project are of their organisation (N-060). */
export async function requireDestination(tx: Writer, member: Membership, wish: Destination): Promise<void> {
  const isProject = wish.scope === 'project';
  if (isProject !== (wish.project !== null)) {
    throw new Refusal('SCOPE_INVALID', 'A project machine names its project; any other names none.', { status: 400 });
  }
  const team = await tx
    .selectFrom('teams')
    .select('id')
    .where('id', '=', wish.team)
    .where('organisation', '=', member.organisation)
    .executeTakeFirst();
  const project =
    wish.project === null
      ? undefined
      : await tx
          .selectFrom('projects')
          .select('id')
          .where('id', '=', wish.project)
          .where('organisation', '=', member.organisation)
          .where('team', '=', wish.team)
          .executeTakeFirst();
  const exists = team !== undefined && (!isProject || project !== undefined);
  if (exists && mayCreate(member, wish)) return;
  throw new Refusal('SCOPE_NOT_ENTITLED', 'You may not take in a machine for this scope, team or project.', {
    status: 403,
    remedy: 'Choose private, or ask an administrator of the project or organisation.',
  });
}

/** Makes the executor of a pairing, in `pending_pairing`, and notes who takes it in. */
export async function attachExecutor(
  context: Context,
  tx: Writer,
  member: Membership,
  row: PairingRow,
  { label, scope, team, project }: Destination,
  executor: ExecutorId,
): Promise<PairingRow> {
  await createExecutor(context, tx, {
    id: executor,
    organisation: member.organisation,
    team,
    project,
    scope,
    label,
    createdBy: member.person,
  });
  const claim = { executor, claimedBy: member.person, claimedAt: context.clock.now() };
  await tx.updateTable('pairings').set(claim).where('id', '=', row.id).execute();
  return { ...row, ...claim };
}
