import { admitKey, KeyRefused, sha256 } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey, Signed } from '../../helpers/protocol/signed.ts';
import { openStatement } from '../../helpers/protocol/statements.ts';
import type { MachineStatementType, Statement } from '../../helpers/protocol/statements.ts';
import type { PairingRefusal } from '../protocol.ts';
import { Refusal } from '../refusal.ts';

/** How far a signed time may be from ours, in ms (N-058). */
export const CLOCK_LIMIT_MS = 60_000;

/** A refusal of a pairing call, with a code of server/protocol.ts. */
export function refuse(code: PairingRefusal, message: string, status = 400): Refusal {
  return new Refusal(code, message, { status });
}

/** Admits a machine's key. Throws Refusal KEY_REFUSED. */
export function admitMachineKey(publicKey: Uint8Array): AdmittedKey {
  try {
    return admitKey(publicKey);
  } catch (error) {
    if (error instanceof KeyRefused) throw refuse('KEY_REFUSED', 'This public key is not one that can be trusted.');
    throw error;
  }
}

/** Verifies a statement of the machine, then parses it. Throws Refusal with `code` for anything that this key did not sign under this domain. */
export function openProof<Type extends MachineStatementType>(
  type: Type,
  key: AdmittedKey,
  signed: Signed,
  code: PairingRefusal = 'PROOF_INVALID',
): Statement<Type> {
  try {
    const opened = openStatement(type, key, signed);
    if (opened !== undefined) return opened.statement;
  } catch {
    // Signed bytes of another shape: the same refusal as a wrong signature.
  }
  throw refuse(code, 'The machine’s signature does not cover what it sent.');
}

/** Throws Refusal CLOCK_SKEW for a statement whose time is too far from ours. */
export function checkClock(now: number, at: number): void {
  if (Math.abs(now - at) <= CLOCK_LIMIT_MS) return;
  const seconds = Math.round((at - now) / 1000);
  throw refuse(
    'CLOCK_SKEW',
    `The machine’s clock differs by ${seconds} s from this server’s; 60 s are possible. Set its clock.`,
  );
}

/** Whether a digest is that of some bytes. */
export function isDigestOf(digest: Uint8Array, bytes: Uint8Array): boolean {
  return sha256(bytes).equals(digest);
}
