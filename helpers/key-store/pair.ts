/*
 * One key pair and its record. What a record says is checked against the key in it, so that a public key is never told
 * that the private one does not fit.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as z from 'zod';
import { decode, encode } from '../protocol/codec.ts';
import { bytes, counterSchema } from '../protocol/ids.ts';
import { StoreUnsafe } from './folder.ts';
import { keyPurposeSchema } from './protocol.ts';
import type { KeyPurpose } from './protocol.ts';

/** A key pair that can sign. */
export interface KeyPair {
  readonly purpose: KeyPurpose;
  /** How many keys there were before this one. */
  readonly rotation: number;
  readonly publicKey: Uint8Array;
  readonly privateKey: KeyObject;
}

// PKCS #8 of an Ed25519 private key (RFC 8410 section 7) up to its 32 bytes.
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

const recordSchema = z.strictObject({
  version: z.literal(1),
  purpose: keyPurposeSchema,
  rotation: counterSchema,
  publicKey: bytes(32),
  seed: bytes(32),
});

/** Makes a pair from the system's randomness. */
export function makePair(purpose: KeyPurpose, rotation: number): KeyPair {
  const { privateKey } = generateKeyPairSync('ed25519');
  return { purpose, rotation, publicKey: publicKeyOf(privateKey), privateKey };
}

/** Bytes of a pair for the disk. */
export function writePair({ purpose, rotation, publicKey, privateKey }: KeyPair): Buffer {
  const exported = privateKey.export({ format: 'der', type: 'pkcs8' });
  const record = encode({ version: 1, purpose, rotation, publicKey, seed: exported.subarray(PKCS8_PREFIX.length) });
  exported.fill(0);
  return record;
}

/** Reads a pair. Throws StoreUnsafe for bytes that `writePair` did not write. */
export function readPair(record: Buffer): KeyPair {
  try {
    const { purpose, rotation, publicKey, seed } = recordSchema.parse(decode(record));
    const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
    const derived = publicKeyOf(privateKey);
    if (!derived.equals(publicKey)) throw new RangeError('public key does not fit the private one');
    // `publicKey` is a view of the record, which is overwritten below.
    return { purpose, rotation, publicKey: derived, privateKey };
  } catch (cause) {
    throw new StoreUnsafe('record of a key is damaged', { cause });
  } finally {
    record.fill(0);
  }
}

function publicKeyOf(privateKey: KeyObject): Buffer {
  return Buffer.from(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32));
}
