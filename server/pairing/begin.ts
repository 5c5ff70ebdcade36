/*
 * The two ways in which a machine begins to pair. Nothing here is enough: a person on the page must confirm or claim as well
 * (N-060), and nothing is believed but what the machine's own key signed.
 */
import { timingSafeEqual } from 'node:crypto';
import { encode } from '../../helpers/protocol/codec.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey } from '../../helpers/protocol/signed.ts';
import { pairingMachine } from '../../machines/pairing/machine.ts';
import { begin } from '../../machines/step.ts';
import { limits, takeLimit } from '../accounts/limits.ts';
import { record } from '../audit/record.ts';
import { stateName } from '../commands/rules.ts';
import type { Context } from '../context.ts';
import { checkDescriptor } from '../descriptors/submit.ts';
import type { CheckedDescriptor } from '../descriptors/submit.ts';
import { isKeyKnown } from '../executors/rotate-key.ts';
import { newId } from '../new-id.ts';
import type { PairingCallAnswer, PairingCallBody } from '../protocol.ts';
import type { Writer } from '../store/store.ts';
import { codeOf, codeVerifier } from './code.ts';
import { admitMachineKey, checkClock, isDigestOf, openProof, refuse } from './proofs.ts';
import { expireIfDue, OPEN_STATES, PAIRING_MS, stepPairing } from './store.ts';
import type { PairingRow } from './store.ts';

/** How often a machine asks where its pairing stands, in ms (N-073). */
const POLL_MS = 3000;
/** Codes drawn before a request is turned away: only a table full of live codes needs a second one. */
const CODE_DRAWS = 8;

type MachineFacts = Pick<
  PairingRow,
  | 'factsDigest'
  | 'machineName'
  | 'publicKey'
  | 'fingerprint'
  | 'descriptor'
  | 'descriptorPayload'
  | 'descriptorSignature'
>;

function machineFacts(
  key: AdmittedKey,
  body: PairingCallBody<'enrol'> | PairingCallBody<'start'>,
  checked: CheckedDescriptor,
): MachineFacts {
  const machineName = 'machineName' in body ? body.machineName : null;
  const challenge = 'challenge' in body ? body.challenge : null;
  const { requestId, publicKey, descriptor, descriptorSigned } = body;
  return {
    factsDigest: sha256(encode({ requestId, machineName, challenge, publicKey, descriptor })),
    machineName,
    publicKey: Buffer.from(publicKey),
    fingerprint: key.fingerprint,
    descriptor: checked.document,
    descriptorPayload: Buffer.from(descriptorSigned.payload),
    descriptorSignature: Buffer.from(descriptorSigned.signature),
  };
}

/** Throws Refusal for a pairing that is over. */
export function refuseEnded(row: PairingRow): void {
  if (row.state === 'expired') throw refuse('PAIRING_EXPIRED', 'Ten minutes passed; begin the pairing again.', 410);
  if (row.state === 'cancelled' || row.state === 'refused') {
    throw refuse('PAIRING_CANCELLED', 'This pairing was ended by a person; begin again.', 410);
  }
}

/**
 * Eight digits: a machine's first request. The same request with the same facts gets the same answer, its expiry unchanged (N-074).
 * Throws Refusal PROOF_INVALID, KEY_REFUSED, DESCRIPTOR_INVALID, CLOCK_SKEW, PAIRING_FACTS_CHANGED, KEY_ALREADY_KNOWN,
 * PAIRING_EXPIRED, PAIRING_CANCELLED, RATE_LIMITED or UNAVAILABLE.
 */
