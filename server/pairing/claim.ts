/*
 * How a person takes in a machine that shows eight digits. Each is a deliberate act of somebody who is signed in; no agent token, chat
 * text or schedule reaches any of it (N-067).
 */
import type { PairingId } from '../../helpers/protocol/ids.ts';
import { addressSubject, limits, takeLimit } from '../accounts/limits.ts';
import { membershipOf } from '../accounts/membership.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import type { ShownPairing } from './answers.ts';
import { codeVerifier } from './code.ts';
import { requireDestination, attachExecutor } from './destination.ts';
import type { Destination } from './destination.ts';
import { absentPairing, shown } from './show.ts';
import { claimDigest, claimOf, expireIfDue, findPairing, OPEN_STATES, stepPairing } from './store.ts';
import type { PairingRow } from './store.ts';

/** Finds the machine that shows this code. Throws Refusal PAIRING_UNKNOWN, RATE_LIMITED or UNAVAILABLE (N-078). */
export async function lookUpCode(context: Context, by: SignedIn, address: string, code: string): Promise<ShownPairing> {
  await takeLimit(context, limits.lookupsOfAddress, addressSubject(address));
  await takeLimit(context, limits.lookupsOfAccount, by.person);
  const verifier = codeVerifier(context.secrets, code);
  const row = await context.store.write(async (tx) => {
    const found = await tx.selectFrom('pairings').selectAll().where('codeVerifier', '=', verifier).executeTakeFirst();
    return found === undefined ? undefined : expireIfDue(context, tx, found);
  });
  if (row === undefined || !OPEN_STATES.includes(row.state)) throw absentPairing();
  if (row.claimedBy !== null && row.claimedBy !== by.person) throw absentPairing();
  return shown(context.store.read, row);
}

/**
 * Claims a machine of the eight-digit flow, repeating the fingerprint that the person compared; the same claim again has one effect
 * (N-075). Throws Refusal PAIRING_UNKNOWN, FINGERPRINT_NOT_CONFIRMED, CLAIM_CONFLICT, SCOPE_INVALID or SCOPE_NOT_ENTITLED.
 */
export async function claimPairing(
  context: Context,
  by: SignedIn,
  id: PairingId,
  wish: Destination & { readonly fingerprint: string },
): Promise<ShownPairing> {
  const row = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    const found = await findPairing(context, tx, id);
    const isMine = found?.claimedBy === null || found?.claimedBy === by.person;
    if (found === undefined || found.flow !== 'code' || !isMine || !OPEN_STATES.includes(found.state))
      throw absentPairing();
    if (found.fingerprint !== wish.fingerprint) throw notConfirmed();
    await requireDestination(tx, member, wish);
    if (found.state === 'claimed') return repeatClaim(context, tx, by, found, wish);
    const claimed = await attachExecutor(context, tx, member, found, wish, newId('exr'));
    return stepPairing(context, tx, claimed, await claimedEvent(tx, claimed), by.person);
  });
  context.wake.pairing(row.id, by.person);
  return shown(context.store.read, row);
}

function notConfirmed(): Refusal {
  return new Refusal('FINGERPRINT_NOT_CONFIRMED', 'This is not the fingerprint of the machine that asks.', {
    remedy: 'Compare the fingerprint on the machine with the one on the page, character by character.',
  });
}

async function claimedEvent(tx: Writer, row: PairingRow) {
  const fingerprint = row.fingerprint ?? '';
  return { type: 'pairing.claimed', fingerprint, claimDigest: claimDigest(await claimOf(tx, row)) } as const;
}

async function repeatClaim(
  context: Context,
  tx: Writer,
  by: SignedIn,
  row: PairingRow,
  wish: Destination,
): Promise<PairingRow> {
  const claim = await claimOf(tx, row);
  const { project } = await tx
    .selectFrom('executors')
    .select('project')
    .where('id', '=', claim.executor)
    .executeTakeFirstOrThrow();
  if (project !== wish.project)
    throw new Refusal('CLAIM_CONFLICT', 'This machine was claimed already for another project.');
  const again = { ...claim, label: wish.label, scope: wish.scope, team: wish.team };
  const event = {
    type: 'pairing.claimed',
    fingerprint: row.fingerprint ?? '',
    claimDigest: claimDigest(again),
  } as const;
  return stepPairing(context, tx, row, event, by.person);
}
