/*
 * What a promotion is bound to and how its command's outcome is its own, pure.
 */
import type { Digest, Outcome } from '../../machines/values.ts';
import type { ApplyOutcome, Confirmation, PromotionEvent } from '../../machines/promotion/types.ts';

/** How long a prepared promotion lives, in ms (N-147). */
export const PREPARED_MS = 600_000;

/** The eight facts that stood when the person chose to review a promotion, and stand again when its command is made (N-146). */
export interface PromotionFacts {
  readonly reviewDigest: Digest;
  readonly manifestDigest: Digest;
  readonly run: string;
  readonly person: string;
  readonly agent: string;
  readonly authorizationRevision: number;
  /** The resolver permits this person to promote on this machine now. */
  readonly granted: boolean;
  readonly policyDigest: Digest | undefined;
}

/** Why a fact of N-146 no longer holds. */
export type FactChanged =
  | 'PROMOTION_REVIEW_CHANGED'
  | 'PROMOTION_REVIEW_STALE'
  | 'PROMOTION_RUN_CHANGED'
  | 'PROMOTION_PERSON_CHANGED'
  | 'PROMOTION_AGENT_CHANGED'
  | 'PROMOTION_AUTHORIZATION_CHANGED'
  | 'PROMOTION_UNGRANTED'
  | 'PROMOTION_POLICY_CHANGED';

const compared: readonly (readonly [keyof PromotionFacts, FactChanged])[] = [
  ['reviewDigest', 'PROMOTION_REVIEW_CHANGED'],
  ['manifestDigest', 'PROMOTION_REVIEW_STALE'],
  ['run', 'PROMOTION_RUN_CHANGED'],
  ['person', 'PROMOTION_PERSON_CHANGED'],
  ['agent', 'PROMOTION_AGENT_CHANGED'],
  ['authorizationRevision', 'PROMOTION_AUTHORIZATION_CHANGED'],
  ['granted', 'PROMOTION_UNGRANTED'],
  ['policyDigest', 'PROMOTION_POLICY_CHANGED'],
];

/** The first fact that changed, in the order of N-146; undefined when all stand. A fact that could not be read has changed. */
export function changedFact(prepared: PromotionFacts, now: PromotionFacts): FactChanged | undefined {
  return compared.find(([fact]) => now[fact] === undefined || prepared[fact] !== now[fact])?.[1];
}

/** Whether a code is that of a changed fact. */
export function isFactChanged(code: string): code is FactChanged {
  return compared.some(([, changed]) => changed === code);
}

/** How a failed apply left the tree: `refused` before anything moved, `rolled-back` to the old tree, `failed` where a person may have to repair. */
export function applyOutcome(code: string | null): Exclude<ApplyOutcome, 'promoted'> {
  switch (code) {
    case 'PROMOTION_JOURNAL_INVALID':
    case 'PROMOTION_RECOVERY_REQUIRED':
    case 'PROMOTION_RESULT_INVALID':
    case 'HELPER_UNAVAILABLE':
    case null:
      return 'failed';
    case 'PROMOTION_CONFLICT':
    case 'PROMOTION_IN_USE':
    case 'PROMOTION_IO_FAILURE':
    case 'PROMOTION_TIMEOUT':
    case 'CANCELLED':
    case 'EXPIRED':
      return 'rolled-back';
    default:
      return 'refused';
  }
}

/** What the control plane knows of a promotion's command after a step of it. */
export interface CommandState {
  /** `started`, `succeeded`, `unknown` … */
  readonly state: string;
  readonly outcome: Outcome | null;
  readonly code: string | null;
  /** Manifest that the machine says it applied, of a success alone. */
  readonly appliedManifest: Digest | undefined;
}

/** Where the promotion itself stands. */
export interface PromotionState {
  readonly state: string;
  readonly confirmation: Confirmation;
  readonly manifestDigest: Digest;
}

/**
 * What a step of the command is to its promotion, in order. Where the owner requires a person at the machine, `started` only says
 * that the machine asks there; that the person confirmed is known when the machine proves what it did.
 */
export function promotionEvents(promotion: PromotionState, command: CommandState): readonly PromotionEvent[] {
  const { manifestDigest } = promotion;
  if (command.state === 'started' && promotion.state === 'dispatched') {
    return [{ type: promotion.confirmation === 'machine' ? 'promotion.machine-asked' : 'promotion.applying' }];
  }
  const { outcome, code } = command;
  const before = promotion.state === 'dispatched' || promotion.state === 'awaiting-machine';
  switch (outcome) {
    case null:
      return [];
    case 'unknown':
      return [{ type: 'promotion.lost' }];
    case 'succeeded': {
      const proved = command.appliedManifest === manifestDigest;
      if (!proved) return [...toApplying(promotion), ended('failed', 'PROMOTION_RESULT_INVALID', manifestDigest)];
      return [...toApplying(promotion), ended('promoted', null, manifestDigest)];
    }
    case 'cancelled':
      return before ? [{ type: 'promotion.cancelled' }] : [ended('rolled-back', code, manifestDigest)];
    case 'expired':
      return before ? [{ type: 'promotion.expired' }] : [ended('rolled-back', code, manifestDigest)];
    case 'refused':
      return [ended('refused', code, manifestDigest)];
    case 'failed': {
      const how = applyOutcome(code);
      return how === 'rolled-back'
        ? [...toApplying(promotion), ended(how, code, manifestDigest)]
        : [ended(how, code, manifestDigest)];
    }
  }
}

function ended(outcome: ApplyOutcome, code: string | null, manifestDigest: Digest): PromotionEvent {
  return { type: 'promotion.ended', outcome, code, manifestDigest };
}

/** Receipts of one frame are one step here, so that `started` may never have been seen. */
function toApplying({ state, confirmation, manifestDigest }: PromotionState): readonly PromotionEvent[] {
  const confirmed = { type: 'promotion.machine-confirmed', manifestDigest } as const;
  if (state === 'awaiting-machine') return [confirmed, { type: 'promotion.applying' }];
  if (state !== 'dispatched') return [];
  if (confirmation === 'page') return [{ type: 'promotion.applying' }];
  return [{ type: 'promotion.machine-asked' }, confirmed, { type: 'promotion.applying' }];
}
