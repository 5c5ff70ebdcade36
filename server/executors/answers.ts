import * as z from 'zod';
import { descriptorSchema } from '../../helpers/protocol/descriptor.ts';
import { digestTextSchema, executorIdSchema, timeSchema } from '../../helpers/protocol/ids.ts';

const named = z.strictObject({ id: z.string(), name: z.string() });

/** What a person may do with a machine now; `end` is the emergency path of the organisation's owner. */
export const executorActions = ['pause', 'resume', 'disconnect', 'delete', 'end'] as const;
export type ExecutorAction = (typeof executorActions)[number];

/** One machine as the list shows it. */
export const executorSummarySchema = z.strictObject({
  executor: executorIdSchema,
  label: z.string(),
  scope: z.enum(['private', 'project', 'organization']),
  team: named,
  project: named.nullable(),
  state: z.enum(['pending_pairing', 'online', 'offline', 'draining', 'revoked', 'error']),
  /** False while paused. */
  accepting: z.boolean(),
  lastSeenAt: timeSchema.nullable(),
  fault: z.string().nullable(),
  revokedBecause: z.string().nullable(),
  /** Whether who asks administers it. */
  administers: z.boolean(),
  fingerprint: digestTextSchema.nullable(),
  rootName: z.string().nullable(),
  platform: descriptorSchema.shape.platform.nullable(),
  sandbox: descriptorSchema.shape.sandbox.nullable(),
  promotion: z.enum(['page', 'machine']).nullable(),
  difference: z.enum(['page', 'machine']).nullable(),
  /** 0 before the first. */
  confirmedRevision: z.int(),
  latestRevision: z.int(),
  /** Revision that waits for review, null where none does. */
  pendingRevision: z.int().nullable(),
  createdAt: timeSchema,
  actions: z.array(z.enum(executorActions)),
});
export type ExecutorSummary = z.infer<typeof executorSummarySchema>;

/** One machine with what it can do. */
export const executorDetailSchema = executorSummarySchema.extend({
  descriptor: descriptorSchema.nullable(),
  operations: z.array(
    z.strictObject({
      key: z.string(),
      description: z.string(),
      writes: z.boolean(),
      caller: z.enum(['agent', 'person']),
      /** In the confirmed descriptor. */
      confirmed: z.boolean(),
    }),
  ),
  rotation: z.int(),
});
export type ExecutorDetail = z.infer<typeof executorDetailSchema>;

/** What the emergency path shows, and nothing beside it (N-018). */
export const emergencySchema = z.strictObject({
  executors: z.array(
    z.strictObject({
      executor: executorIdSchema,
      label: z.string(),
      team: z.string(),
      state: z.string(),
      createdAt: timeSchema,
    }),
  ),
});
export type EmergencyAnswer = z.infer<typeof emergencySchema>;
