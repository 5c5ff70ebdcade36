import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { admitKey } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey, Signed } from '../../helpers/protocol/signed.ts';
import { readUnverified } from '../../helpers/protocol/statements.ts';
import type { Statement } from '../../helpers/protocol/statements.ts';
import type { Context } from '../context.ts';
import type { Paired, PairingCallAnswer, PairingCallBody } from '../protocol.ts';
import type { Reader, Writer } from '../store/store.ts';
import { checkClock, openProof, refuse } from './proofs.ts';
import { claimDigest, claimOf, findPairing, OPEN_STATES, stepPairing, storedOf } from './store.ts';
import type { PairingRow } from './store.ts';

interface Asked<Type extends 'machine.pair-poll' | 'machine.pair-confirm'> {
  readonly row: PairingRow;
  readonly key: AdmittedKey;
  readonly statement: Statement<Type>;
}

/**
 * Finds the pairing that a machine speaks of and verifies that its own key did. An unknown one and a foreign key look alike.
 *
 * THREAT: whoever recorded a machine's question sends it again under another call: a poll would cancel the pairing. A statement
 * therefore counts once while the pairing is open, for one call, whatever comes of it (test/server/pairing/code-flow.test.ts). Over
 * a pairing that ended nothing is decided any longer, and a lost answer may be asked for with the same bytes.
 */
async function readAsked<Type extends 'machine.pair-poll' | 'machine.pair-confirm'>(
  context: Context,
  type: Type,
  signed: Signed,
): Promise<Asked<Type>> {
  const named = namedPairing(type, signed);
  return context.store.write(async (tx) => {
    // TRUST: the name only finds the key; the statement below is read again after that key's signature was verified.
    const row = named === undefined ? undefined : await findPairing(context, tx, named);
    if (row === undefined || row.publicKey === null) throw unknown();
    const key = admitKey(row.publicKey);
    const statement = openProof(type, key, signed, 'PAIRING_UNKNOWN');
    if (!OPEN_STATES.includes(row.state)) return { row, key, statement };
    checkClock(context.clock.now(), statement.at);
    const { guard } = statement;
    if (row.guard !== null && guard <= row.guard)
      throw refuse('PROOF_INVALID', 'The machine signed this, or something after it, for an earlier call.');
    await tx.updateTable('pairings').set({ guard }).where('id', '=', row.id).execute();
    return { row: { ...row, guard }, key, statement };
  });
}

/** The same question in the transaction that decides it, with the row as it stands then. */
async function standing<Type extends 'machine.pair-poll' | 'machine.pair-confirm'>(
  context: Context,
  tx: Writer,
  asked: Asked<Type>,
): Promise<Asked<Type>> {
  const row = await findPairing(context, tx, asked.row.id);
  if (row === undefined) throw unknown();
  return { ...asked, row };
}

function namedPairing(
  type: 'machine.pair-poll' | 'machine.pair-confirm',
  signed: Signed,
): PairingRow['id'] | undefined {
  try {
    return readUnverified(type, signed).pairing;
  } catch {
    // Bytes of another shape name no pairing.
    return undefined;
  }
}

function unknown() {
  return refuse('PAIRING_UNKNOWN', 'There is no such pairing of this machine.', 404);
}

async function pairedOf(context: Context, reader: Reader, row: PairingRow): Promise<Paired> {
  const claim = await claimOf(reader, row);
  return { executor: claim.executor, commandKey: Uint8Array.from(context.signer.publicKey), claim };
}

/** Where a pairing stands, as its machine is told. */
export async function pollPairing(
  context: Context,
  { poll }: PairingCallBody<'poll'>,
): Promise<PairingCallAnswer<'poll'>> {
  const { row } = await readAsked(context, 'machine.pair-poll', poll);
  switch (row.state) {
    case 'claimed':
      return { state: 'claimed', claim: await claimOf(context.store.read, row) };
    case 'confirmed':
      return { state: 'paired', paired: await pairedOf(context, context.store.read, row) };
    case 'expired':
      return { state: 'expired' };
    case 'cancelled':
      return { state: 'cancelled' };
    case 'refused':
      return { state: 'rejected' };
    default:
      return { state: 'waiting' };
  }
}

/** The claim as it stands now. Throws Refusal PAIRING_UNKNOWN, also where nothing is claimed. */
export async function fetchClaim(
  context: Context,
  { poll }: PairingCallBody<'claim'>,
): Promise<PairingCallAnswer<'claim'>> {
  const { row } = await readAsked(context, 'machine.pair-poll', poll);
  if (row.state !== 'claimed') throw refuse('PAIRING_UNKNOWN', 'Nobody has claimed this machine.', 409);
  return { claim: await claimOf(context.store.read, row) };
}

/** The machine gives up. */
export async function cancelPairing(
  context: Context,
  { poll }: PairingCallBody<'cancel'>,
): Promise<PairingCallAnswer<'cancel'>> {
  const cancelling = await readAsked(context, 'machine.pair-poll', poll);
  const row = await context.store.write(async (tx) => {
    const asked = await standing(context, tx, cancelling);
    if (!OPEN_STATES.includes(asked.row.state)) return asked.row;
    return stepPairing(context, tx, asked.row, { type: 'pairing.cancel', by: 'machine' });
  });
  tellPage(context, row);
  if (row.state === 'confirmed')
    throw refuse('FLOW_MISMATCH', 'Both sides confirmed already; disconnect the machine instead.', 409);
  return { state: 'cancelled' };
}

