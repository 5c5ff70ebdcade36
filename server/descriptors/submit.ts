import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import { parseDescriptor, PROTOCOL_VERSION } from '../../helpers/protocol/descriptor.ts';
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { isUnimplemented } from '../../helpers/protocol/operations.ts';
import { admitKey, sha256 } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey, Signed } from '../../helpers/protocol/signed.ts';
import { openStatement } from '../../helpers/protocol/statements.ts';
import { descriptorReviewMachine } from '../../machines/descriptor-review/machine.ts';
import { begin, step } from '../../machines/step.ts';
import type { Stored } from '../../machines/step.ts';
import { record } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import type { Tables } from '../store/tables.ts';

/** A descriptor as it travels: canonical bytes and the machine's signature over their digest. */
export interface SubmittedDescriptor {
  readonly descriptor: Uint8Array;
  readonly signed: Signed;
}

type Review = Stored<typeof descriptorReviewMachine>;

/**
 * Takes a revision from a paired machine: stored, never active on arrival (N-080, N-083). The same bytes again get the same answer.
 * Throws Refusal EXECUTOR_UNKNOWN, DESCRIPTOR_INVALID, OPERATION_NOT_IMPLEMENTED, DESCRIPTOR_ROLLBACK or REVISION_CONFLICT.
 */
export async function submitDescriptor(
  context: Context,
  executor: ExecutorId,
  submitted: SubmittedDescriptor,
): Promise<{ readonly state: 'confirmed' | 'pending' }> {
  const state = await context.store.write(async (tx) => {
    const row = await tx
      .selectFrom('executors')
      .select(['publicKey', 'state'])
      .where('id', '=', executor)
      .executeTakeFirst();
    if (row === undefined || row.publicKey === null || row.state === 'revoked') {
      throw new Refusal('EXECUTOR_UNKNOWN', 'There is no such machine.', { status: 404 });
    }
    const checked = checkDescriptor(admitKey(row.publicKey), executor, submitted);
    return storeRevision(context, tx, executor, checked, submitted.signed);
  });
  context.wake.executor(executor);
  return { state };
}

/** A descriptor whose shape, spelling and signature were found right. */
export interface CheckedDescriptor {
  readonly descriptor: Descriptor;
  readonly document: string;
  readonly digest: Buffer;
}

/**
 * Verifies, then parses. `executor` is what the statement must name, undefined before there is one.
 * Throws Refusal DESCRIPTOR_INVALID, or OPERATION_NOT_IMPLEMENTED for a name that nothing can stand behind (N-029).
 */
export function checkDescriptor(
  key: AdmittedKey,
  executor: ExecutorId | undefined,
  { descriptor: bytes, signed }: SubmittedDescriptor,
): CheckedDescriptor {
  const checked = openDescriptor(key, executor, { descriptor: bytes, signed });
  const unbuilt = checked.descriptor.operations.find(isUnimplemented);
  if (unbuilt === undefined) return checked;
  throw new Refusal(
    'OPERATION_NOT_IMPLEMENTED',
    `The descriptor names ${unbuilt}, which nothing can stand behind yet.`,
    {
      status: 400,
      remedy: 'Take it out of the machine’s policy.',
    },
  );
}

function openDescriptor(
  key: AdmittedKey,
  executor: ExecutorId | undefined,
  { descriptor: bytes, signed }: SubmittedDescriptor,
): CheckedDescriptor {
  const digest = sha256(bytes);
  try {
    const opened = openStatement('machine.descriptor', key, signed);
    if (opened === undefined || !digest.equals(opened.statement.descriptorDigest)) throw new Error('signature');
    const descriptor = parseDescriptor(bytes);
    if (opened.statement.revision !== descriptor.revision || opened.statement.executor !== executor)
      throw new Error('names');
    return { descriptor, document: Buffer.from(bytes).toString('utf8'), digest };
  } catch {
    // Whatever it was, the machine cannot mend it by asking again; the sentence names what usually is the cause.
    throw new Refusal('DESCRIPTOR_INVALID', versionSentence(bytes), {
      status: 400,
      remedy: 'Update the older of the two.',
    });
  }
}

function versionSentence(bytes: Uint8Array): string {
  const stated = /"protocolVersion":(\d{1,6})[,}]/.exec(Buffer.from(bytes).toString('latin1'))?.[1];
  if (stated === undefined || stated === String(PROTOCOL_VERSION))
    return 'The descriptor is not one that this control plane reads.';
  return `The machine speaks protocol version ${stated}, this control plane version ${PROTOCOL_VERSION}.`;
}

/** Stores a checked revision in the caller's transaction, ending the review of an older one. Throws Refusal DESCRIPTOR_ROLLBACK or REVISION_CONFLICT. */
export async function storeRevision(
  context: Context,
  tx: Writer,
  executor: ExecutorId,
  { descriptor, document, digest }: CheckedDescriptor,
  signed: Signed,
): Promise<'confirmed' | 'pending'> {
  const { revision } = descriptor;
  const newest = await tx
    .selectFrom('descriptors')
    .selectAll()
    .where('executor', '=', executor)
    .orderBy('revision', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (newest !== undefined && newest.revision >= revision) {
    if (newest.revision > revision)
      throw new Refusal('DESCRIPTOR_ROLLBACK', `Revision ${newest.revision} is known already.`);
    if (!newest.digest.equals(digest))
      throw new Refusal('REVISION_CONFLICT', `Revision ${revision} is known with other facts.`);
    return newest.state === 'confirmed' ? 'confirmed' : 'pending';
  }
  if (newest?.state === 'pending') await supersede(tx, newest, revision, digest);
  const review = begin(descriptorReviewMachine, {
    executorId: executor,
    revision,
    descriptorDigest: digest.toString('hex'),
  });
  await tx
    .insertInto('descriptors')
    .values({
      executor,
      revision,
      digest,
      document,
      signedPayload: Buffer.from(signed.payload),
      signature: Buffer.from(signed.signature),
      stored: JSON.stringify(review.stored),
      state: 'pending',
      arrivedAt: context.clock.now(),
      decidedAt: null,
      decidedBy: null,
    })
    .execute();
  await record(context, tx, { action: 'descriptor.arrived', executor, outcome: 'done', facts: { revision } });
  return 'pending';
}

async function supersede(tx: Writer, older: Tables['descriptors'], revision: number, digest: Buffer): Promise<void> {
  // Written by this folder alone; `step` refuses what its machine never wrote.
  const stored = JSON.parse(older.stored) as Review;
  const next = step(descriptorReviewMachine, stored, {
    type: 'descriptor.arrived',
    revision,
    descriptorDigest: digest.toString('hex'),
  });
  if (!next.ok) throw new Refusal(next.code, 'The review of the older revision does not take a newer one.');
  await tx
    .updateTable('descriptors')
    .set({ stored: JSON.stringify(next.stored), state: 'superseded' })
    .where('executor', '=', older.executor)
    .where('revision', '=', older.revision)
    .execute();
}
