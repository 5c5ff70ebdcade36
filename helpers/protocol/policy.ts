/*
 * The owner's policy as policy.json holds it: written by `cli` or by hand, read by `daemon` for what may run and by `promote` for who
 * confirms. It is here because each of them decides for itself.
 */
import * as z from 'zod';
import { findOperation, isUnimplemented } from './operations.ts';

const why = z.string().max(400).default('');
const operationKey = z.string().refine((key) => findOperation(key) !== undefined || isUnimplemented(key), {
  error: 'expected a key of the operation list; `nessie-executor policy show` prints it',
});

/** Closed shape of policy.json, which `cli` writes and the owner may edit; docs/policy.md is printed from it. */
export const policySchema = z.strictObject({
  version: z.literal(1),
  operations: z.strictObject({
    /** Keys that may run. Deny beats allow. */
    allow: z.array(operationKey).max(64),
    deny: z.array(operationKey).max(64).default([]),
    why,
  }),
  promotion: z.strictObject({
    /** Who must confirm a promotion: the person on the page, or a person at this machine as well; of this and the pin the stricter holds. */
    confirm: z.enum(['page', 'machine']).default('page'),
    why,
  }),
  difference: z.strictObject({
    /** Where the content difference may be seen: also sealed to the page, or on this machine alone. */
    shown: z.enum(['page', 'machine']).default('page'),
    why,
  }),
  ignore: z.strictObject({
    /** gitignore patterns; what they match is invisible to every operation. */
    patterns: z.array(z.string().min(1).max(1024)).max(1000).default([]),
    why,
  }),
  limits: z.strictObject({
    /** Commands that run side by side, 1 to 64. */
    concurrentCommands: z.int().min(1).max(64).default(16),
    /** Longest run time of one command, in ms. */
    runtimeMs: z.int().min(1000).max(300_000).default(30_000),
    why,
  }),
  /** What `promote` keeps so that promotions can be undone; a policy of the time before this section has its defaults. */
  history: z
    .strictObject({
      /** Most that all kept promotions hold together, in MiB. */
      megabytes: z.int().min(0).max(1_048_576).default(1024),
      /** A promotion older than this many days is forgotten. */
      days: z.int().min(0).max(3650).default(30),
      why,
    })
    .prefault({}),
});
export type Policy = z.infer<typeof policySchema>;

/** Whether a policy permits an operation; deny beats allow, an unknown key is never permitted. */
export function permits(policy: Policy, key: string): boolean {
  return (
    findOperation(key) !== undefined && policy.operations.allow.includes(key) && !policy.operations.deny.includes(key)
  );
}

/** Who must confirm a promotion where two have a say, the pin and the policy: a person at the machine if either says so. */
export function stricter(...rules: readonly Policy['promotion']['confirm'][]): Policy['promotion']['confirm'] {
  return rules.includes('machine') ? 'machine' : 'page';
}
