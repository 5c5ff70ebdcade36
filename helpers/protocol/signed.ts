/*
 * Signatures over the bytes that travel. Verify, then parse: a body whose signature fails is never given to a parser.
 *
 *   signed bytes = "nessie-executor.v1" 0x00 | length(domain) uint32 BE | domain | length(payload) uint32 BE | payload
 *
 * THREAT: a small-order or mixed-order public key makes one signature fit many messages, and verifiers disagree about it
 * (tweetnacl also accepts S+L). Keys are therefore admitted once, here, by noble; signatures of admitted keys are decided
 * by node:crypto alone. noble's and tweetnacl's own verify are never used to decide.
 */
import { createHash, createPublicKey, sign as cryptoSign, verify as cryptoVerify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import * as ed25519 from '@noble/ed25519';
import * as z from 'zod';
import { bytes, bytesTo } from './ids.ts';

const CONTEXT = Buffer.from('nessie-executor.v1\0', 'latin1');
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** Largest payload that is signed as one statement, in bytes. */
export const STATEMENT_LIMIT_BYTES = 65_536;

/** A payload and its one signature, as it travels. */
export const signedSchema = z.strictObject({ payload: bytesTo(STATEMENT_LIMIT_BYTES), signature: bytes(64) });
export type Signed = z.infer<typeof signedSchema>;

/** A public key whose bytes were found canonical, not of small order and torsion free. */
export interface AdmittedKey {
  readonly bytes: Uint8Array;
  /** SHA-256 of the key, 64 hexadecimal digits: what people compare. */
  readonly fingerprint: string;
  readonly verifier: KeyObject;
}

/** A public key that no verifier may hold. */
export class KeyRefused extends Error {
  override readonly name = 'KeyRefused';
}

/** SHA-256 of some bytes, 32 bytes. */
export function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** Admits 32 bytes as an Ed25519 public key (RFC 8032 section 5.1.3). Throws KeyRefused with the rule that it breaks. */
export function admitKey(publicKey: Uint8Array): AdmittedKey {
  if (publicKey.length !== 32) throw new KeyRefused(`public key of ${publicKey.length} bytes, expected 32`);
  let point: ed25519.Point;
  try {
    point = ed25519.Point.fromBytes(publicKey);
  } catch (cause) {
    throw new KeyRefused('public key is not a canonical point', { cause });
  }
  if (point.isSmallOrder()) throw new KeyRefused('public key is of small order');
  if (!point.isTorsionFree()) throw new KeyRefused('public key is of mixed order');
  const own = Uint8Array.from(publicKey);
  const verifier = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, own]), format: 'der', type: 'spki' });
  return { bytes: own, fingerprint: sha256(own).toString('hex'), verifier };
}

/** The bytes that a signature of this domain covers. */
export function signedBytes(domain: string, payload: Uint8Array): Buffer {
  const tag = Buffer.from(domain, 'latin1');
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(tag.length, 0);
  lengths.writeUInt32BE(payload.length, 4);
  return Buffer.concat([CONTEXT, lengths.subarray(0, 4), tag, lengths.subarray(4), payload]);
}

/** Signs a payload under a domain with a private key that the caller holds. */
export function signPayload(privateKey: KeyObject, domain: string, payload: Uint8Array): Signed {
  return { payload, signature: cryptoSign(null, signedBytes(domain, payload), privateKey) };
}

/** Whether an admitted key made this signature under this domain. Never throws: anything odd is false. */
export function isSignedBy(key: AdmittedKey, domain: string, signed: Signed): boolean {
  if (signed.signature.length !== 64 || signed.payload.length > STATEMENT_LIMIT_BYTES) return false;
  return cryptoVerify(null, signedBytes(domain, signed.payload), key.verifier, signed.signature);
}

/** What is linked, countersigned and named in a chain: the digest of a signed payload under its domain, 32 bytes. */
export function statementDigest(domain: string, payload: Uint8Array): Buffer {
  return sha256(signedBytes(domain, payload));
}
