/*
 * The owner's policy: what this machine is willing to do, whatever anybody grants elsewhere. One JSON file, written whole with
 * every default at the first pairing; each section keeps the owner's own `why`. An unreadable or invalid file permits nothing.
 */
import { canonicalBytes } from '../helpers/protocol/descriptor.ts';
import { sha256 } from '../helpers/protocol/signed.ts';
import { operations } from '../helpers/protocol/operations.ts';
import { permits, policySchema } from '../helpers/protocol/policy.ts';
import type { Policy } from '../helpers/protocol/policy.ts';

/** The policy of a new pairing: the workspace bundle and the owner-only operations, nothing else. */
export function defaultPolicy(): Policy {
  return {
    version: 1,
    operations: {
      allow: operations.map(({ key }) => key),
      deny: [],
      why: 'Files in drafts, reviewed and promoted by a person.',
    },
    promotion: { confirm: 'page', why: 'A person approves on the page with their password.' },
    difference: {
      shown: 'page',
      why: 'The page may show the difference, sealed to the browser of the person who asks.',
    },
    ignore: {
      patterns: ['.env', '.env.*', '*.pem', '.ssh/', '.gnupg/', '.aws/', '.npmrc', '.netrc'],
      why: 'Files that usually hold secrets.',
    },
    limits: { concurrentCommands: 16, runtimeMs: 30_000, why: 'Enough for one agent at work.' },
    history: { megabytes: 1024, days: 30, why: 'Enough to take back a promotion that turned out wrong.' },
  };
}

/** A policy file that cannot be used; the message names the key, what was expected and what came. */
export class PolicyInvalid extends Error {
  override readonly name = 'PolicyInvalid';
}

/** Reads the bytes of policy.json. Throws PolicyInvalid. */
export function parsePolicy(text: string): Policy {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new PolicyInvalid('policy.json is not JSON; correct it, or move it away and pair again to get the defaults', {
      cause,
    });
  }
  const parsed = policySchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new PolicyInvalid(`policy.json: ${issue?.path.join('.') || 'the file'}: ${issue?.message ?? 'invalid'}`, {
    cause: parsed.error,
  });
}

/** SHA-256 of what the policy decides for others, 32 bytes; the owner's reasons and what the machine keeps for its owner are not part of it. */
export function policyDigest(policy: Policy): Buffer {
  const { operations: rules, promotion, difference, ignore, limits } = policy;
  const decided = {
    version: policy.version,
    allow: rules.allow.toSorted(),
    deny: rules.deny.toSorted(),
    confirm: promotion.confirm,
    shown: difference.shown,
    ignore: ignore.patterns,
    concurrentCommands: limits.concurrentCommands,
    runtimeMs: limits.runtimeMs,
  };
  return sha256(canonicalBytes(decided));
}

/** Keys that a policy permits and this product implements, in the order of the list. */
export function permittedOperations(policy: Policy): string[] {
  return operations.map(({ key }) => key as string).filter((key) => permits(policy, key));
}

/** Whether `next` permits anything that `current` did not: such a change waits for a person on the control plane. */
export function widens(current: Policy, next: Policy): boolean {
  return (
    permittedOperations(next).some((key) => !permits(current, key)) ||
    (current.promotion.confirm === 'machine' && next.promotion.confirm === 'page') ||
    (current.difference.shown === 'machine' && next.difference.shown === 'page') ||
    current.ignore.patterns.some((pattern) => !next.ignore.patterns.includes(pattern)) ||
    next.ignore.patterns.some((pattern) => pattern.startsWith('!') && !current.ignore.patterns.includes(pattern)) ||
    next.limits.concurrentCommands > current.limits.concurrentCommands ||
    next.limits.runtimeMs > current.limits.runtimeMs
  );
}
