import type { PairingId } from '../../helpers/protocol/ids.ts';
import { documentOf } from '../descriptors/store.ts';
import { membershipOf } from '../accounts/membership.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import { mayAdminister } from '../executors/rules.ts';
import { findExecutor, readAccess } from '../executors/store.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { ShownPairing } from './answers.ts';
import { claimOf, findPairing, OPEN_STATES, stepPairing, storedOf } from './store.ts';
import type { PairingRow } from './store.ts';

/** A pairing as the page shows it. */
export async function shown(reader: Reader, row: PairingRow): Promise<ShownPairing> {
  const descriptor = row.descriptor === null ? null : documentOf({ document: row.descriptor });
  const claim = row.executor === null ? null : await claimOf(reader, row);
  return {
    pairing: row.id,
    flow: row.flow,
    state: row.state,
    by: storedOf(row).context.endedBy,
    machineName: row.machineName,
    fingerprint: row.fingerprint,
    platform: descriptor?.platform ?? null,
    sandbox: descriptor?.sandbox ?? null,
    daemonVersion: descriptor?.daemonVersion ?? null,
    rootName: descriptor?.rootName ?? null,
    expiresAt: row.expiresAt,
    executor: row.executor,
    label: claim?.label ?? null,
    scope: claim?.scope ?? null,
    teamName: claim?.teamName ?? null,
  };
}

/** What an unknown code, a foreign pairing and one that is over all answer. */
export function absentPairing(): Refusal {
  return new Refusal('PAIRING_UNKNOWN', 'No machine waits under this code.', {
    status: 404,
    remedy: 'Codes live ten minutes: ask the machine for a new one and check each digit.',
  });
}

/** Where a pairing stands, for the person who claimed or issued it. */
export async function showPairing(context: Context, by: SignedIn, id: PairingId): Promise<ShownPairing> {
  return shown(context.store.read, await context.store.write((tx) => requireOwn(context, tx, by, id)));
}

/** The person gives a pairing up before it was confirmed. */
export async function cancelByPerson(context: Context, by: SignedIn, id: PairingId): Promise<ShownPairing> {
  const row = await context.store.write(async (tx) => {
    const found = await requireOwn(context, tx, by, id);
    return stepPairing(context, tx, found, { type: 'pairing.cancel', by: 'person' }, by.person);
  });
  context.wake.pairing(row.id, by.person);
  return shown(context.store.read, row);
}

/** A pairing of this person: they claimed or issued it and still administer its executor. */
export async function requireOwn(context: Context, tx: Writer, by: SignedIn, id: PairingId): Promise<PairingRow> {
  const member = await membershipOf(tx, by.person);
  const row = await findPairing(context, tx, id);
  if (row === undefined || row.executor === null || row.claimedBy !== by.person) throw absentPairing();
  const executor = await findExecutor(tx, row.executor);
  const access = await readAccess(tx, row.executor, by.person);
  if (executor === undefined || !mayAdminister(member, executor, access)) throw absentPairing();
  return row;
}

/** How long an ended pairing that no executor came of is remembered, in ms. */
const REMEMBERED_MS = 86_400_000;

/** Ends every pairing whose ten minutes passed, so that nothing waits for a machine that never comes, and forgets those of yesterday. */
export async function expirePairings(context: Context): Promise<void> {
  const due = await context.store.read
    .selectFrom('pairings')
    .select('id')
    .where('state', 'in', OPEN_STATES)
    .where('expiresAt', '<', context.clock.now())
    .execute();
  await context.store.write((tx) =>
    tx
      .deleteFrom('pairings')
      .where('state', 'not in', OPEN_STATES)
      .where('executor', 'is', null)
      .where('expiresAt', '<', context.clock.now() - REMEMBERED_MS)
      .execute(),
  );
  for (const { id } of due) {
    const row = await context.store.write((tx) => findPairing(context, tx, id));
    if (row?.claimedBy !== undefined && row.claimedBy !== null) context.wake.pairing(id, row.claimedBy);
  }
}
