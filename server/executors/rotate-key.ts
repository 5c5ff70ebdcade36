import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { admitKey, KeyRefused } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey, Signed } from '../../helpers/protocol/signed.ts';
import { openStatement } from '../../helpers/protocol/statements.ts';
import type { Statement } from '../../helpers/protocol/statements.ts';
import type { executorMachine } from '../../machines/executor/machine.ts';
import type { Stored } from '../../machines/step.ts';
import { record } from '../audit/record.ts';
import type { Context } from '../context.ts';
import { Refusal } from '../refusal.ts';
import type { Reader } from '../store/store.ts';

/**
 * Puts a machine's next key in place of its current one: one transaction over a statement that both keys signed (N-069). The same
 * statement again, after it took effect, gets the same answer. Throws Refusal EXECUTOR_UNKNOWN or ROTATION_INVALID.
 */
export async function rotateKey(
  context: Context,
  executor: ExecutorId,
  { current, next }: { readonly current: Signed; readonly next: Signed },
): Promise<{ readonly publicKey: Uint8Array }> {
  return context.store.write(async (tx) => {
    const row = await tx
      .selectFrom('executors')
      .select(['publicKey', 'rotation', 'stored', 'organisation', 'state'])
      .where('id', '=', executor)
      .executeTakeFirst();
    if (row === undefined || row.publicKey === null || row.state === 'revoked') {
      throw new Refusal('EXECUTOR_UNKNOWN', 'There is no such machine.', { status: 404 });
    }
    const present = admitKey(row.publicKey);
    const repeated = openRotation(present, next);
    if (repeated !== undefined && isTo(repeated, executor, row.publicKey, row.rotation))
      return { publicKey: row.publicKey };
    const statement = openRotation(present, current);
    if (statement === undefined || statement.executor !== executor) throw invalid();
    if (statement.rotation !== row.rotation + 1 || !row.publicKey.equals(statement.oldPublicKey)) throw invalid();
    if (Buffer.compare(current.payload, next.payload) !== 0) throw invalid();
    const newKey = Buffer.from(statement.newPublicKey);
    const key = admitted(newKey);
    if (key === undefined || openRotation(key, next) === undefined || (await isKeyKnown(tx, newKey))) throw invalid();
    // Written by lifecycle.ts alone.
    const stored = JSON.parse(row.stored) as Stored<typeof executorMachine>;
    const renamed = { ...stored, context: { ...stored.context, fingerprint: key.fingerprint } };
    await tx
      .updateTable('executors')
      .set({
        publicKey: newKey,
        fingerprint: key.fingerprint,
        rotation: statement.rotation,
        stored: JSON.stringify(renamed),
      })
      .where('id', '=', executor)
      .execute();
    await record(context, tx, {
      action: 'executor.key-rotated',
      organisation: row.organisation,
      executor,
      outcome: 'done',
      facts: { rotation: statement.rotation, fingerprint: key.fingerprint },
    });
    return { publicKey: newKey };
  });
}

type Rotation = Statement<'machine.rotation'>;

function openRotation(key: AdmittedKey, signed: Signed): Rotation | undefined {
  try {
    return openStatement('machine.rotation', key, signed)?.statement;
  } catch {
    // Signed bytes of another shape: the same refusal as a wrong signature.
    return undefined;
  }
}

function isTo(statement: Rotation, executor: ExecutorId, publicKey: Buffer, rotation: number): boolean {
  return statement.executor === executor && publicKey.equals(statement.newPublicKey) && statement.rotation === rotation;
}

function admitted(publicKey: Uint8Array): AdmittedKey | undefined {
  try {
    return admitKey(publicKey);
  } catch (error) {
    if (error instanceof KeyRefused) return undefined;
    throw error;
  }
}

function invalid(): Refusal {
  return new Refusal('ROTATION_INVALID', 'The rotation is not signed by both keys of this machine in their order.', {
    status: 400,
  });
}

/** Whether any executor or open pairing has this key already (N-068). */
export async function isKeyKnown(reader: Reader, publicKey: Buffer): Promise<boolean> {
  const paired = await reader
    .selectFrom('executors')
    .select('id')
    .where('publicKey', '=', publicKey)
    .executeTakeFirst();
  if (paired !== undefined) return true;
  const pending = await reader
    .selectFrom('pairings')
    .select('id')
    .where('publicKey', '=', publicKey)
    .where('state', 'in', ['submitted', 'offered', 'claimed'])
    .executeTakeFirst();
  return pending !== undefined;
}
