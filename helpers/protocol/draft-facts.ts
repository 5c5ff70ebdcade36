/*
 * What `workspace` tells about drafts, and `daemon` tells on to the owner's command line.
 */
import * as z from 'zod';
import { digestTextSchema, runIdSchema, timeSchema } from './ids.ts';

/** One draft: whose, where (`slot` is its folder's number), how much, how old. */
export const draftFactsSchema = z.strictObject({
  run: runIdSchema,
  slot: z.int().min(1).max(0xffff_ffff),
  changeCount: z.int().min(0),
  byteCount: z.int().min(0),
  createdAt: timeSchema,
  changedAt: timeSchema,
  /** Its index cannot be read: it can be discarded and nothing else. */
  damaged: z.boolean(),
});
export type DraftFacts = z.infer<typeof draftFactsSchema>;

/** What a file that replaces another will not have of it. */
export const lossesSchema = z.array(z.string().max(1100)).max(32);

/** One change of a draft with its difference, for the owner's terminal. */
export const differenceSchema = z.strictObject({
  changeCount: z.int().min(0),
  manifestDigest: digestTextSchema,
  path: z.string(),
  kind: z.enum(['created', 'modified', 'deleted']),
  type: z.enum(['file', 'directory']),
  /** Unified difference, or why there is none. */
  difference: z.discriminatedUnion('shown', [
    z.strictObject({ shown: z.literal('text'), text: z.string().max(600_000), truncated: z.boolean() }),
    z.strictObject({
      shown: z.literal('nothing'),
      reason: z.enum(['binary', 'too-large', 'directory', 'mode-only']),
    }),
  ]),
  modeBefore: z.string().optional(),
  modeAfter: z.string().optional(),
  lost: lossesSchema.optional(),
});
