import type { Digest } from '../values.ts';

/** Who must confirm: the person on the page, or a person on the machine as well (design section 4). */
export type Confirmation = 'page' | 'machine';

/** What stands when a person chooses to review a promotion; it lives 10 minutes (N-147). */
export type PromotionInput = {
  readonly promotionId: string;
  readonly runId: string;
  readonly executorId: string;
  readonly reviewDigest: Digest;
  readonly manifestDigest: Digest;
  readonly confirmation: Confirmation;
};

/** How an apply ended on the machine, as its receipt proves. */
export type ApplyOutcome = 'promoted' | 'refused' | 'failed' | 'rolled-back';

/** Facts and wishes; the password, the person's entitlement and the eight facts of N-146 are checked before one of these exists. */
export type PromotionEvent =
  /** The person confirmed with the current password what they saw (N-145). */
  | {
      readonly type: 'promotion.approve';
      readonly reviewDigest: Digest;
      readonly manifestDigest: Digest;
      readonly approvalDigest: Digest;
    }
  /** The eight facts of N-146 hold no longer. */
  | { readonly type: 'promotion.withdrawn'; readonly code: string }
  /** The command `workspace.promote` was made with this approval. */
  | { readonly type: 'promotion.dispatched'; readonly commandId: string }
  /** The machine waits for `review RUN --approve` there. */
  | { readonly type: 'promotion.machine-asked' }
  | { readonly type: 'promotion.machine-confirmed'; readonly manifestDigest: Digest }
  /** The machine's `started` receipt of the command: the journal begins. */
  | { readonly type: 'promotion.applying' }
  | {
      readonly type: 'promotion.ended';
      readonly outcome: ApplyOutcome;
      readonly code: string | null;
      readonly manifestDigest: Digest;
    }
  /** The command ended cancelled: the machine had begun nothing. */
  | { readonly type: 'promotion.cancelled' }
  /** The command ended in unknown outcome. */
  | { readonly type: 'promotion.lost' }
  | { readonly type: 'promotion.cancel'; readonly by: 'person' | 'machine' }
  /** Ten minutes passed since it was prepared. */
  | { readonly type: 'promotion.expired' };

/** Reasons with which a promotion refuses an event that its state knows. */
export type PromotionRefusal =
  | 'PROMOTION_REVIEW_STALE'
  | 'PROMOTION_RESULT_INVALID'
  | 'MACHINE_CONFIRMATION_REQUIRED'
  | 'ALREADY_CANCELLING';

/** Plain data of one promotion. */
export type PromotionContext = PromotionInput & {
  readonly approvalDigest: Digest | null;
  readonly commandId: string | null;
  readonly confirmedOnMachine: boolean;
  readonly cancelRequested: boolean;
  readonly code: string | null;
};

/** How a promotion ended. */
export type PromotionOutput = {
  readonly promotionId: string;
  readonly outcome: ApplyOutcome | 'cancelled' | 'expired';
  readonly code: string | null;
};

/** What the control plane does after the transaction that stored the step. */
export type PromotionActions = {
  /** Make the command `workspace.promote` that carries this approval (N-043). */
  readonly dispatchCommand: { readonly approvalDigest: Digest };
  /** Cancel the command of this promotion; the machine restores up to its commit (N-533). */
  readonly cancelCommand: undefined;
  /** Say on the page that a person at the machine must confirm too. */
  readonly showMachineConfirmation: undefined;
  readonly refuse: { readonly code: PromotionRefusal };
};
