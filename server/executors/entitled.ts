import type { ExecutorId, PersonId } from '../../helpers/protocol/ids.ts';
import { membershipOf } from '../accounts/membership.ts';
import type { Membership } from '../accounts/rules.ts';
import { Refusal } from '../refusal.ts';
import type { Reader } from '../store/store.ts';
import { absent } from './lifecycle.ts';
import { mayAdminister, mayDiscover } from './rules.ts';
import type { Access } from './rules.ts';
import { findExecutor, readAccess } from './store.ts';
import type { ExecutorRow } from './store.ts';

/** How one person stands to one executor that they may know of. */
export interface Standing {
  readonly member: Membership;
  readonly executor: ExecutorRow;
  readonly access: Access;
  readonly administers: boolean;
}

/** How a person stands to an executor. Throws Refusal EXECUTOR_ABSENT, the same for one that is hidden and one that is not there (N-096). */
export async function requireDiscoverable(reader: Reader, person: PersonId, id: ExecutorId): Promise<Standing> {
  const member = await membershipOf(reader, person);
  const executor = await findExecutor(reader, id);
  if (executor === undefined || !executor.listed) throw absent();
  const access = await readAccess(reader, id, person);
  const administers = mayAdminister(member, executor, access);
  if (!administers && !mayDiscover(member, executor, access)) throw absent();
  return { member, executor, access, administers };
}

/** As requireDiscoverable. Throws Refusal NOT_ADMINISTRATOR for who may use it and no more. */
export async function requireAdministrator(reader: Reader, person: PersonId, id: ExecutorId): Promise<Standing> {
  const standing = await requireDiscoverable(reader, person, id);
  if (standing.administers) return standing;
  throw new Refusal('NOT_ADMINISTRATOR', 'Only an administrator of this machine may do this.', { status: 403 });
}
