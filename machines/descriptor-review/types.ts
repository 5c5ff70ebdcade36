import type { Digest } from '../values.ts';

/** One revision as it arrived: signature valid, higher than every earlier one of this executor (N-080). */
export type DescriptorReviewInput = {
  readonly executorId: string;
  /** Revision of the descriptor; only goes forward. */
  readonly revision: number;
  readonly descriptorDigest: Digest;
};

/** Facts and wishes; entitlement and, for a confirmation, the current password are checked before one of these exists (N-193). */
export type DescriptorReviewEvent =
  /** An entitled person confirms the revision that they saw, named by its digest (N-084). */
  | { readonly type: 'descriptor.confirm'; readonly descriptorDigest: Digest }
  | { readonly type: 'descriptor.refuse'; readonly descriptorDigest: Digest }
  /** The machine sent a revision of this executor. */
  | { readonly type: 'descriptor.arrived'; readonly revision: number; readonly descriptorDigest: Digest };

/** Reasons with which a review refuses an event that its state knows. */
export type DescriptorReviewRefusal = 'DESCRIPTOR_CHANGED' | 'DESCRIPTOR_ROLLBACK' | 'REVISION_CONFLICT';

/** Plain data of one review. */
export type DescriptorReviewContext = DescriptorReviewInput;

/** How a review ended; the highest confirmed revision is the one in force (N-088). */
export type DescriptorReviewOutput = {
  readonly executorId: string;
  readonly revision: number;
  readonly descriptorDigest: Digest;
  readonly outcome: 'confirmed' | 'refused' | 'superseded';
};

/** What the control plane does after the transaction that stored the step. */
export type DescriptorReviewActions = {
  /** Put this revision in force, each newly announced operation denied (N-085); the lifecycle hears `descriptor.reviewed`. */
  readonly activateRevision: { readonly revision: number; readonly descriptorDigest: Digest };
  /** The lifecycle hears `descriptor.reviewed` (N-205). */
  readonly recordRefusal: { readonly revision: number };
  /** Give the stored answer again (N-080). */
  readonly repeatAnswer: undefined;
  readonly refuse: { readonly code: DescriptorReviewRefusal };
};
