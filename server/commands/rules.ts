/*
 * What holds of every command, pure: its times, what the gate at dispatch compares, and which event of machines/command a
 * checked statement is.
 */
import type { Operation } from '../../helpers/protocol/operations.ts';
import type { Outcome } from '../../helpers/protocol/statements.ts';
import type { CommandEvent } from '../../machines/command/types.ts';
import type { KnownOutcome } from '../../machines/values.ts';

/** What is kept between the deadlines of one command, in ms, so that the inner one always passes first (N-511). */
export const MARGIN_MS = 5000;
/** How long before the lease a command is valid already, in ms: what clocks may differ after the handshake. */
export const EARLY_MS = 5000;
/** How much longer than its command a waiting tool waits, in ms (N-050). */
export const TOOL_WAITS_MS = 10_000;
/** Most commands of one run that may be open at once. */
export const OPEN_LIMIT = 64;

/** Deadlines of one command from its lease, in ms, each longer than the one before: work on the machine, command, tool. */
export interface CommandTimes {
  readonly runtimeMs: number;
  readonly lifetimeMs: number;
  readonly toolMs: number;
}

/** Deadlines of an operation on a machine whose confirmed descriptor permits `limitMs` of runtime. */
export function commandTimes(operation: Pick<Operation, 'lifetimeMs'>, limitMs: number): CommandTimes {
  const { lifetimeMs } = operation;
  return { runtimeMs: Math.min(limitMs, lifetimeMs - MARGIN_MS), lifetimeMs, toolMs: lifetimeMs + TOOL_WAITS_MS };
}

/** What an envelope was built from; when one of them differs at the lease, the envelope is built anew. */
export interface LeaseFacts {
  readonly epoch: number;
  readonly confirmedRevision: number;
  readonly confirmedPolicyDigest: string;
  readonly catalogueDigest: string;
  readonly runtimeMs: number;
}

/** Whether an envelope still says what holds. */
export function stillHolds(built: LeaseFacts, now: LeaseFacts): boolean {
  return (
    built.epoch === now.epoch &&
    built.confirmedRevision === now.confirmedRevision &&
    built.confirmedPolicyDigest === now.confirmedPolicyDigest &&
    built.catalogueDigest === now.catalogueDigest &&
    built.runtimeMs === now.runtimeMs
  );
}

/** One statement of a machine about a command, its signature and its links to command and envelope already checked. */
export type CheckedReceipt = {
  readonly digest: string;
  readonly previous: string;
} & (
  | { readonly type: 'machine.accepted' | 'machine.started' }
  | { readonly type: 'machine.result'; readonly outcome: Outcome }
  | { readonly type: 'machine.refused'; readonly code: string }
);

/** How a command ends whose machine refused it with this code. */
export function refusedOutcome(code: string): 'refused' | 'cancelled' | 'expired' {
  if (code === 'CANCELLED_BEFORE_START') return 'cancelled';
  return code === 'COMMAND_EXPIRED' ? 'expired' : 'refused';
}

/** What the control plane knows when it judges a receipt. */
export interface Judging {
  /** State of the stored command: `leased`, `started`, `replacing` … */
  readonly state: string;
  readonly epoch: number;
  /** Why its result cannot be taken, null where it can. */
  readonly unacceptable: string | null;
  /** Code of the failure that its result states, null where it states none. */
  readonly failure: string | null;
}

/** The event of one receipt within its connection. */
export function eventOf(receipt: CheckedReceipt, { state, epoch, unacceptable, failure: code }: Judging): CommandEvent {
  const link = { epoch, previousDigest: receipt.previous };
  const receiptDigest = receipt.digest;
  switch (receipt.type) {
    case 'machine.accepted':
      return { type: 'receipt.accepted', receiptDigest, ...link };
    case 'machine.started':
      return { type: 'receipt.started', receiptDigest, ...link };
    case 'machine.refused': {
      if (state === 'replacing') return { type: 'result.replaced', receiptDigest, ...link };
      const outcome = refusedOutcome(receipt.code);
      return { type: 'receipt.not-started', ending: { outcome, code: receipt.code, receiptDigest }, ...link };
    }
    case 'machine.result': {
      const { outcome } = receipt;
      const started = state === 'started' || state === 'cancelling.started';
      if (!started && outcome !== 'succeeded' && outcome !== 'failed') {
        return { type: 'receipt.not-started', ending: { outcome, code, receiptDigest }, ...link };
      }
      if (unacceptable !== null) return { type: 'result.unacceptable', receiptDigest, code: unacceptable, ...link };
      // A machine that refuses after the start contradicts itself; the step finds no such transition and refuses it.
      if (outcome === 'refused')
        return { type: 'receipt.not-started', ending: { outcome, code, receiptDigest }, ...link };
      return { type: 'result.received', ending: { outcome, code, receiptDigest }, ...link };
    }
  }
}

/** How a chain ends that arrives after the outcome was unknown; undefined where its last receipt ends nothing. */
export function lateEnding(
  receipt: CheckedReceipt,
  failure: string | null,
): { readonly outcome: KnownOutcome; readonly code: string | null } | undefined {
  if (receipt.type === 'machine.result') return { outcome: receipt.outcome, code: failure };
  if (receipt.type === 'machine.refused') return { outcome: refusedOutcome(receipt.code), code: receipt.code };
  return undefined;
}

/** State of a stored machine as one word, `cancelling.started` for a nested one. */
export function stateName(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const [entry] = Object.entries(value);
  return entry ? `${entry[0]}.${stateName(entry[1])}` : '';
}

/** Whether an outcome is still open: `unknown` is not, though a late receipt may settle it. */
export function isOpen(state: string): boolean {
  return !['unknown', 'succeeded', 'failed', 'refused', 'cancelled', 'expired'].includes(state);
}