export async function startPairing(
  context: Context,
  address: string,
  body: PairingCallBody<'start'>,
): Promise<PairingCallAnswer<'start'>> {
  const key = admitMachineKey(body.publicKey);
  const proof = openProof('machine.pair-start', key, body.proof);
  const covers =
    proof.requestId === body.requestId &&
    proof.machineName === body.machineName &&
    Buffer.compare(proof.publicKey, body.publicKey) === 0 &&
    isDigestOf(proof.descriptorDigest, body.descriptor);
  if (!covers) throw refuse('PROOF_INVALID', 'The machine’s signature does not cover what it sent.');
  const checked = checkDescriptor(key, undefined, { descriptor: body.descriptor, signed: body.descriptorSigned });
  const facts = machineFacts(key, body, checked);
  const known = await context.store.write((tx) => repeatStart(context, tx, body.requestId, facts));
  if (known !== undefined) return startAnswer(context, known);
  checkClock(context.clock.now(), proof.at);
  await takeLimit(context, limits.codesOfAddress, address);
  return startAnswer(context, await context.store.write((tx) => insertOffered(context, tx, body.requestId, facts)));
}

async function repeatStart(
  context: Context,
  tx: Writer,
  requestId: string,
  facts: MachineFacts,
): Promise<PairingRow | undefined> {
  const found = await tx.selectFrom('pairings').selectAll().where('requestId', '=', requestId).executeTakeFirst();
  if (found === undefined) return undefined;
  if (found.flow !== 'code') throw refuse('FLOW_MISMATCH', 'This request belongs to an enrolment.');
  if (facts.factsDigest === null || found.factsDigest?.equals(facts.factsDigest) !== true) {
    throw refuse(
      'PAIRING_FACTS_CHANGED',
      'This request was made before with other facts; begin the pairing again.',
      409,
    );
  }
  const row = await expireIfDue(context, tx, found);
  // The refusal must not take the expiry back, so it is thrown by `startAnswer`, outside this transaction.
  return row;
}

function startAnswer(context: Context, row: PairingRow): PairingCallAnswer<'start'> {
  refuseEnded(row);
  if (row.fingerprint === null) throw new Error('a machine that began has a fingerprint');
  return {
    pairing: row.id,
    code: codeOf(context.secrets, row.id, row.codeAttempt),
    fingerprint: row.fingerprint,
    commandKey: Uint8Array.from(context.signer.publicKey),
    expiresAt: row.expiresAt,
    pollMs: POLL_MS,
  };
}

async function insertOffered(
  context: Context,
  tx: Writer,
  requestId: string,
  facts: MachineFacts,
): Promise<PairingRow> {
  const repeated = await repeatStart(context, tx, requestId, facts);
  if (repeated !== undefined) return repeated;
  if (facts.publicKey === null || facts.factsDigest === null) throw new Error('a machine that begins has a key');
  if (await isKeyKnown(tx, facts.publicKey))
    throw refuse('KEY_ALREADY_KNOWN', 'This key is paired or pairing already.', 409);
  const id = newId('pair');
  const now = context.clock.now();
  const { attempt, verifier } = await freeCode(context, tx, id);
  const { stored } = begin(pairingMachine, {
    pairingId: id,
    flow: 'code',
    requestDigest: facts.factsDigest.toString('hex'),
    fingerprint: facts.fingerprint,
    replaces: null,
  });
  const row: PairingRow = {
    ...facts,
    id,
    flow: 'code',
    requestId,
    stored: JSON.stringify(stored),
    state: stateName(stored.value),
    codeVerifier: verifier,
    codeAttempt: attempt,
    challengeVerifier: null,
    executor: null,
    claimedBy: null,
    claimedAt: null,
    replaces: null,
    guard: null,
    createdAt: now,
    expiresAt: now + PAIRING_MS,
  };
  await tx.insertInto('pairings').values(row).execute();
  await record(context, tx, {
    action: 'pairing.started',
    outcome: 'done',
    facts: { pairing: id, fingerprint: facts.fingerprint ?? '' },
  });
  return row;
}

