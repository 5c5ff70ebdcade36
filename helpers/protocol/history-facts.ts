/*
 * What `promote` tells about promotions that it keeps, and `daemon` tells on to the owner's command line.
 */
import * as z from 'zod';
import { digestTextSchema, promotionIdSchema, timeSchema } from './ids.ts';
import { failureCodes } from './operations.ts';

/** Reasons with which an undo is refused, beside those that every apply has. */
export const undoCodes = ['UNDO_UNKNOWN', 'UNDO_WAITING', 'UNDO_DONE', 'UNDO_NOT_KEPT'] as const;
export type UndoCode = (typeof undoCodes)[number];

const path = z.string().max(4096);
const refusal = z.strictObject({
  code: z.enum([...failureCodes, ...undoCodes]),
  path: path.optional(),
  detail: z.string().max(300).optional(),
});
/** Why a promotion cannot be undone; `path` is path text, `detail` names file systems and counts, never a path. */
export type UndoRefusal = z.infer<typeof refusal>;

/** One kept promotion. */
export const pastSchema = z.strictObject({
  promotion: promotionIdSchema,
  /** Null where its journal cannot be believed. */
  facts: z
    .strictObject({
      run: z.string(),
      at: timeSchema,
      /** The promotion that this one took back. */
      undoes: promotionIdSchema.nullable(),
      changeCount: z.int().min(0),
    })
    .nullable(),
  /** Old files that are kept of it. */
  fileCount: z.int().min(0),
  byteCount: z.int().min(0),
  /** As far as can be seen without reading files whose time is as it was left; null where it can be undone. */
  refusal: refusal.nullable(),
});
export type Past = z.infer<typeof pastSchema>;

/** What undoing one promotion would change, from a number on; the digest is that of its journal. */
export const undoPlanSchema = z.discriminatedUnion('outcome', [
  z.strictObject({
    outcome: z.literal('possible'),
    journalDigest: digestTextSchema,
    rootIdentity: digestTextSchema,
    changeCount: z.int().min(0),
    changes: z
      .array(
        z.strictObject({
          path,
          kind: z.enum(['created', 'modified', 'deleted']),
          type: z.enum(['file', 'directory']),
        }),
      )
      .max(10_000),
  }),
  refusal.extend({ outcome: z.literal('refused') }),
]);
export type UndoPlan = z.infer<typeof undoPlanSchema>;

/** Path text of files of which another copy was kept beside, because somebody else changed them meanwhile. */
const kept = z.array(path).max(1000);

/** Old files that the history does not have because the disk was full, so that what was done cannot be undone; absent for none. */
export const notKeptSchema = z.int().min(1).optional();

/** Ways in which an undo ends. */
export const undoneSchema = z.discriminatedUnion('outcome', [
  z.strictObject({ outcome: z.literal('undone'), kept, notKept: notKeptSchema }),
  refusal.extend({ outcome: z.literal('refused') }),
  refusal.extend({ outcome: z.literal('rolled-back'), kept }),
]);
export type Undone = z.infer<typeof undoneSchema>;
