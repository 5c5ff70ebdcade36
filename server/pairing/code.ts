import type { PairingId } from '../../helpers/protocol/ids.ts';
import type { Secrets } from '../secrets.ts';

const CODES = 100_000_000;
/** Largest multiple of CODES below 2^48: what lies above is drawn again, so that every code is as likely as another. */
const EVEN_LIMIT = Math.floor(2 ** 48 / CODES) * CODES;

/**
 * The eight digits of a pairing, leading zeros included. They follow from the pairing and a secret outside the database, so that the
 * same request gets the same answer while no code is stored anywhere (N-074).
 */
export function codeOf(secrets: Secrets, pairing: PairingId, attempt: number): string {
  for (let draw = 0; ; draw += 1) {
    const value = secrets.keyed('pairing-code', pairing, `${attempt}/${draw}`).readUIntBE(0, 6);
    if (value < EVEN_LIMIT) return String(value % CODES).padStart(8, '0');
  }
}

/** What is stored of a code, 32 bytes: worth nothing without the secret. */
export function codeVerifier(secrets: Secrets, code: string): Buffer {
  return secrets.keyed('pairing-verifier', code);
}
