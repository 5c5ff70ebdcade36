import type { Digest, Gate, KnownOutcome, Outcome } from '../values.ts';

// The control plane's side, kept by machine.ts.

/** What the control plane knows when it queues a command. */
export type CommandInput = {
  readonly commandId: string;
  readonly executorId: string;
};

/** Why an outcome is unknown. */
export type UnknownReason = 'connection-lost' | 'lifetime-passed';

/** Who wants a command ended; `withdrawn` says that one of the six conditions fell. */
export type Canceller = 'person' | 'run-ended' | 'withdrawn';

/** How a command ended on the machine, with its proof. */
export type Ending = {
  readonly outcome: KnownOutcome;
  readonly code: string | null;
  /** Digest of the signed statement that says so. */
  readonly receiptDigest: Digest;
};

/** Place of a receipt in its chain: the connection that brought it and the statement before it. */
export type Link = { readonly epoch: number; readonly previousDigest: Digest };

/** Facts and wishes; signatures and digests are verified before one of these exists. */
export type CommandEvent =
  /** Delivered as the answer to a question of this connection; all six conditions were checked again (N-102). */
  | {
      readonly type: 'command.lease';
      readonly epoch: number;
      /** Digest of the envelope, which is built and signed for this very delivery: root of the receipt chain. */
      readonly envelopeDigest: Digest;
      /** Digest of the control plane's own receipt `leased`. */
      readonly receiptDigest: Digest;
    }
  /** The dispatch gate said no; the code names it (N-240). */
  | { readonly type: 'command.refused'; readonly code: string }
  | ({ readonly type: 'receipt.accepted'; readonly receiptDigest: Digest } & Link)
  | ({ readonly type: 'receipt.started'; readonly receiptDigest: Digest } & Link)
  /** The machine did not start this, and never will. */
  | ({
      readonly type: 'receipt.not-started';
      readonly ending: Ending & { readonly outcome: 'refused' | 'cancelled' | 'expired' };
    } & Link)
  /** A signed result within all limits arrived; it is countersigned in the same transaction. */
  | ({
      readonly type: 'result.received';
      readonly ending: Ending & { readonly outcome: Exclude<KnownOutcome, 'refused'> };
    } & Link)
  /** A signed result arrived that the control plane must refuse: too large, wrong schema (N-119). */
  | ({ readonly type: 'result.unacceptable'; readonly receiptDigest: Digest; readonly code: string } & Link)
  /** The machine replaced a refused result by a refusal record (N-119). */
  | ({ readonly type: 'result.replaced'; readonly receiptDigest: Digest } & Link)
  | { readonly type: 'command.cancel'; readonly by: Canceller }
  /** The lifetime of N-050 passed. */
  | { readonly type: 'command.expired' }
  /** The connection that leased it ended or was fenced (R59). */
  | { readonly type: 'connection.lost'; readonly epoch: number }
  /** After unknown: a chain that begins with this command's own lease and proves how it ended (N-118). */
  | {
      readonly type: 'receipt.late';
      readonly leasedDigest: Digest;
      /** Digest of the accepted receipt in that chain, null when it has none. */
      readonly acceptedDigest: Digest | null;
      readonly ending: Ending;
    };

/** Reasons with which a command refuses an event that its state knows. */
export type CommandRefusal = 'CONNECTION_FENCED' | 'RECEIPT_CHAIN_BROKEN' | 'ALREADY_CANCELLING';

/** Plain data of one command as the control plane keeps it. */
export type CommandContext = CommandInput & {
  /** Connection that was given the command; a result is believed from this one alone. */
  readonly epoch: number | null;
  readonly envelopeDigest: Digest | null;
  readonly leasedDigest: Digest | null;
  readonly acceptedDigest: Digest | null;
  /** Last statement of the chain, null until it is leased. */
  readonly headDigest: Digest | null;
  readonly cancelledBy: Canceller | null;
  readonly unknownBecause: UnknownReason | null;
  /** Side that refused, null where nobody did. */
  readonly gate: Gate | null;
  readonly code: string | null;
};

/** How a command ended. `late` says that it was unknown before. */
export type CommandOutput = {
  readonly commandId: string;
  readonly outcome: KnownOutcome;
  readonly gate: Gate | null;
  readonly code: string | null;
  /** Last statement of the chain, null where nobody leased the command. */
  readonly headDigest: Digest | null;
  readonly late: boolean;
};

/** What the control plane does after the transaction that stored the step. */
export type CommandActions = {
  /** Put the wish into the answer of the next control question (N-506). */
  readonly askMachineToCancel: undefined;
  /** Countersign the ending: from now on it is the fourth receipt. */
  readonly countersign: { readonly receiptDigest: Digest };
  /** Answer RESULT_REFUSED with this code (N-119). */
  readonly refuseResult: { readonly code: string };
  /** Wake whoever waits for the outcome. */
  readonly tellWaiter: { readonly outcome: Outcome };
  readonly refuse: { readonly code: CommandRefusal };
};

// The machine's side, run by execution.ts.

/** Phase of the ledger's last record of a command (N-117); `received` has no record yet. */
export type Phase = 'received' | 'accepted-pending' | 'started-pending' | 'executing' | 'result-pending';

/** One command as the daemon verified it, or as its ledger recalls it after a restart. */
export type ExecutionInput = {
  readonly commandId: string;
  readonly runId: string;
  /** Key of the operation, such as `file.read`. */
  readonly operation: string;
  readonly envelopeDigest: Digest;
  /** Connection that delivered it. */
  readonly epoch: number;
  /** Longest run time, in ms. */
  readonly maximumRuntimeMs: number;
  readonly phase: Phase;
  /** What the ledger's result record says; null in every phase but `result-pending`. */
  readonly ended: Ended | null;
  /** True if that record is the replacement of a refused result (N-119). */
  readonly replaced: boolean;
  /** A cancel overtook the command (N-506). */
  readonly cancelled: boolean;
};

