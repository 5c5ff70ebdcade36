/*
 * What each request does. A folder that is not private refuses every request with the broken rule, so that the asker can
 * tell its owner and not start.
 */
import { StoreFolder, StoreUnsafe, StoreUnwritable } from './folder.ts';
import type { KeyStoreBody, KeyStoreReply, KeyStoreRequest } from './protocol.ts';
import { signAll, signRotation } from './signer.ts';
import { KeyStoreRefused, Store } from './store.ts';

/** One function for each request of protocol.ts; throws KeyStoreRefused. */
export type KeyStoreHandlers = {
  readonly [Type in KeyStoreRequest]: (body: KeyStoreBody<Type>) => KeyStoreReply<Type>;
};

/** Opens the folder behind a descriptor, which must belong to `uid`, and returns what answers. */
export function openKeyStore(descriptor: number, uid: number): KeyStoreHandlers {
  const store = open(descriptor, uid);
  const answer = <Reply>(work: (store: Store) => Reply): Reply => {
    if (store instanceof StoreUnsafe) throw refusalOf(store);
    try {
      return work(store);
    } catch (error) {
      throw refusalOf(error);
    }
  };
  return {
    'keystore.status': () => answer(status),
    'keystore.generate': ({ purpose }) => answer((keys) => ({ publicKey: keys.generate(purpose).publicKey })),
    'keystore.sign': (body) => answer((keys) => ({ signed: signAndLookAhead(keys, body) })),
    'keystore.rotate-prepare': () =>
      answer((keys) => {
        const { current, next } = keys.prepare();
        return { publicKey: current.publicKey, nextPublicKey: next.publicKey, rotation: next.rotation };
      }),
    'keystore.rotate-sign': (body) => answer((keys) => signRotation(keys, body)),
    'keystore.rotate-commit': ({ nextPublicKey }) =>
      answer((keys) => ({ publicKey: keys.commit(nextPublicKey).publicKey })),
    'keystore.rotate-abandon': () => answer((keys) => nothing(keys.abandon())),
    'keystore.erase': () => answer((keys) => nothing(keys.erase())),
  };
}

const nothing = (_done: void): Record<string, never> => ({});

function open(descriptor: number, uid: number): Store | StoreUnsafe {
  try {
    return new Store(new StoreFolder(descriptor, uid));
  } catch (error) {
    if (error instanceof StoreUnsafe) return error;
    throw error;
  }
}

function status(keys: Store): KeyStoreReply<'keystore.status'> {
  const { current, next } = keys;
  if (!current) return { state: 'empty' };
  const { purpose, publicKey, rotation } = current;
  if (!next) return { state: 'ready', purpose, publicKey, rotation };
  return { state: 'rotating', purpose, publicKey, nextPublicKey: next.publicKey, rotation };
}

function signAndLookAhead(keys: Store, body: KeyStoreBody<'keystore.sign'>): KeyStoreReply<'keystore.sign'>['signed'] {
  const signed = signAll(keys, body);
  setImmediate(() => {
    try {
      keys.guards.reserveAhead();
    } catch (error) {
      // A full disk is met again, and refused, by the first request that needs the block.
      if (!(error instanceof StoreUnwritable)) throw error;
    }
  });
  return signed;
}

function refusalOf(error: unknown): unknown {
  if (error instanceof StoreUnsafe) return new KeyStoreRefused('STORE_UNSAFE', error.message);
  if (error instanceof StoreUnwritable) return new KeyStoreRefused('STORE_UNWRITABLE', error.message, { cause: error });
  return error;
}
