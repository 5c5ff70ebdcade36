/*
 * What one record of the ledger says. Records are the receipts themselves, phases and fence marks; each is written before the
 * step that it permits.
 */
import * as z from 'zod';
import {
  agentIdSchema,
  bindingIdSchema,
  bytes,
  commandIdSchema,
  counterSchema,
  digestSchema,
  runIdSchema,
  timeSchema,
} from '../../helpers/protocol/ids.ts';
import { signedSchema } from '../../helpers/protocol/signed.ts';
import { outcomeSchema } from '../../helpers/protocol/statements.ts';

/** Facts of a verified envelope that later checks and a restart need. */
export const commandFactsSchema = z.strictObject({
  command: commandIdSchema,
  run: runIdSchema,
  /** Digest of person, conversation and project: a run never changes who it acts for. */
  originDigest: digestSchema,
  /** The run's agent; null for what the person asks alone: a difference or a promotion. */
  agent: agentIdSchema.nullable(),
  operation: z.string().max(64),
  binding: bindingIdSchema,
  fence: z.int().min(1),
  epoch: z.int().min(1),
  maximumRuntimeMs: z.int().min(1),
  expiresAt: timeSchema,
  idempotencyKey: z.string().max(128),
  /** Digest over arguments and content: one idempotency key never stands for two requests. */
  requestDigest: digestSchema,
  envelopeDigest: digestSchema,
  leasedDigest: digestSchema,
});
export type CommandFacts = z.infer<typeof commandFactsSchema>;

/** Outcome of an execution as the machine states it; `code` names the cause where there is one. */
export const endedSchema = z.strictObject({
  outcome: z.enum([...outcomeSchema.options, 'unknown']),
  code: z.string().max(64).nullable(),
  resultDigest: bytes(32).nullable(),
});

export type Ended = z.infer<typeof endedSchema>;

/** Phase of a command's newest record. */
export const phaseSchema = z.enum(['accepted', 'started', 'ended', 'refused', 'acknowledged']);

/** One receipt with the domain that it was signed under. */
export const typedReceiptSchema = z.strictObject({
  type: z.enum(['machine.accepted', 'machine.started', 'machine.result', 'machine.refused']),
  signed: signedSchema,
});
export type TypedReceipt = z.infer<typeof typedReceiptSchema>;

/** A command as a mark carries it on; receipts are kept until the control plane has countersigned. */
const carried = z.strictObject({
  facts: commandFactsSchema,
  phase: phaseSchema,
  receipts: z.array(typedReceiptSchema).max(4),
  ended: endedSchema.nullable(),
});

/** Every record. A `mark` opens a segment and carries what earlier segments knew and may not be forgotten. */
export const recordSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('mark'),
    version: z.literal(1),
    segment: z.int().min(1),
    /** Records before this one, and the chain's head after them. */
    count: counterSchema,
    previousHead: digestSchema,
    highAt: timeSchema,
    highFence: counterSchema,
    commands: z.array(carried),
    /** Heads of the newest records before this segment: `[count, head]`. */
    heads: z.array(z.tuple([counterSchema, digestSchema])),
  }),
  z.strictObject({ kind: z.literal('session'), at: timeSchema, session: signedSchema }),
  z.strictObject({ kind: z.literal('accepted'), at: timeSchema, facts: commandFactsSchema, receipt: signedSchema }),
  z.strictObject({ kind: z.literal('started'), at: timeSchema, command: commandIdSchema, receipt: signedSchema }),
  z.strictObject({
    kind: z.literal('ended'),
    at: timeSchema,
    command: commandIdSchema,
    ended: endedSchema,
    /** Absent for an unknown outcome: it is never sent as if it were known. */
    receipt: typedReceiptSchema.nullable(),
  }),
  /** A decision of the machine's gate against a command; the receipt is the one that was sent. */
  z.strictObject({
    kind: z.literal('refused'),
    at: timeSchema,
    facts: commandFactsSchema,
    code: z.string().max(64),
    receipt: signedSchema,
  }),
  z.strictObject({
    kind: z.literal('acknowledged'),
    at: timeSchema,
    command: commandIdSchema,
    acknowledged: signedSchema,
  }),
]);
export type LedgerRecord = z.infer<typeof recordSchema>;
export type MarkRecord = Extract<LedgerRecord, { kind: 'mark' }>;
