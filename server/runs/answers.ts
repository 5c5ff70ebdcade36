import * as z from 'zod';
import { availabilityReasons } from '../../helpers/protocol/errors.ts';
import {
  agentIdSchema,
  commandIdSchema,
  executorIdSchema,
  projectIdSchema,
  runIdSchema,
  timeSchema,
} from '../../helpers/protocol/ids.ts';
import { promotionSummarySchema, reviewSummarySchema } from '../drafts/answers.ts';

/** One run as lists show it. */
export const runSummarySchema = z.strictObject({
  run: runIdSchema,
  agent: agentIdSchema,
  agentName: z.string(),
  project: projectIdSchema,
  projectName: z.string(),
  executor: executorIdSchema.nullable(),
  executorLabel: z.string().nullable(),
  state: z.enum(['active', 'ended']),
  endedBecause: z.string().nullable(),
  openedBy: z.enum(['person', 'agent']),
  startedAt: timeSchema,
  activeAt: timeSchema,
  endedAt: timeSchema.nullable(),
  commandCount: z.int(),
  openCount: z.int(),
  unknownCount: z.int(),
});
export type RunSummary = z.infer<typeof runSummarySchema>;

/** One command of a run: what happened, never with what content. */
export const commandSummarySchema = z.strictObject({
  command: commandIdSchema,
  operation: z.string(),
  /** State of machines/command. */
  state: z.string(),
  outcome: z.string().nullable(),
  /** Side that refused it. */
  gate: z.string().nullable(),
  code: z.string().nullable(),
  createdAt: timeSchema,
  leasedAt: timeSchema.nullable(),
  endedAt: timeSchema.nullable(),
});
export type CommandSummary = z.infer<typeof commandSummarySchema>;

/** One run with what it may do, what it did and what came of it. */
export const runDetailSchema = runSummarySchema.extend({
  availability: z.array(
    z.strictObject({ operation: z.string(), available: z.boolean(), reason: z.enum(availabilityReasons).nullable() }),
  ),
  /** The newest 200, oldest first. */
  commands: z.array(commandSummarySchema),
  reviews: z.array(reviewSummarySchema),
  promotions: z.array(promotionSummarySchema),
});
export type RunDetail = z.infer<typeof runDetailSchema>;

/** What a person wishes to launch; with no machine named it is whichever is available. */
export const launchSchema = z.strictObject({
  agent: agentIdSchema,
  project: projectIdSchema,
  executor: executorIdSchema.nullable(),
});
export type Launch = z.infer<typeof launchSchema>;
