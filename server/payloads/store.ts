import type { CommandId } from '../../helpers/protocol/ids.ts';
import type { Reader, Store, Writer } from '../store/store.ts';
import type { KeyRing } from './key-ring.ts';
import type { Direction } from './rules.ts';
import { seal, unseal } from './seal.ts';

/** Seals and stores one payload of a command in the caller's transaction; it is deleted at `deleteAt`, in ms. */
export async function keepPayload(
  tx: Writer,
  ring: KeyRing,
  payload: {
    readonly command: CommandId;
    readonly direction: Direction;
    readonly bytes: Uint8Array;
    readonly deleteAt: number;
  },
): Promise<void> {
  const { command, direction, bytes, deleteAt } = payload;
  const sealed = seal(ring, command, direction, bytes);
  await tx
    .insertInto('payloads')
    .values({ command, direction, ...sealed, deleteAt })
    .execute();
}

/** Opens a payload, or undefined once it was deleted. Throws PayloadUnreadable. */
export async function openPayload(
  reader: Reader,
  ring: KeyRing,
  command: CommandId,
  direction: Direction,
): Promise<Buffer | undefined> {
  const row = await reader
    .selectFrom('payloads')
    .select(['keyId', 'nonce', 'sealed'])
    .where('command', '=', command)
    .where('direction', '=', direction)
    .executeTakeFirst();
  return row && unseal(ring, command, direction, row);
}

/** Deletes what is past its time, leaves no page of it behind, and destroys keys that nothing needs. Returns how many went. */
export async function deleteExpiredPayloads(store: Store, ring: KeyRing, now: number): Promise<number> {
  const due = await store.read
    .selectFrom('payloads')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('deleteAt', '<=', now)
    .executeTakeFirstOrThrow();
  if (due.count === 0) return 0;
  const { numDeletedRows } = await store.write((tx) =>
    tx.deleteFrom('payloads').where('deleteAt', '<=', now).executeTakeFirstOrThrow(),
  );
  await leaveNothing(store, ring);
  return Number(numDeletedRows);
}

async function leaveNothing(store: Store, ring: KeyRing): Promise<void> {
  await store.scrub();
  const used = await store.read.selectFrom('payloads').select('keyId').distinct().execute();
  await ring.prune(new Set(used.map(({ keyId }) => keyId)));
}