async function freeCode(
  context: Context,
  tx: Writer,
  id: PairingRow['id'],
): Promise<{ readonly attempt: number; readonly verifier: Buffer }> {
  for (let attempt = 0; attempt < CODE_DRAWS; attempt += 1) {
    const verifier = codeVerifier(context.secrets, codeOf(context.secrets, id, attempt));
    const taken = await tx.selectFrom('pairings').select('id').where('codeVerifier', '=', verifier).executeTakeFirst();
    if (taken === undefined) return { attempt, verifier };
  }
  throw refuse('UNAVAILABLE', 'No code is free now; try again in a minute.', 503);
}

/**
 * Enrolment: a machine answers the challenge that a person gave to its operator. An unknown request and a wrong challenge look alike
 * (N-070). Throws Refusal ENROLLMENT_PROOF_INVALID, ENROLLMENT_UNKNOWN, ENROLLMENT_EXPIRED, ENROLLMENT_USED, KEY_REFUSED,
 * KEY_ALREADY_KNOWN, DESCRIPTOR_INVALID or CLOCK_SKEW.
 */
export async function enrol(context: Context, body: PairingCallBody<'enrol'>): Promise<PairingCallAnswer<'enrol'>> {
  const key = admitMachineKey(body.publicKey);
  const proof = openProof('machine.enrol', key, body.proof, 'ENROLLMENT_PROOF_INVALID');
  const covers =
    proof.requestId === body.requestId &&
    Buffer.compare(proof.challenge, body.challenge) === 0 &&
    Buffer.compare(proof.publicKey, body.publicKey) === 0 &&
    isDigestOf(proof.descriptorDigest, body.descriptor);
  if (!covers) throw refuse('ENROLLMENT_PROOF_INVALID', 'The machine’s signature does not cover what it sent.');
  const checked = checkDescriptor(key, undefined, { descriptor: body.descriptor, signed: body.descriptorSigned });
  const facts = machineFacts(key, body, checked);
  const row = await context.store.write((tx) => submitEnrolment(context, tx, body, facts, proof.at));
  if (row.state === 'expired')
    throw refuse('ENROLLMENT_EXPIRED', 'This enrolment is older than ten minutes; ask for a new one.', 410);
  refuseEnded(row);
  if (row.claimedBy !== null) context.wake.pairing(row.id, row.claimedBy);
  return { pairing: row.id, commandKey: Uint8Array.from(context.signer.publicKey), expiresAt: row.expiresAt };
}

async function submitEnrolment(
  context: Context,
  tx: Writer,
  body: PairingCallBody<'enrol'>,
  facts: MachineFacts,
  at: number,
): Promise<PairingRow> {
  const found = await tx.selectFrom('pairings').selectAll().where('requestId', '=', body.requestId).executeTakeFirst();
  const given = sha256(body.challenge);
  const expected = found?.challengeVerifier ?? Buffer.alloc(32);
  const matches =
    timingSafeEqual(given, expected) ||
    (facts.factsDigest !== null && found?.factsDigest?.equals(facts.factsDigest) === true);
  if (found === undefined || found.flow !== 'enrolment' || !matches) {
    throw refuse('ENROLLMENT_UNKNOWN', 'There is no such enrolment, or its challenge is another one.', 404);
  }
  const row = await expireIfDue(context, tx, found);
  if (!OPEN_STATES.includes(row.state) || facts.factsDigest === null || facts.fingerprint === null) return row;
  const isRepeat = row.factsDigest?.equals(facts.factsDigest) === true;
  if (!isRepeat) {
    checkClock(context.clock.now(), at);
    if (row.state === 'issued' && facts.publicKey !== null && (await isKeyKnown(tx, facts.publicKey))) {
      throw refuse('KEY_ALREADY_KNOWN', 'This key is paired or pairing already.', 409);
    }
  }
  const requestDigest = facts.factsDigest.toString('hex');
  const stepped = await stepPairing(context, tx, row, {
    type: 'pairing.submitted',
    requestDigest,
    fingerprint: facts.fingerprint,
  });
  if (isRepeat) return stepped;
  await tx.updateTable('pairings').set(facts).where('id', '=', row.id).execute();
  return { ...stepped, ...facts };
}