/** The person at the machine says yes or no to exactly the facts that they saw (N-076, N-077). Repeated, it has one effect. */
export async function confirmPairing(
  context: Context,
  { confirm }: PairingCallBody<'confirm'>,
): Promise<PairingCallAnswer<'confirm'>> {
  const asked = await readAsked(context, 'machine.pair-confirm', confirm);
  const { row, answer } = await context.store.write(async (tx) =>
    settle(context, tx, await standing(context, tx, asked), undefined),
  );
  tellPage(context, row);
  return answer;
}

interface Settled {
  readonly row: PairingRow;
  readonly answer: PairingCallAnswer<'confirm'>;
}

async function settle(
  context: Context,
  tx: Writer,
  { row, statement }: Asked<'machine.pair-confirm'>,
  replaces: ExecutorId | undefined,
): Promise<Settled> {
  if (row.flow !== 'code') throw refuse('FLOW_MISMATCH', 'An enrolment is confirmed on the page alone.', 409);
  const digest = Buffer.from(statement.claimDigest).toString('hex');
  if (statement.answer === 'reject') {
    const isOpen = OPEN_STATES.includes(row.state);
    const next = isOpen ? await stepPairing(context, tx, row, { type: 'pairing.reject', by: 'machine' }) : row;
    if (next.state === 'confirmed') throw refuse('FLOW_MISMATCH', 'This pairing was confirmed already.', 409);
    return { row: next, answer: { state: 'rejected' } };
  }
  if (row.state === 'confirmed') {
    const isSame = storedOf(row).context.claimDigest === digest && (row.replaces ?? undefined) === replaces;
    if (!isSame) throw refuse('CLAIM_CHANGED', 'This pairing was confirmed with other facts.', 409);
    return { row, answer: { state: 'paired', paired: await pairedOf(context, tx, row) } };
  }
  if (row.state !== 'claimed' || row.fingerprint === null) {
    throw refuse(
      row.state === 'expired' ? 'PAIRING_EXPIRED' : 'PAIRING_CANCELLED',
      'There is no claim to confirm.',
      410,
    );
  }
  const named = replaces === undefined ? row : await noteReplacement(tx, row, replaces);
  const next = await stepPairing(context, tx, named, {
    type: 'pairing.confirmed-by-machine',
    fingerprint: row.fingerprint,
    claimDigest: digest,
    currentClaimDigest: claimDigest(await claimOf(tx, row)),
  });
  return { row: next, answer: { state: 'paired', paired: await pairedOf(context, tx, next) } };
}

/** The machine names what it replaces only now, in a statement of both keys; before that nobody could have promised it. */
async function noteReplacement(tx: Writer, row: PairingRow, replaces: ExecutorId): Promise<PairingRow> {
  const stored = storedOf(row);
  const named = JSON.stringify({ ...stored, context: { ...stored.context, replaces } });
  await tx.updateTable('pairings').set({ replaces, stored: named }).where('id', '=', row.id).execute();
  return { ...row, replaces, stored: named };
}

/**
 * Confirms a pairing in place of an older executor, which is revoked in the same transaction (N-079). The statement names both keys
 * and both signed it.
 */
export async function replacePairing(
  context: Context,
  { confirm, current, next }: PairingCallBody<'replace'>,
): Promise<PairingCallAnswer<'replace'>> {
  const confirming = await readAsked(context, 'machine.pair-confirm', confirm);
  const { row, answer } = await context.store.write(async (tx) => {
    const asked = await standing(context, tx, confirming);
    const replaces = await checkReplacement(tx, asked, current, next);
    return settle(context, tx, asked, replaces);
  });
  tellPage(context, row);
  if (row.replaces !== null) context.wake.executor(row.replaces);
  if (answer.state !== 'paired') throw refuse('PROOF_INVALID', 'A replacement cannot be a rejection.');
  return answer;
}

async function checkReplacement(
  tx: Writer,
  { row, key, statement }: Asked<'machine.pair-confirm'>,
  current: Signed,
  next: Signed,
): Promise<ExecutorId> {
  const stated = openProof('machine.replace', key, next);
  if (
    statement.answer !== 'confirm' ||
    stated.pairing !== row.id ||
    Buffer.compare(current.payload, next.payload) !== 0
  ) {
    throw refuse('PROOF_INVALID', 'The replacement does not belong to this pairing.');
  }
  const old = await tx
    .selectFrom('executors')
    .select(['publicKey', 'state', 'organisation'])
    .where('id', '=', stated.oldExecutor)
    .executeTakeFirst();
  if (row.executor === null) throw unknown();
  const own = await tx.selectFrom('executors').select('organisation').where('id', '=', row.executor).executeTakeFirst();
  if (old === undefined || old.publicKey === null || old.organisation !== own?.organisation) {
    throw refuse('PAIRING_UNKNOWN', 'There is no such machine to replace in this organisation.', 404);
  }
  openProof('machine.replace', admitKey(old.publicKey), current);
  const names = old.publicKey.equals(stated.oldPublicKey) && row.publicKey?.equals(stated.newPublicKey) === true;
  if (!names) throw refuse('PROOF_INVALID', 'The replacement names other keys than those that signed it.');
  const isDone = row.state === 'confirmed' && row.replaces === stated.oldExecutor;
  if (old.state === 'revoked' && !isDone)
    throw refuse('PAIRING_UNKNOWN', 'The machine to replace was ended already.', 409);
  return stated.oldExecutor;
}

function tellPage(context: Context, row: PairingRow): void {
  if (row.claimedBy !== null) context.wake.pairing(row.id, row.claimedBy);
  if (row.executor !== null) context.wake.executor(row.executor);
}
