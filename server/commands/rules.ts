/*
 * What holds of every command, pure: its times, what the gate at dispatch compares, and which event of machines/command a
 * checked statement is.
 */
import type { Operation } from '../../helpers/protocol/operations.ts';
import type { Outcome } from '../../helpers/protocol/statements.ts';
import type { commandMachine } from '../../machines/command/machine.ts';
import type { CommandEvent } from '../../machines/command/types.ts';
import type { StepRefusal, Stepped, Stored } from '../../machines/step.ts';
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

/** What a lease looks at in the row of its executor. */
export interface LeaseRow {
  readonly state: string;
  readonly epoch: number;
  readonly accepting: boolean;
  readonly confirmed:
    | {
        readonly revision: number;
        readonly policyDigest: string;
        readonly catalogueDigest: string;
        readonly limits: { readonly runtimeMs: number };
      }
    | undefined;
}

/** What an envelope would say now; undefined while nothing may be leased to the connection of `epoch`. */
export function leaseFactsOf(row: LeaseRow | undefined, epoch: number): LeaseFacts | undefined {
  if (row === undefined || row.epoch !== epoch || row.state !== 'online' || !row.accepting) return undefined;
  if (row.confirmed === undefined) return undefined;
  return {
    epoch,
    confirmedRevision: row.confirmed.revision,
    confirmedPolicyDigest: row.confirmed.policyDigest,
    catalogueDigest: row.confirmed.catalogueDigest,
    runtimeMs: row.confirmed.limits.runtimeMs,
  };
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

/** A statement of a command's chain. */
export interface ChainLink {
  readonly type: string;
  /** 64 hexadecimal digits, as in a checked receipt. */
  readonly digest: string;
}

/** A command as it stands when a frame of receipts is judged. */
export interface CommandStanding {
  readonly stored: Stored<typeof commandMachine>;
  /** Connection that was given it, null while nobody was. */
  readonly epoch: number | null;
  readonly chain: readonly ChainLink[];
}

/** What a frame of receipts comes to. */
export type JudgedFrame<Receipt extends CheckedReceipt> =
  /** All of it was taken before: the answer of then is given again. */
  | { readonly is: 'repeated' }
  /** A late chain that ends nothing: nothing changes. */
  | { readonly is: 'open' }
  | { readonly is: 'taken'; readonly fresh: readonly Receipt[]; readonly stored: Stored<typeof commandMachine> }
  | {
      readonly is: 'refused';
      readonly code: 'CONNECTION_FENCED' | 'RECEIPT_OUT_OF_ORDER' | 'RESULT_DUPLICATE';
      readonly message: string;
    };

/** One step of a stored command. */
export type StepCommand = (
  stored: Stored<typeof commandMachine>,
  event: CommandEvent,
) => Stepped<typeof commandMachine> | StepRefusal;

/**
 * Judges a frame of checked receipts: each new one must name the statement before it, within its connection each is one step, and after
 * an unknown outcome a whole chain is one step. `from` is the connection that brought it, with what is thought of its result.
 */
export function judgeFrame<Receipt extends CheckedReceipt>(
  standing: CommandStanding,
  receipts: readonly Receipt[],
  from: Omit<Judging, 'state'>,
  step: StepCommand,
): JudgedFrame<Receipt> {
  const { stored, chain } = standing;
  const fresh = receipts.filter(({ digest }) => !chain.some((link) => link.digest === digest));
  if (fresh.length === 0) return { is: 'repeated' };
  const unlinked = findUnlinked(chain, fresh);
  if (unlinked) return outOfOrder(`${unlinked.type} does not follow what is known`);
  const state = stateName(stored.value);
  const late = state === 'unknown';
  if (!isOpen(state) && !late) return afterTheEnd(fresh);
  if (late) return judgeLate(standing, fresh, from, step);
  if (standing.epoch !== from.epoch) return fenced('an earlier connection was given this command; its chain is late');
  let now = stored;
  for (const receipt of fresh) {
    const stepped = step(now, eventOf(receipt, { ...from, state: stateName(now.value) }));
    if (!stepped.ok)
      return stepped.code === 'CONNECTION_FENCED'
        ? fenced('of another connection')
        : outOfOrder(`${receipt.type} cannot follow here`);
    now = stepped.stored;
  }
  return { is: 'taken', fresh, stored: now };
}

function judgeLate<Receipt extends CheckedReceipt>(
  { stored, chain }: CommandStanding,
  fresh: readonly Receipt[],
  { failure }: Omit<Judging, 'state'>,
  step: StepCommand,
): JudgedFrame<Receipt> {
  const last = fresh.at(-1);
  const end = last && lateEnding(last, failure);
  if (!last || !end) return { is: 'open' };
  const whole = [...chain, ...fresh];
  const accepted = whole.find(({ type }) => type === 'machine.accepted')?.digest ?? null;
  // A refusal after the start stands in for a result that was refused (N-119): it was tried.
  const isReplaced = last.type === 'machine.refused' && whole.some(({ type }) => type === 'machine.started');
  const outcome = isReplaced ? 'failed' : end.outcome;
  const stepped = step(stored, {
    type: 'receipt.late',
    leasedDigest: chain.find(({ type }) => type === 'control.leased')?.digest ?? '',
    acceptedDigest: accepted,
    ending: { ...end, outcome, receiptDigest: last.digest },
  });
  if (!stepped.ok) return outOfOrder('the late chain does not continue the one that is known');
  return { is: 'taken', fresh, stored: stepped.stored };
}

/** The first receipt that does not name the statement before it; a replacement names the result that it stands in for. */
function findUnlinked<Receipt extends CheckedReceipt>(
  chain: readonly ChainLink[],
  fresh: readonly Receipt[],
): Receipt | undefined {
  let previous = chain.findLast(({ type }) => type !== 'control.acknowledged' && type !== 'control.command')?.digest;
  return fresh.find((receipt) => {
    const linked = previous === receipt.previous;
    previous = receipt.digest;
    return !linked;
  });
}

function afterTheEnd(fresh: readonly CheckedReceipt[]): JudgedFrame<never> {
  const ending = fresh.some(({ type }) => type === 'machine.result' || type === 'machine.refused');
  if (!ending) return outOfOrder('this command has ended');
  return { is: 'refused', code: 'RESULT_DUPLICATE', message: 'this command has another ending already, which stays' };
}

function outOfOrder(message: string): JudgedFrame<never> {
  return { is: 'refused', code: 'RECEIPT_OUT_OF_ORDER', message };
}

function fenced(message: string): JudgedFrame<never> {
  return { is: 'refused', code: 'CONNECTION_FENCED', message };
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