/** Codes with which an execution itself ends a command before its start; a code of the gate or of a helper stands as it came. */
export const executionCodes = [
  'CANCELLED_BEFORE_START',
  'CONNECTION_FENCED',
  'CONTROL_SILENT',
  'DAEMON_STOPPED',
  'GATE_UNAVAILABLE',
  'LEDGER_UNAVAILABLE',
  'RESTARTED',
] as const;
export type ExecutionCode = (typeof executionCodes)[number];

/** How an execution ended on this machine, before the control plane knows. */
export type Ended = {
  readonly outcome: Outcome;
  readonly code: string | null;
  readonly resultDigest: Digest | null;
};

/** What the machine's gate answers. */
export type Verdict =
  | { readonly permitted: true }
  | { readonly permitted: false; readonly outcome: 'refused' | 'expired'; readonly code: string };

/**
 * Contract of `checkGate`: the machine's own gate, with its own catalogue, policy, limits and ledger (R33); asked before `accepted`
 * and again before `started`. A rejection counts as a refusal.
 */
export type CheckGate = {
  readonly input: { readonly commandId: string; readonly step: 'accept' | 'start' };
  readonly output: Verdict;
};

/**
 * Contract of `recordPhase`: the ledger record, which is the signed receipt, is durable when it resolves; sending it does not delay
 * the next step. Rejects when the ledger is damaged or unwritable (N-115).
 */
export type RecordPhase = {
  readonly input: { readonly commandId: string; readonly phase: 'accepted-pending' | 'started-pending' };
  readonly output: { readonly durable: true };
};

/**
 * Contract of `runOperation`: the side effect, once, with the command id as idempotency key; its output is how it truly ended, also
 * after a stop. Rejects when that cannot be known, such as when the helper died.
 */
export type RunOperation = {
  readonly input: { readonly commandId: string; readonly operation: string };
  readonly output: Ended;
};

/** Contract of `stopOperation`: asks the helper on its own lane to stop; `runOperation` then ends as it truly was (N-505). */
export type StopOperation = {
  readonly input: { readonly commandId: string; readonly reason: StopReason };
  readonly output: { readonly asked: true };
};

/**
 * Contract of `askOutcome`: how an operation that this process began truly ended, waited for within the operation's own limit; runs
 * nothing. Rejects when nobody knows.
 */
export type AskOutcome = {
  readonly input: { readonly commandId: string; readonly operation: string };
  readonly output: Ended;
};

/** Contract of `recordResult`: the record of the ending, with its receipt, is durable when it resolves. */
export type RecordResult = {
  readonly input: { readonly commandId: string; readonly ended: Ended; readonly started: boolean };
  readonly output: { readonly durable: true };
};

/** Contract of `deliverResult`: sends the recorded ending, with its old chain where `late`; rejects when no answer came. */
export type DeliverResult = {
  readonly input: { readonly commandId: string; readonly late: boolean };
  readonly output: { readonly answer: 'acknowledged' } | { readonly answer: 'refused'; readonly code: string };
};

/** Contract of `recordReplacement`: the refusal record that stands in for a refused result is durable when it resolves (N-119). */
export type RecordReplacement = {
  readonly input: { readonly commandId: string; readonly code: string };
  readonly output: { readonly durable: true };
};

/** Why a running operation is asked to stop. */
export type StopReason = 'cancelled' | 'runtime-passed' | 'control-lost' | 'daemon-stopping';

/** What an execution hears from the daemon; each may come again and changes nothing then. */
export type ExecutionEvent =
  /** Somebody wants it ended (N-506). */
  | { readonly type: 'execution.cancel' }
  /** The connection that delivered it is fenced or gone: what has not started does not start any more. */
  | { readonly type: 'execution.fenced' }
  /** Stop now: no valid control answer for 60 s, or the daemon is stopping. */
  | { readonly type: 'execution.stop'; readonly reason: 'control-lost' | 'daemon-stopping' }
  /** Its turn within its run and within the limits: it may start (N-509). */
  | { readonly type: 'execution.start' }
  /** A connection stands: an undelivered ending is sent. */
  | { readonly type: 'execution.connected' };

/** Progress for the daemon: each phase of the ledger as it is reached. */
export type ExecutionEmitted = { readonly type: 'execution.phase'; readonly commandId: string; readonly phase: Phase };

/** Plain data of one execution. */
export type ExecutionContext = {
  readonly commandId: string;
  readonly runId: string;
  readonly operation: string;
  readonly epoch: number;
  readonly maximumRuntimeMs: number;
  /** Phase that the input named. */
  readonly recalled: Phase;
  /** True once the ledger says `started`: from here a side effect may exist. */
  readonly started: boolean;
  /** Why it must not start any more, null while it may. */
  readonly withdrawn: Ended | null;
  /** Last reason to stop; `cancelled` before one is given. */
  readonly stopReason: StopReason;
  readonly ended: Ended;
  readonly replaced: boolean;
  /** False between two connections. */
  readonly connected: boolean;
  /** True once the connection that delivered it is over: its ending is a late receipt. */
  readonly late: boolean;
};

/** How an execution closed on this machine. */
export type ExecutionOutput = Ended & { readonly commandId: string; readonly runId: string };
