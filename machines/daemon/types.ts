import type { ExecutionInput, ExecutionOutput } from '../command/types.ts';

/** What a daemon knows at its start; a restart never restores a snapshot, it recovers from the ledger. */
export type DaemonInput = { readonly executorId: string };

/** Why a daemon accepts nothing until a person ran `repair`. */
export type DaemonFault =
  | 'LEDGER_DAMAGED'
  | 'JOURNAL_DAMAGED'
  | 'STATE_COPIED'
  /** The control plane holds this executor in error, whatever this machine knows of itself (N-504). */
  | 'EXECUTOR_IN_ERROR'
  | 'ROLE_VIOLATED'
  | 'GUESTS_NOT_STOPPED'
  | 'EXECUTION_BROKEN';

/** Why a daemon ends. */
export type StopCause = 'asked' | 'revoked';

/** Contract of `recoverPromotion`: every journal is completed or rolled back (N-530). Rejects where it cannot be done now, and is asked again. */
export type RecoverPromotion = { readonly input: undefined; readonly output: RecoverAnswer };

/** What a recovery came to: every journal is settled, or there is one that only a person can settle. */
export type RecoverAnswer = { readonly answer: 'settled' | 'needs-person' };

/**
 * Contract of `openLedger`: the ledger is read and whole; its open commands come back with their phases. Rejects when it is damaged
 * or unwritable (N-503).
 */
export type OpenLedger = {
  readonly input: { readonly executorId: string };
  readonly output: { readonly open: readonly ExecutionInput[] };
};

/** Contract of `connect`: one fresh, signed handshake with the ledger's head (design section 5). Rejects when there was no answer. */
export type Connect = {
  readonly input: { readonly executorId: string; readonly attempt: number };
  readonly output: ConnectAnswer;
};

/** What the control plane answers to a handshake. */
export type ConnectAnswer =
  | { readonly answer: 'connected'; readonly epoch: number }
  | { readonly answer: 'revoked' }
  /** The head that was shown is not the last acknowledged one nor its continuation (N-504). */
  | { readonly answer: 'state-copied' }
  /** The head fits, and the control plane takes nothing from this executor until a person repaired it: it met a copy of it. */
  | { readonly answer: 'in-error' };

/** Contract of `stopGuests`: every guest session is stopped; resolves at once where there is none. Rejects when one may still run (N-206). */
export type StopGuests = { readonly input: undefined; readonly output: { readonly stopped: number } };

/** Contract of `reportFault`: the control plane is told where a connection stands, which is closed then; never rejects for its absence. */
export type ReportFault = {
  readonly input: { readonly fault: DaemonFault };
  readonly output: { readonly told: boolean };
};

/** Contract of `releaseLease`: goodbye said where a connection stands, ledger closed, lock let go (N-223). */
export type ReleaseLease = {
  readonly input: { readonly cause: StopCause };
  readonly output: { readonly released: true };
};

/** How the control plane says that this executor stands. */
export type Standing = 'accepting' | 'paused' | 'draining';

/** Facts and wishes that a daemon can meet. */
export type DaemonEvent =
  /** A valid answer, signed over this daemon's nonce, came on the control lane. */
  | { readonly type: 'control.answered'; readonly standing: Standing }
  /** The control plane raised the epoch: this connection is over (N-205). */
  | { readonly type: 'control.fenced' }
  | { readonly type: 'control.revoked' }
  /** Cancel of a command; it may overtake the command and is repeated until the command has ended (N-506). */
  | { readonly type: 'control.cancel'; readonly commandId: string }
  /** A verified envelope came on the work lane. */
  | { readonly type: 'work.received'; readonly execution: ExecutionInput }
  /** The scheduler gives a command its turn within its run and the limits (N-509). */
  | { readonly type: 'work.turn'; readonly commandId: string }
  /** The connection ended without a word. */
  | { readonly type: 'connection.lost' }
  /** A role broke the protocol or died of SIGSYS (design section 2 rule 6). */
  | { readonly type: 'role.violated'; readonly role: string }
  /** The ledger could not be written. */
  | { readonly type: 'ledger.damaged' }
  /** A termination signal or the owner's CLI. */
  | { readonly type: 'daemon.stop' }
  /** A person ran `repair`. */
  | { readonly type: 'daemon.repaired' }
  /** A command that this daemon spawned closed. */
  | {
      readonly type: `xstate.done.actor.command-${string}`;
      readonly actorId: string;
      readonly output: ExecutionOutput;
    }
  /** A command that this daemon spawned threw: a bug. */
  | { readonly type: `xstate.error.actor.command-${string}`; readonly actorId: string; readonly error: unknown };

/** Progress for the composition root, which shows it to the owner. */
export type DaemonEmitted =
  | { readonly type: 'daemon.connected'; readonly epoch: number }
  | { readonly type: 'daemon.retrying'; readonly attempt: number }
  | { readonly type: 'daemon.faulted'; readonly fault: DaemonFault }
  /** Teardown takes longer than its budget; it is never forced (N-225). */
  | { readonly type: 'daemon.stop-overdue' }
  /** The same envelope came again: its receipts are sent again (N-114). */
  | { readonly type: 'daemon.work-repeated'; readonly commandId: string }
  /** Nothing was recorded or run: answer this delivery by the machine's refusal. */
  | { readonly type: 'daemon.work-refused'; readonly commandId: string; readonly code: 'EXECUTOR_DRAINING' };

/** Plain data of one daemon. */
export type DaemonContext = {
  readonly executorId: string;
  /** Epoch of the current connection, 0 before the first. */
  readonly epoch: number;
  /** Connections tried since the last that held. */
  readonly attempt: number;
  /** Commands that have not closed, in order of arrival. */
  readonly held: readonly string[];
  /** Cancels that came before their command, the newest 1,024. */
  readonly overtaken: readonly string[];
  /** Commands whose turn came while the control plane was silent. */
  readonly turns: readonly string[];
  readonly fault: DaemonFault | null;
  readonly cause: StopCause;
};

/** How a daemon ended. */
export type DaemonOutput = { readonly outcome: StopCause };
