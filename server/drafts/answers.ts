import * as z from 'zod';
import {
  digestTextSchema,
  executorIdSchema,
  promotionIdSchema,
  reviewIdSchema,
  runIdSchema,
  timeSchema,
} from '../../helpers/protocol/ids.ts';
import { operationShape } from '../../helpers/protocol/operations.ts';

/** One review as lists show it. */
export const reviewSummarySchema = z.strictObject({
  review: reviewIdSchema,
  run: runIdSchema,
  agentName: z.string(),
  executor: executorIdSchema,
  executorLabel: z.string(),
  digest: digestTextSchema,
  manifestDigest: digestTextSchema,
  changeCount: z.int(),
  createdAt: timeSchema,
  /** The run wrote, or was reviewed anew with another digest, since. */
  stale: z.boolean(),
  /** Where the owner requires the confirmation, and where the difference may be seen. */
  promotion: z.enum(['page', 'machine']),
  difference: z.enum(['page', 'machine']),
  /** State of the newest promotion of this review. */
  promotionState: z.string().nullable(),
});
export type ReviewSummary = z.infer<typeof reviewSummarySchema>;

/** One review with its changes, at most 100 from the asked offset. */
export const reviewDetailSchema = reviewSummarySchema.extend({
  offset: z.int(),
  changes: operationShape('workspace.review').result.shape.changes,
  /** False once the sealed list was deleted, after its stated time: review the run again to see it. */
  kept: z.boolean(),
});
export type ReviewDetail = z.infer<typeof reviewDetailSchema>;

/** One promotion. */
export const promotionSummarySchema = z.strictObject({
  promotion: promotionIdSchema,
  review: reviewIdSchema,
  run: runIdSchema,
  /** State of machines/promotion. */
  state: z.string(),
  manifestDigest: digestTextSchema,
  changeCount: z.int(),
  executorLabel: z.string(),
  expiresAt: timeSchema,
  outcome: z.string().nullable(),
  code: z.string().nullable(),
});
export type PromotionSummary = z.infer<typeof promotionSummarySchema>;

/** One piece of a difference as its machine sealed it to the page: passed through and stored nowhere. */
export const differenceSchema = operationShape('review.difference').result.omit({ success: true });
export type Difference = z.infer<typeof differenceSchema>;

/** Which piece of a difference, and the key of the page that asks. */
export const differenceWishSchema = operationShape('review.difference').arguments.omit({ manifestDigest: true });
export type DifferenceWish = z.infer<typeof differenceWishSchema>;
