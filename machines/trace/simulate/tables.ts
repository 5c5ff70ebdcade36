/* Rows of the modelled store: what server/store keeps, as far as the rules look at it. Every row is replaced as a whole. */
import type { ChainLink } from '../../../server/commands/rules.ts';
import type { Remembered } from '../../../server/channel/rules.ts';
import type { PromotionFacts } from '../../../server/drafts/rules.ts';
import type { Stored } from '../../step.ts';
import type { Rules } from './rules.ts';

/** One revision of a descriptor: what the owner permits, and its digest. */
export interface Revision {
  readonly revision: number;
  readonly operations: readonly string[];
  readonly runtimeMs: number;
  readonly policyDigest: string;
}

/** A machine as the control plane keeps it, with what was given on it. */
export interface ExecutorRow {
  readonly id: string;
  readonly stored: Stored<Rules['executorMachine']>;
  readonly remembered: Remembered;
  readonly authorizationRevision: number;
  /** Newest revision that ever arrived. */
  readonly latest: Revision | undefined;
  readonly confirmed: Revision | undefined;
  readonly administrators: readonly string[];
  /** Operations that the agent may use on it. */
  readonly granted: readonly string[];
}

/** One review of a descriptor revision. */
export interface ReviewRow {
  readonly id: string;
  readonly executor: string;
  readonly revision: Revision;
  readonly stored: Stored<Rules['descriptorReviewMachine']>;
}

/** One run of an agent, with the bindings that it got by operation. */
export interface RunRow {
  readonly id: string;
  readonly executor: string;
  readonly ended: boolean;
  /** Manifest that its last review showed; undefined before the first. */
  readonly reviewed: string | undefined;
  readonly bindings: Readonly<Record<string, { readonly id: string; readonly fence: number }>>;
}

/** One command, with its chain of statements. */
export interface CommandRow {
  readonly id: string;
  readonly executor: string;
  readonly run: string;
  readonly operation: string;
  readonly binding: string;
  readonly fence: number;
  readonly idempotencyKey: string;
  readonly stored: Stored<Rules['commandMachine']>;
  readonly epoch: number | null;
  readonly chain: readonly ChainLink[];
  readonly cancelWanted: boolean;
  readonly deadline: number;
  readonly promotion: string | undefined;
}

/** One promotion with the eight facts that stood when it was prepared. */
export interface PromotionRow {
  readonly id: string;
  readonly executor: string;
  readonly run: string;
  readonly stored: Stored<Rules['promotionMachine']>;
  readonly facts: PromotionFacts;
  readonly sequence: number;
  readonly command: string | undefined;
  readonly expiresAt: number;
}

/** One pairing, with the executor that came of it. */
export interface PairingRow {
  readonly id: string;
  readonly stored: Stored<Rules['pairingMachine']>;
  readonly executor: string | undefined;
  readonly expiresAt: number;
}

/** Tables by name. */
export interface Tables {
  readonly pairings: PairingRow;
  readonly executors: ExecutorRow;
  readonly reviews: ReviewRow;
  readonly runs: RunRow;
  readonly commands: CommandRow;
  readonly promotions: PromotionRow;
}
