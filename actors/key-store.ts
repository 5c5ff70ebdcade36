/*
 * The daemon's and the control plane's view of their key-store: signed statements by their type.
 */
import type { Duplex } from 'node:stream';
import { keyStoreRefusals, keyStoreRequests } from '../helpers/key-store/protocol.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import type { Statement, StatementType } from '../helpers/protocol/statements.ts';
import { HelperClient } from './helper-client.ts';

const contract = { requests: keyStoreRequests, events: {}, refusals: keyStoreRefusals };

/** A connection to a key-store. */
export type KeyStoreClient = HelperClient<typeof contract>;

/** Fields of a statement as they are asked for: the guard is the key-store's own. */
export type StatementFields<Type extends StatementType> = Omit<Statement<Type>, 'guard'>;

/** One statement to sign. */
export type ToSign = {
  [Type in StatementType]: { readonly type: Type; readonly fields: StatementFields<Type> };
}[StatementType];

/** Speaks to a key-store over a connected stream. */
export function connectKeyStore(connection: Duplex): KeyStoreClient {
  return new HelperClient(connection, contract);
}

/** Signs one to sixteen statements in one request, in order, with rising guards. Rejects as HelperClient does. */
export async function signStatements(
  keyStore: KeyStoreClient,
  statements: readonly ToSign[],
  withinMs: number,
): Promise<readonly Signed[]> {
  const asked = statements.map(({ type, fields }) => ({ type, fields: { ...fields } }));
  const { signed } = await keyStore.request('keystore.sign', { statements: asked }, { withinMs });
  return signed;
}

/** Signs one statement. Rejects as HelperClient does. */
export async function signStatement<Type extends StatementType>(
  keyStore: KeyStoreClient,
  type: Type,
  fields: StatementFields<Type>,
  withinMs: number,
): Promise<Signed> {
  const asked = { type, fields: { ...fields } };
  const { signed } = await keyStore.request('keystore.sign', { statements: [asked] }, { withinMs });
  const [only] = signed;
  if (!only || signed.length !== 1) throw new TypeError(`key-store signed ${signed.length} statements, asked was one`);
  return only;
}
