/*
 * What a machine and its control plane say to each other, as far as rules look at it: the questions of server/protocol.ts with
 * signatures, keys and bytes left out. Whoever speaks here is who it says it is.
 */
import type { CheckedReceipt } from '../../../server/commands/rules.ts';
import type { Stated } from '../../../server/channel/rules.ts';
import type { Revision } from './tables.ts';

/** A signed proof of the paired key. */
export interface Proof extends Stated {
  readonly executor: string;
  readonly at: number;
  readonly capabilityRevision: number;
  readonly repaired: boolean;
}

/** What a person approved, as it travels beside the command of a promotion. */
export interface Approval {
  readonly promotion: string;
  readonly manifestDigest: string;
  readonly sequence: number;
  readonly expiresAt: number;
}

/** A command as it is delivered: envelope, lease and, for a promotion, its approval. */
export interface Frame {
  readonly command: string;
  readonly executor: string;
  readonly run: string;
  readonly operation: string;
  readonly binding: string;
  readonly fence: number;
  readonly epoch: number;
  readonly capabilityRevision: number;
  readonly policyDigest: string;
  readonly maximumRuntimeMs: number;
  readonly notBefore: number;
  readonly expiresAt: number;
  readonly idempotencyKey: string;
  readonly byAgent: boolean;
  readonly envelopeDigest: string;
  readonly leasedDigest: string;
  readonly approval: Approval | undefined;
}

/** A receipt with what it states about its machine's past. */
export type Receipt = CheckedReceipt & {
  readonly executor: string;
  readonly command: string;
  readonly epoch: number;
  /** What its bytes come to, of a result alone. */
  readonly result: Result | undefined;
  readonly stated: { readonly guard: number; readonly ledgerCount?: number; readonly ledgerHead?: string };
};

/** What the bytes of a result come to, once they are opened. */
export interface Result {
  /** Code of the failure that it states, null for a success. */
  readonly failure: string | null;
  /** Manifest that a review names or a promotion applied. */
  readonly manifestDigest: string | undefined;
  /** False where the control plane must refuse it. */
  readonly acceptable: boolean;
}

/** What a control answer tells. */
export interface Told {
  readonly epoch: number;
  readonly standing: 'accepting' | 'paused' | 'draining' | 'fenced' | 'revoked';
  readonly cancel: readonly string[];
  readonly confirmedRevision: number;
}

export type Question =
  | { readonly ask: 'challenge'; readonly executor: string }
  | { readonly ask: 'prove'; readonly proof: Proof }
  | { readonly ask: 'work'; readonly capacity: number }
  | { readonly ask: 'control' }
  | {
      readonly ask: 'receipts';
      readonly command: string;
      readonly receipts: readonly Receipt[];
      readonly late: boolean;
      readonly result: Result | undefined;
    }
  | { readonly ask: 'descriptor'; readonly revision: Revision };

export type Answer =
  | { readonly answer: 'challenge'; readonly acknowledgedCount: number }
  | {
      readonly answer: 'session';
      readonly verdict: 'online' | 'descriptor-needed' | 'revoked' | 'in-error' | 'ledger-behind' | 'ledger-forked';
      readonly epoch: number;
      readonly at: number;
    }
  | { readonly answer: 'work'; readonly frames: readonly Frame[] }
  | { readonly answer: 'control'; readonly told: Told }
  | { readonly answer: 'acknowledged'; readonly verdict: 'settled' | 'refused' | undefined }
  | { readonly answer: 'taken' }
  | { readonly answer: 'refused'; readonly code: string };
