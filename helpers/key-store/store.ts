/*
 * Keys of one store and what may become of them.
 *
 *   empty ──generate──► ready ──prepare──► rotating ──commit───► ready (the next key)
 *                                                   └─abandon──► ready (the same key)
 *
 * INVARIANT 1  There is exactly one usable key from `generate` to `erase`, whatever the moment of a crash: the record `key`
 *              is replaced by one rename and is never absent in between.
 * INVARIANT 2  A key without a record of guards is never used: the record is older than the key.
 * INVARIANT 3  What is told about a store was on disk, file and folder flushed, before it was told.
 */
import { StoreUnsafe } from './folder.ts';
import type { StoreFolder } from './folder.ts';
import { Guards } from './guards.ts';
import { makePair, readPair, writePair } from './pair.ts';
import type { KeyPair } from './pair.ts';
import type { KeyPurpose, KeyStoreRefusal } from './protocol.ts';

/** A request that the rules of the store forbid; the message goes to the asker. */
export class KeyStoreRefused extends Error {
  override readonly name = 'KeyStoreRefused';
  readonly code: KeyStoreRefusal;

  constructor(code: KeyStoreRefusal, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The keys in one folder; nobody else writes there while it is open. */
export class Store {
  readonly #folder: StoreFolder;
  #guards: Guards;
  #current: KeyPair | undefined;
  #next: KeyPair | undefined;

  /** Opens what an earlier process left, however it ended. Throws StoreUnsafe. */
  constructor(folder: StoreFolder) {
    this.#folder = folder;
    this.#current = this.#readPair('key');
    this.#next = this.#readPair('next');
    this.#guards = new Guards(folder);
    if (this.#current && folder.read('guards') === undefined) throw new StoreUnsafe('record of guards is missing');
    if (!this.#next) return;
    if (!this.#current) throw new StoreUnsafe('there is a next key and no current one');
    if (this.#next.purpose !== this.#current.purpose || this.#next.rotation !== this.#current.rotation + 1) {
      throw new StoreUnsafe('next key does not follow the current one');
    }
  }

  get next(): KeyPair | undefined {
    return this.#next;
  }

  get guards(): Guards {
    return this.#guards;
  }

  /** The key in use, or undefined in an empty store. */
  get current(): KeyPair | undefined {
    return this.#current;
  }

  /** The key in use. Refused with KEY_ABSENT in an empty store. */
  requireCurrent(): KeyPair {
    if (!this.#current) throw new KeyStoreRefused('KEY_ABSENT', 'there is no key: pair this machine first');
    return this.#current;
  }

  /** The next key of a rotation. Refused with ROTATION_ABSENT outside one. */
  requireNext(): KeyPair {
    if (!this.#next) throw new KeyStoreRefused('ROTATION_ABSENT', 'there is no next key: prepare a rotation first');
    return this.#next;
  }

  /** Makes the first key. Refused with KEY_EXISTS. */
  generate(purpose: KeyPurpose): KeyPair {
    if (this.#current) throw new KeyStoreRefused('KEY_EXISTS', 'there is a key: rotate it, or erase it first');
    this.#guards.reserveAhead();
    const pair = makePair(purpose, 0);
    this.#folder.replace('key', writePair(pair));
    this.#current = pair;
    return pair;
  }

  /** Makes the next key, once: asked again it is the same one. Refused with KEY_ABSENT. */
  prepare(): { readonly current: KeyPair; readonly next: KeyPair } {
    const current = this.requireCurrent();
    if (!this.#next) {
      const next = makePair(current.purpose, current.rotation + 1);
      this.#folder.replace('next', writePair(next));
      this.#next = next;
    }
    return { current, next: this.#next };
  }

  /** Puts the next key in place of the current one; done already it is the same answer. Refused with ROTATION_ABSENT for any other key. */
  commit(nextPublicKey: Uint8Array): KeyPair {
    const current = this.requireCurrent();
    if (this.#next && isSame(this.#next.publicKey, nextPublicKey)) {
      this.#folder.rename('next', 'key');
      this.#current = this.#next;
      this.#next = undefined;
      return this.#current;
    }
    if (isSame(current.publicKey, nextPublicKey)) return current;
    throw new KeyStoreRefused('ROTATION_ABSENT', 'this public key is not the next one of this store');
  }

  /** Erases the next key, if there is one. */
  abandon(): void {
    if (!this.#next) return;
    this.#folder.remove('next');
    this.#next = undefined;
  }

  /** Erases every key; a crash in between leaves an empty store or one that is erased again. */
  erase(): void {
    this.abandon();
    if (!this.#current) return;
    this.#folder.remove('key');
    this.#current = undefined;
  }

  #readPair(name: 'key' | 'next'): KeyPair | undefined {
    const record = this.#folder.read(name);
    return record === undefined ? undefined : readPair(record);
  }
}

const isSame = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;
