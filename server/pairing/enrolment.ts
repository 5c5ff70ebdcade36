import type { ExecutorId, PairingId } from '../../helpers/protocol/ids.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import { pairingMachine } from '../../machines/pairing/machine.ts';
import { begin } from '../../machines/step.ts';
import { membershipOf } from '../accounts/membership.ts';
import type { SignedIn } from '../accounts/sessions.ts';
import { recordDecision } from '../audit/record.ts';
import { stateName } from '../commands/rules.ts';
import type { Context } from '../context.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { ShownPairing } from './answers.ts';
import { requireDestination, attachExecutor } from './destination.ts';
import type { Destination } from './destination.ts';
import { requireOwn, shown } from './show.ts';
import { PAIRING_MS, stepPairing } from './store.ts';
import type { PairingRow } from './store.ts';

/** What an operator carries to the machine; the challenge is in this answer and nowhere else. */
export interface Enrolment {
  readonly pairing: PairingId;
  readonly executor: ExecutorId;
  readonly requestId: string;
  /** 32 bytes as 43 characters of base64url. */
  readonly challenge: string;
  readonly expiresAt: number;
}

/** Row of an enrolment that no machine has answered. */
function issuedRow(about: {
  readonly id: PairingId;
  readonly requestId: string;
  readonly challenge: Buffer;
  readonly createdAt: number;
}): PairingRow {
  const { id, requestId, challenge, createdAt } = about;
  const { stored } = begin(pairingMachine, {
    pairingId: id,
    flow: 'enrolment',
    requestDigest: null,
    fingerprint: null,
    replaces: null,
  });
  return {
    id,
    flow: 'enrolment',
    requestId,
    factsDigest: null,
    stored: JSON.stringify(stored),
    state: stateName(stored.value),
    codeVerifier: null,
    codeAttempt: 0,
    challengeVerifier: sha256(challenge),
    machineName: null,
    publicKey: null,
    fingerprint: null,
    descriptor: null,
    descriptorPayload: null,
    descriptorSignature: null,
    executor: null,
    claimedBy: null,
    claimedAt: null,
    replaces: null,
    guard: null,
    createdAt,
    expiresAt: createdAt + PAIRING_MS,
  };
}

/** Issues an enrolment of ten minutes for a new executor (N-070, N-071). Throws Refusal SCOPE_INVALID or SCOPE_NOT_ENTITLED. */
export async function issueEnrolment(context: Context, by: SignedIn, wish: Destination): Promise<Enrolment> {
  const challenge = context.random(32);
  const requestId = `req_${context.random(16).toString('hex')}`;
  const id = newId('pair');
  const createdAt = context.clock.now();
  const executor = newId('exr');
  const row = await context.store.write(async (tx) => {
    const member = await membershipOf(tx, by.person);
    await requireDestination(tx, member, wish);
    const issued = issuedRow({ id, requestId, challenge, createdAt });
    await tx.insertInto('pairings').values(issued).execute();
    await recordDecision(context, tx, by, { action: 'enrolment.issued', facts: { pairing: id } });
    return attachExecutor(context, tx, member, issued, wish, executor);
  });
  return {
    pairing: id,
    executor,
    requestId,
    challenge: challenge.toString('base64url'),
    expiresAt: row.expiresAt,
  };
}

/** A person confirms the fingerprint that an enrolled machine shows (N-065). Throws Refusal PAIRING_UNKNOWN, FINGERPRINT_NOT_CONFIRMED or STATE_TRANSITION_INVALID. */
export async function confirmEnrolment(
  context: Context,
  by: SignedIn,
  id: PairingId,
  fingerprint: string,
): Promise<ShownPairing> {
  const row = await context.store.write(async (tx) => {
    const found = await requireOwn(context, tx, by, id);
    if (found.flow !== 'enrolment') throw new Refusal('FLOW_MISMATCH', 'This pairing is confirmed on the machine.');
    return stepPairing(context, tx, found, { type: 'pairing.confirmed-by-person', fingerprint }, by.person);
  });
  context.wake.pairing(row.id, by.person);
  if (row.executor !== null) context.wake.executor(row.executor);
  return shown(context.store.read, row);
}
