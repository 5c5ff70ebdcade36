/*
 * What a pairing shows and compares: digests of claims, offers, and the codes of answers.
 */
import { canonicalBytes } from '../helpers/protocol/descriptor.ts';
import { sha256 } from '../helpers/protocol/signed.ts';
import type { Claim } from '../helpers/protocol/statements.ts';
import type { Offer, PairingFlow } from '../machines/pairing/types.ts';
import type { JoiningRecord } from './records.ts';

/** Digest that a person at the machine confirms: both sides rebuild it from the same facts. */
export function claimDigestOf(claim: Claim): Buffer {
  return sha256(canonicalBytes(claim));
}

/** The flow and request of an earlier start, for the machine's input. */
export function preparedOf(
  record: JoiningRecord | null,
): { flow: PairingFlow; prepared: { requestId: string; requestDigest: string; fingerprint: string } } | undefined {
  return record
    ? {
        flow: record.flow,
        prepared: { requestId: record.requestId, requestDigest: record.requestDigest, fingerprint: record.fingerprint },
      }
    : undefined;
}

/** What the machine and its owner are shown of an offer. */
export function offerOf(offer: NonNullable<JoiningRecord['offer']>, commandKeyFingerprint: string): Offer {
  return {
    pairingId: offer.pairing,
    digits: offer.code,
    commandKeyFingerprint,
    remainingMs: Math.max(0, offer.expiresAt - Date.now()),
  };
}

/** Names of a claim as people are shown them. */
export function shown(claim: Claim): Record<string, string> {
  return { organization: claim.organisationName, team: claim.teamName, scope: claim.scope, label: claim.label };
}

/** Code of a refused pairing call; the answer is foreign, so an unreadable one has a code of its own. */
export function refusalCode(value: unknown): string {
  return typeof value === 'object' && value !== null && 'code' in value && typeof value.code === 'string'
    ? value.code
    : 'PAIRING_REFUSED';
}

/** Code of a call that had no answer. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'ANSWER_UNREADABLE';
}
