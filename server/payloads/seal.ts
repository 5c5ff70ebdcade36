/*
 * Seals one payload with AES-256-GCM (NIST SP 800-38D): 12 random bytes of nonce, 16 bytes of tag behind the ciphertext,
 * command id and direction as associated data.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { associatedData, PAYLOAD_LIMIT_BYTES } from './rules.ts';
import type { Direction } from './rules.ts';
import type { KeyRing } from './key-ring.ts';

const TAG_BYTES = 16;

/** A sealed payload as a row keeps it. */
export interface Sealed {
  readonly keyId: string;
  readonly nonce: Buffer;
  /** Ciphertext and tag. */
  readonly sealed: Buffer;
}

/** A sealed payload does not open: its key is destroyed, or it was moved or altered. */
export class PayloadUnreadable extends Error {
  override readonly name = 'PayloadUnreadable';
}

/** Seals bytes under the current key. Throws RangeError past PAYLOAD_LIMIT_BYTES. */
export function seal(ring: KeyRing, command: string, direction: Direction, bytes: Uint8Array): Sealed {
  if (bytes.length > PAYLOAD_LIMIT_BYTES) {
    throw new RangeError(`payload of ${bytes.length} bytes, allowed are ${PAYLOAD_LIMIT_BYTES}`);
  }
  const keyId = ring.current;
  const key = ring.key(keyId);
  if (!key) throw new PayloadUnreadable('current payload key is missing');
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(associatedData(command, direction)));
  return { keyId, nonce, sealed: Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]) };
}

/** Opens what was sealed for exactly this command and direction. Throws PayloadUnreadable. */
export function unseal(
  ring: KeyRing,
  command: string,
  direction: Direction,
  { keyId, nonce, sealed }: { readonly keyId: string; readonly nonce: Uint8Array; readonly sealed: Uint8Array },
): Buffer {
  const key = ring.key(keyId);
  if (!key) throw new PayloadUnreadable('key of this payload was destroyed');
  if (sealed.length < TAG_BYTES) throw new PayloadUnreadable('payload is shorter than its tag');
  try {
    const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(associatedData(command, direction)));
    cipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
    return Buffer.concat([cipher.update(sealed.subarray(0, sealed.length - TAG_BYTES)), cipher.final()]);
  } catch (cause) {
    throw new PayloadUnreadable('payload was moved or altered', { cause });
  }
}
