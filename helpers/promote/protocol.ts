/*
 * promote: one promotion, one undo or one recovery, then it ends.
 *
 *   transport   channel 3, frames of helpers/protocol/frame.ts, messages of envelope.ts
 *   asks        `daemon`
 *   trust       none in `daemon`: the approval is verified here against the pin in the owner's folder (descriptor 7), the
 *               manifest is rebuilt here from the draft's descriptor (5), the root's identity is recomputed here (4), the
 *               owner's policy is read here (8); an undo needs the owner's confirmation of it, which is read here too (7)
 */
import * as z from 'zod';
import { notKeptSchema, pastSchema, undoneSchema, undoPlanSchema } from '../protocol/history-facts.ts';
import { triedSchema } from '../protocol/file-system.ts';
import { counterSchema, digestTextSchema, promotionIdSchema } from '../protocol/ids.ts';
import { signedSchema } from '../protocol/signed.ts';
import { failureCodes } from '../protocol/operations.ts';

/** Raised by any change of a union below. */
export const PROMOTE_PROTOCOL_VERSION = 6;

/** Path text of files of which another copy was kept beside, because somebody else changed them meanwhile. */
const kept = z.array(z.string().max(4096)).max(1000);

/** Why, for the person: names of file systems and counts, never a path. */
const detail = z.string().max(300).optional();

export const promoteRequests = {
  /** Settles what an earlier promotion of this root left; always the first request. */
  'promote.recover': {
    /** Promotions that may have been cut short before anybody heard how they ended. */
    body: z.strictObject({ promotions: z.array(promotionIdSchema).max(1000) }),
    reply: z.strictObject({
      /** Number of the draft's folder that this process was started for, 0 for none: an approval of another draft is not for it. */
      slot: z.int().min(0).max(0xffff_ffff),
      outcome: z.enum(['nothing-to-do', 'rolled-back', 'finished', 'cleaned', 'needs-attention']),
      /** Paths, as path text, of files in a third state; both copies are kept. */
      conflicts: z.array(z.string()).max(1000),
      /** Those of the promotions asked about that were committed: their draft is the person's tree. */
      promoted: z.array(promotionIdSchema).max(1000),
    }),
  },
  /** A person decided about what `promote.recover` could not: restore what is known, or set the journal aside untouched. */
  'promote.repair': {
    body: z.strictObject({ choice: z.enum(['restore', 'set-aside']) }),
    reply: z.strictObject({ outcome: z.enum(['nothing-to-do', 'restored', 'set-aside']), kept }),
  },
  /** Applies the approved manifest, all or restore. */
  'promote.apply': {
    body: z.strictObject({
      approval: signedSchema,
      pinRotation: z.strictObject({ current: signedSchema, next: signedSchema }).optional(),
    }),
    reply: z.discriminatedUnion('outcome', [
      z.strictObject({
        outcome: z.literal('promoted'),
        manifestDigest: digestTextSchema,
        history: z.string().max(64),
        kept,
        notKept: notKeptSchema,
      }),
      z.strictObject({
        outcome: z.literal('refused'),
        code: z.enum(failureCodes),
        path: z.string().max(4096).optional(),
        detail,
      }),
      z.strictObject({
        outcome: z.literal('rolled-back'),
        code: z.enum(failureCodes),
        path: z.string().max(4096).optional(),
        detail,
        kept,
      }),
    ]),
  },
  /** Promotions that are kept, newest first. */
  'promote.history': { body: z.strictObject({}), reply: z.strictObject({ promotions: z.array(pastSchema).max(1000) }) },
  /** Tries what the root's file system has, in a stage folder of its own; the root is as it was then. */
  'promote.file-system': { body: z.strictObject({}), reply: triedSchema },
  /** What undoing one of them would change, from a number on. */
  'promote.undo-plan': {
    body: z.strictObject({ promotion: promotionIdSchema, from: counterSchema }),
    reply: undoPlanSchema,
  },
  /** Takes a kept promotion back, all or restore, if the owner confirmed exactly that. */
  'promote.undo': { body: z.strictObject({ promotion: promotionIdSchema }), reply: undoneSchema },
  /** Ends an apply or an undo before its commit; after it, nothing. */
  'promote.cancel': { body: z.strictObject({}), reply: z.strictObject({}) },
} as const;

export const promoteEvents = {
  'promote.progress': z.strictObject({
    phase: z.enum(['verifying', 'staging', 'applying', 'committing', 'cleaning']),
    done: z.int().min(0),
    total: z.int().min(0),
  }),
} as const;

/** What `cli` writes into the owner's folder as `pin.json` at pairing: the trust that promote starts from. Bytes are hexadecimal. */
export const ownerPinSchema = z.strictObject({
  version: z.literal(1),
  executor: z.string(),
  commandKey: digestTextSchema,
  rootIdentity: digestTextSchema,
  /** Who must confirm a promotion, as the owner's command line was told; of this and policy.json the stricter holds. */
  promotion: z.enum(['page', 'machine']),
});
export type OwnerPin = z.infer<typeof ownerPinSchema>;

/** How long a confirmation holds, in ms; it serves one promotion or one undo. */
export const CONFIRMATION_MS = 3_600_000;

/** What `cli` writes as `confirmations/<manifestDigest>.json` after `review RUN --approve`. */
export const ownerConfirmationSchema = z.strictObject({
  version: z.literal(1),
  run: z.string(),
  manifestDigest: digestTextSchema,
  rootIdentity: digestTextSchema,
  /** Names the guarded entries (`.git`, hooks, CI, editor tasks) that the person saw and confirmed. */
  guarded: z.array(z.string()).max(10_000),
  /** When the person answered, in ms since the Unix epoch: a newer one for the same changes is another confirmation. */
  at: z.int(),
});
export type OwnerConfirmation = z.infer<typeof ownerConfirmationSchema>;

/** What `cli` writes as `confirmations/<journalDigest>.json` after `undo ID`; it serves one undo. */
export const undoConfirmationSchema = z.strictObject({
  version: z.literal(1),
  undo: promotionIdSchema,
  journalDigest: digestTextSchema,
  rootIdentity: digestTextSchema,
  /** When the owner answered, in ms since the Unix epoch. */
  at: z.int(),
});
export type UndoConfirmation = z.infer<typeof undoConfirmationSchema>;

export type PromoteRequest = keyof typeof promoteRequests;
export type PromoteBody<Type extends PromoteRequest> = z.infer<(typeof promoteRequests)[Type]['body']>;
export type PromoteReply<Type extends PromoteRequest> = z.infer<(typeof promoteRequests)[Type]['reply']>;
export type PromoteEvent = keyof typeof promoteEvents;

export const promoteRefusals = ['RECOVERY_FIRST', 'RECOVERY_REQUIRED', 'BUSY', 'PIN_INVALID'] as const;
export type PromoteRefusal = (typeof promoteRefusals)[number];
