/*
 * THE resolver: the six conditions of availability as one pure function. Whoever lists, resolves, binds or dispatches asks it and
 * nobody else decides (N-089).
 *
 * INVARIANT 1  An operation is available exactly when all facts are true (N-090 to N-095).
 * INVARIANT 2  A refusal has one reason, that of the first false fact in this order; who may not discover learns no other (N-096).
 */
import type { AvailabilityReason } from '../../helpers/protocol/errors.ts';

/** What was read at one moment; a fact that could not be read is false. */
export interface AvailabilityFacts {
  /** The person may know of the executor. */
  readonly discoverable: boolean;
  /** A grant for exactly this executor, agent and operation stands. */
  readonly granted: boolean;
  /** The ordinary grant of the logical operation to the agent stands. */
  readonly toolGranted: boolean;
  /** The scope matches the immutable context of the run. */
  readonly inScope: boolean;
  /** The executor proved itself within the last minute and accepts work. */
  readonly online: boolean;
  /** A person confirmed its descriptor, and its boundary is still the confirmed one. */
  readonly approved: boolean;
  /** The machine's own policy permits the operation, in the confirmed revision and in whatever waits. */
  readonly permittedLocally: boolean;
}

/** The one answer. */
export type Availability =
  | { readonly available: true }
  | { readonly available: false; readonly reason: AvailabilityReason };

const order: readonly (readonly [keyof AvailabilityFacts, AvailabilityReason])[] = [
  ['discoverable', 'not_discoverable'],
  ['granted', 'operation_ungranted'],
  ['toolGranted', 'logical_tool_ungranted'],
  ['inScope', 'scope_mismatch'],
  ['online', 'offline'],
  ['approved', 'descriptor_unreviewed'],
  ['permittedLocally', 'local_policy_denied'],
];

/** Decides from the facts alone. */
export function decideAvailability(facts: AvailabilityFacts): Availability {
  const missing = order.find(([fact]) => !facts[fact]);
  return missing === undefined ? { available: true } : { available: false, reason: missing[1] };
}

/**
 * Why a right fell, whether or not the machine is there; undefined while it stands. A pause or a silence takes no right, and hides none
 * that was taken (N-103).
 */
export function withdrawnBecause(facts: AvailabilityFacts): AvailabilityReason | undefined {
  const answer = decideAvailability({ ...facts, online: true });
  return answer.available ? undefined : answer.reason;
}

function rank(reason: AvailabilityReason): number {
  return order.findIndex(([, named]) => named === reason);
}

/** Of several refusals the one that says most: that of the executor which came furthest. */
export function nearestReason(reasons: readonly AvailabilityReason[]): AvailabilityReason {
  return reasons.reduce<AvailabilityReason>(
    (nearest, reason) => (rank(reason) > rank(nearest) ? reason : nearest),
    'not_discoverable',
  );
}
