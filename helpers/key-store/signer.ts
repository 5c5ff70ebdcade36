/*
 * Builds statements from fields and signs them.
 *
 * THREAT: a taken-over asker wants its own key accepted in place of this one. A rotation or replacement is therefore signed
 * by `signRotation` alone, with both keys of this store and over its own facts; every other statement that names a public
 * key must name this store's (test/helpers/key-store/handlers.test.ts).
 */
import { encode } from '../protocol/codec.ts';
import { signPayload, statementDigest } from '../protocol/signed.ts';
import type { Signed } from '../protocol/signed.ts';
import { controlStatements, machineStatements, statements } from '../protocol/statements.ts';
import type { StatementType } from '../protocol/statements.ts';
import { StoreUnwritable } from './folder.ts';
import type { KeyPair } from './pair.ts';
import type { KeyStoreBody } from './protocol.ts';
import { KeyStoreRefused } from './store.ts';
import type { Store } from './store.ts';

type Signing = KeyStoreBody<'keystore.sign'>;
type ToSign = Signing['statements'][number];
type ToRotate = KeyStoreBody<'keystore.rotate-sign'>;

const ROTATIONS: ReadonlySet<StatementType> = new Set<ToRotate['type']>([
  'machine.rotation',
  'machine.replace',
  'control.rotation',
]);

/**
 * What the next key may sign before it is the current one: the pairing that puts it in place of the old, and the proof of a
 * session, by which a machine that was cut off in the middle of a rotation learns that the control plane has taken it.
 */
const BEFORE_CURRENT: ReadonlySet<StatementType> = new Set([
  'machine.session',
  'machine.enrol',
  'machine.pair-start',
  'machine.pair-poll',
  'machine.pair-confirm',
  'machine.descriptor',
]);

/** Signs statements in order with rising guards: all, or none. Refused with KEY_ABSENT, ROTATION_ABSENT, PURPOSE_MISMATCH, STATEMENT_INVALID. */
export function signAll(store: Store, { key, statements: asked }: Signing): Signed[] {
  const pair = key === 'next' ? store.requireNext() : store.requireCurrent();
  for (const { type, fields } of asked) {
    checkPurpose(pair, type);
    if (key === 'next' && !BEFORE_CURRENT.has(type)) {
      throw new KeyStoreRefused('STATEMENT_INVALID', `the next key does not sign ${type} before it is the current one`);
    }
    if (ROTATIONS.has(type)) {
      throw new KeyStoreRefused('STATEMENT_INVALID', `${type} is signed by both keys: ask keystore.rotate-sign`);
    }
    checkOwnFact(fields, 'publicKey', pair.publicKey);
  }
  const payloads = build(store, asked);
  return payloads.map(([type, payload]) => signPayload(pair.privateKey, type, payload));
}

/** Signs one rotation or replacement with the current and the next key. Refused with KEY_ABSENT, ROTATION_ABSENT, PURPOSE_MISMATCH, STATEMENT_INVALID. */
export function signRotation(store: Store, { type, fields }: ToRotate): { current: Signed; next: Signed } {
  const current = store.requireCurrent();
  const next = store.requireNext();
  checkPurpose(current, type);
  checkOwnFact(fields, 'oldPublicKey', current.publicKey);
  checkOwnFact(fields, 'newPublicKey', next.publicKey);
  if ('rotation' in fields && fields['rotation'] !== next.rotation) {
    throw new KeyStoreRefused('STATEMENT_INVALID', `rotation is not ${next.rotation}, the number of the next key`);
  }
  const [built] = build(store, [{ type, fields }]);
  if (!built) throw new TypeError('one statement was asked and none was built');
  const [, payload] = built;
  return {
    current: signPayload(current.privateKey, type, payload),
    next: signPayload(next.privateKey, type, payload),
  };
}

function checkPurpose(pair: KeyPair, type: StatementType): void {
  const own = pair.purpose === 'machine' ? machineStatements : controlStatements;
  if (Object.hasOwn(own, type)) return;
  throw new KeyStoreRefused('PURPOSE_MISMATCH', `a key of purpose ${pair.purpose} does not sign ${type}`);
}

function checkOwnFact(fields: Readonly<Record<string, unknown>>, name: string, own: Uint8Array): void {
  if (!(name in fields)) return;
  const value = fields[name];
  if (value instanceof Uint8Array && Buffer.compare(value, own) === 0) return;
  throw new KeyStoreRefused('STATEMENT_INVALID', `${name} is not the key of this store`);
}

function build(store: Store, asked: readonly ToSign[]): (readonly [StatementType, Buffer])[] {
  if (asked[0]?.linked) {
    throw new KeyStoreRefused(
      'STATEMENT_INVALID',
      'the first statement of a request has none before it to be linked to',
    );
  }
  // Shapes before guards, so that malformed fields use up none.
  const shaped = asked.map((statement) => [statement, shapedFields(statement)] as const);
  const first = takeGuards(store, asked.length);
  const built: (readonly [StatementType, Buffer])[] = [];
  for (const [{ type, linked }, fields] of shaped) {
    const before = built.at(-1);
    const link = linked && before ? linkOf(type, statementDigest(...before)) : {};
    built.push([type, encode({ ...fields, ...link, guard: first + built.length })]);
  }
  return built;
}

/** Field by which a statement names the one before it. */
const LINKS: ReadonlyMap<StatementType, 'envelopeDigest' | 'previous'> = new Map([
  ['control.leased', 'envelopeDigest'],
  ['machine.started', 'previous'],
]);

/** Stands where a digest will stand while the other fields are checked. */
const UNLINKED = new Uint8Array(32);

function linkOf(type: StatementType, digest: Uint8Array): Readonly<Record<string, Uint8Array>> {
  const field = LINKS.get(type);
  if (field === undefined) throw new KeyStoreRefused('STATEMENT_INVALID', `${type} is linked to no statement`);
  return { [field]: digest };
}

function shapedFields({ type, fields, linked }: ToSign): object {
  if ('guard' in fields) throw new KeyStoreRefused('STATEMENT_INVALID', 'the guard is the key-store’s own');
  const link = linked ? linkOf(type, UNLINKED) : {};
  if (Object.keys(link).some((field) => field in fields)) {
    throw new KeyStoreRefused('STATEMENT_INVALID', 'the link of two statements is the key-store’s own');
  }
  const shaped = statements[type].safeParse({ ...fields, ...link, guard: 0 });
  if (shaped.success) return shaped.data;
  const where = shaped.error.issues[0]?.path.join('.') ?? '';
  throw new KeyStoreRefused('STATEMENT_INVALID', `${type} has a wrong field: ${where === '' ? 'unknown' : where}`);
}

function takeGuards(store: Store, count: number): number {
  try {
    return store.guards.take(count);
  } catch (cause) {
    if (!(cause instanceof StoreUnwritable)) throw cause;
    throw new KeyStoreRefused('GUARD_UNWRITABLE', 'no guard can be reserved on disk, so nothing is signed', { cause });
  }
}
