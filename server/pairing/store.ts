/*
 * Stored pairings, stepped by machines/pairing in the transaction of their audit entry. What a confirmation brings about happens in
 * the same transaction: the executor learns its key, its first descriptor waits for review, and what it replaces is revoked.
 */
import { canonicalBytes } from '../../helpers/protocol/descriptor.ts';
import type { PairingId, PersonId } from '../../helpers/protocol/ids.ts';
import { admitKey, sha256 } from '../../helpers/protocol/signed.ts';
import type { Claim } from '../../helpers/protocol/statements.ts';
import { pairingMachine } from '../../machines/pairing/machine.ts';
import type { PairingEvent } from '../../machines/pairing/types.ts';
import { step } from '../../machines/step.ts';
import type { Stepped, Stored } from '../../machines/step.ts';
import { record } from '../audit/record.ts';
import { stateName } from '../commands/rules.ts';
import type { Context } from '../context.ts';
import { checkDescriptor, storeRevision } from '../descriptors/submit.ts';
import { stepExecutor } from '../executors/lifecycle.ts';
import { Refusal } from '../refusal.ts';
import type { Reader, Writer } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';

/** One pairing as its row keeps it. */
export type PairingRow = Tables['pairings'];
type Machine = typeof pairingMachine;

/** How long a pairing may take, in ms (N-071, N-073). */
export const PAIRING_MS = 600_000;

/** States in which a pairing still waits for somebody. */
export const OPEN_STATES: readonly string[] = ['issued', 'submitted', 'offered', 'claimed'];

/** The stored machine of a row. */
export function storedOf(row: PairingRow): Stored<Machine> {
  // Written by this folder alone; `step` refuses what its machine never wrote.
  return JSON.parse(row.stored) as Stored<Machine>;
}

/** Takes one event in the caller's transaction and answers the row after it. Throws Refusal with the code of the machine's own refusal. */
export async function stepPairing(
  context: Context,
  tx: Writer,
  row: PairingRow,
  event: PairingEvent,
  person?: PersonId,
): Promise<PairingRow> {
  const next = step(pairingMachine, storedOf(row), event);
  if (!next.ok) throw new Refusal(next.code, sentenceFor(next.code));
  const state = stateName(next.stored.value);
  const changed = { ...row, stored: JSON.stringify(next.stored), state };
  await tx.updateTable('pairings').set({ stored: changed.stored, state }).where('id', '=', row.id).execute();
  const isRepeat = next.actions.some((action) => action.type === 'repeatAnswer');
  if (isRepeat) return changed;
  await actOn(context, tx, changed, next);
  await record(context, tx, {
    action: event.type,
    ...(person === undefined ? {} : { person }),
    ...(row.executor === null ? {} : { executor: row.executor }),
    outcome: 'done',
    facts: { pairing: row.id, to: state },
  });
  return changed;
}

const sentences = {
  FINGERPRINT_NOT_CONFIRMED: 'This is not the fingerprint of the machine that asks; compare both once more.',
  ENROLLMENT_USED: 'This enrolment was used already; ask for a new one.',
  CLAIM_CONFLICT:
    'This machine was claimed already with other facts; cancel the pairing on the machine and begin again.',
  CLAIM_CHANGED: 'The claim is not what the machine confirmed.',
} as const;

function sentenceFor(code: string): string {
  const found = Object.entries(sentences).find(([known]) => known === code);
  return found?.[1] ?? 'This pairing does not take that any longer.';
}

async function actOn(context: Context, tx: Writer, row: PairingRow, next: Stepped<Machine>): Promise<void> {
  for (const action of next.actions) {
    if (action.type === 'forgetVerifier') {
      await tx
        .updateTable('pairings')
        .set({ codeVerifier: null, challengeVerifier: null })
        .where('id', '=', row.id)
        .execute();
    }
    if (action.type === 'activateExecutor') await activate(context, tx, row, next.stored.context.fingerprint);
  }
  const isOver = ['refused', 'cancelled', 'expired'].includes(row.state);
  if (isOver && row.executor !== null) await stepExecutor(context, tx, row.executor, { type: 'executor.delete' });
}

/**
 * Both sides confirmed this key: from here on the executor is known by it, and only its proof makes it online (N-066).
 *
 * THREAT: somebody who can write the database exchanges the key between the look and the confirmation. The key of the row must
 * therefore have the very fingerprint that was confirmed.
 */
async function activate(context: Context, tx: Writer, row: PairingRow, fingerprint: string | null): Promise<void> {
  const { executor, publicKey, descriptor, descriptorPayload, descriptorSignature } = row;
  if (executor === null || publicKey === null || fingerprint === null) {
    throw new Error('a pairing without machine was confirmed');
  }
  if (descriptor === null || descriptorPayload === null || descriptorSignature === null) {
    throw new Error('a pairing without descriptor was confirmed');
  }
  const key = admitKey(publicKey);
  if (key.fingerprint !== fingerprint)
    throw new Refusal('FINGERPRINT_NOT_CONFIRMED', sentences.FINGERPRINT_NOT_CONFIRMED);
  await tx.updateTable('executors').set({ publicKey, fingerprint }).where('id', '=', executor).execute();
  await stepExecutor(context, tx, executor, { type: 'pairing.confirmed', fingerprint });
  const signed = { payload: descriptorPayload, signature: descriptorSignature };
  const checked = checkDescriptor(key, undefined, { descriptor: Buffer.from(descriptor, 'utf8'), signed });
  await storeRevision(context, tx, executor, checked, signed);
  if (row.replaces !== null) await stepExecutor(context, tx, row.replaces, { type: 'executor.replaced' });
}

/** One pairing, ended first where its time passed. Undefined where there is none. */
export async function findPairing(context: Context, tx: Writer, id: PairingId): Promise<PairingRow | undefined> {
  const row = await tx.selectFrom('pairings').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? undefined : expireIfDue(context, tx, row);
}

/** Ends a pairing whose ten minutes passed, in the caller's transaction. */
export async function expireIfDue(context: Context, tx: Writer, row: PairingRow): Promise<PairingRow> {
  const isDue = OPEN_STATES.includes(row.state) && context.clock.now() > row.expiresAt;
  return isDue ? stepPairing(context, tx, row, { type: 'pairing.expired' }) : row;
}

/** The facts that a person at the machine confirms, rebuilt from the rows as they stand now (N-077). */
export async function claimOf(reader: Reader, row: PairingRow): Promise<Claim> {
  if (row.executor === null) throw new Error('a claim has an executor');
  const facts = await reader
    .selectFrom('executors')
    .innerJoin('organisations', 'organisations.id', 'executors.organisation')
    .innerJoin('teams', 'teams.id', 'executors.team')
    .select([
      'executors.id as executor',
      'executors.organisation',
      'organisations.name as organisationName',
      'team',
      'teams.name as teamName',
      'scope',
      'label',
    ])
    .where('executors.id', '=', row.executor)
    .executeTakeFirstOrThrow();
  return { ...facts, pairing: row.id };
}

/** SHA-256 over the canonical JSON of a claim, 64 hexadecimal digits. */
export function claimDigest(claim: Claim): string {
  return sha256(canonicalBytes(claim)).toString('hex');
}
