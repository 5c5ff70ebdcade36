/*
 * The daemon's and the control plane's view of their key-store: signed statements by their type.
 */
import type { Duplex } from 'node:stream';
import { keyStoreRefusals, keyStoreRequests } from '../helpers/key-store/protocol.ts';
import type { Signed } from '../helpers/protocol/signed.ts';
import type { Statement, StatementType } from '../helpers/protocol/statements.ts';
import { HelperClient, HelperViolation } from './helper-client.ts';

const contract = { requests: keyStoreRequests, events: {}, refusals: keyStoreRefusals };

/** A connection to a key-store. */
export type KeyStoreClient = HelperClient<typeof contract>;

/** Fields of a statement as they are asked for: the guard is the key-store's own. */
export type StatementFields<Type extends StatementType> = Omit<Statement<Type>, 'guard'>;

/** A statement that is linked to the one before it in the same request by a digest that the key-store fills in. */
type Linked<Type extends StatementType, Link extends keyof StatementFields<Type> & string> = {
  readonly type: Type;
  readonly fields: Omit<StatementFields<Type>, Link>;
  readonly linked: true;
};

/** One statement to sign. */
export type ToSign<Types extends StatementType = StatementType> =
  | {
      [Type in Types]: { readonly type: Type; readonly fields: StatementFields<Type>; readonly linked?: never };
    }[Types]
  | Extract<Linked<'control.leased', 'envelopeDigest'> | Linked<'machine.started', 'previous'>, { type: Types }>;

/** Speaks to a key-store over a connected stream. */
export function connectKeyStore(connection: Duplex): KeyStoreClient {
  return new HelperClient(connection, contract);
}

/** Which key signs and how long the answer may take. */
export interface Signing {
  /** `next` signs what pairs it anew, in a replacement. Default `current`. */
  readonly key?: 'current' | 'next';
  /** Longest wait, in ms. */
  readonly withinMs: number;
}

/** Signs one to sixteen statements in one request, in order, with rising guards. Rejects as HelperClient does. */
export async function signStatements(
  keyStore: KeyStoreClient,
  statements: readonly ToSign[],
  { key = 'current', withinMs }: Signing,
): Promise<readonly Signed[]> {
  const asked = statements.map(({ type, fields, linked }) => ({
    type,
    fields: { ...fields },
    ...(linked ? { linked } : {}),
  }));
  const { signed } = await keyStore.request('keystore.sign', { key, statements: asked }, { withinMs });
  if (signed.length !== asked.length) {
    throw new HelperViolation(`key-store signed ${signed.length} statements, asked were ${asked.length}`);
  }
  return signed;
}

/** Signs one statement. Rejects as HelperClient does. */
export async function signStatement<Type extends StatementType>(
  keyStore: KeyStoreClient,
  type: Type,
  fields: StatementFields<Type>,
  signing: Signing,
): Promise<Signed> {
  // `fields` belongs to `type` by the signature above; the compiler does not build the union's member from a parameter.
  const [signed] = await signStatements(keyStore, [{ type, fields } as unknown as ToSign], signing);
  // signStatements gives one for one.
  return signed as Signed;
}
