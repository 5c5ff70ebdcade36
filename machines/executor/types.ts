import type { Digest } from '../values.ts';

/** What the control plane knows when it creates an executor (N-012). */
export type ExecutorInput = {
  readonly executorId: string;
};

/** Why an executor is in `error` (D-11, N-503, N-504, N-534). */
export type ExecutorFault =
  | 'ledger-damaged'
  | 'journal-damaged'
  | 'state-copied'
  | 'protocol-violated'
  | 'drain-failed';

/** Why an executor was ended. */
export type RevocationReason = 'disconnected' | 'deleted' | 'drained' | 'replaced' | 'ended-by-organization-owner';

/** Facts and wishes that a lifecycle can meet; who may send a wish is decided before (server/executors/rules.ts). */
export type ExecutorEvent =
  /** Both sides confirmed the pairing of this key (N-065, N-076). */
  | { readonly type: 'pairing.confirmed'; readonly fingerprint: Digest }
  /** The daemon proved its key over a fresh challenge: a new connection (N-059). */
  | { readonly type: 'executor.proved'; readonly fingerprint: Digest }
  /** Sixty seconds without an authenticated frame, or the daemon said goodbye (N-210). */
  | { readonly type: 'executor.silent' }
  | { readonly type: 'executor.pause' }
  | { readonly type: 'executor.resume' }
  | { readonly type: 'executor.drain' }
  /** Nothing is held any longer. */
  | { readonly type: 'executor.drained' }
  /** The daemon reported, or the control plane saw, damaged or copied local state (D-11, N-504). */
  | { readonly type: 'executor.damaged'; readonly fault: ExecutorFault }
  /** A person ran `repair` on the machine and the daemon proved it (D-11). */
  | { readonly type: 'executor.repaired' }
  | { readonly type: 'executor.disconnect'; readonly by: 'administrator' | 'organization-owner' }
  | { readonly type: 'executor.delete' }
  /** A replacement pairing, signed by both keys, was confirmed (N-079). */
  | { readonly type: 'executor.replaced' }
  /** A grant, share or assignment changed (D-16). */
  | { readonly type: 'access.changed' }
  /** A person confirmed or refused a descriptor revision (N-205). */
  | { readonly type: 'descriptor.reviewed' };

/** Reasons with which the lifecycle refuses an event that its state knows. */
export type ExecutorRefusal =
  | 'PAIRING_NOT_CONFIRMED'
  | 'FINGERPRINT_NOT_CONFIRMED'
  | 'ALREADY_CONFIRMED'
  | 'ALREADY_PAUSED'
  | 'NOT_PAUSED'
  | 'ALREADY_DELETED'
  /** An administrator's disconnection before pairing: nothing is connected, deletion is the way off the list (N-203). */
  | 'STATE_TRANSITION_INVALID';

/** Plain data of one executor; the state beside it is one of the six of N-198. */
export type ExecutorContext = {
  readonly executorId: string;
  /** Number of the current authenticated connection; only rises (N-205). */
  readonly epoch: number;
  /** False while paused; survives reconnection, draining and error (D-5, N-201). */
  readonly accepting: boolean;
  /** False once deleted: the record is off the list, its audit history stays (N-203). */
  readonly listed: boolean;
  /** Fingerprint that both sides confirmed, null before that (N-066). */
  readonly fingerprint: Digest | null;
  readonly fault: ExecutorFault | null;
  readonly revokedBecause: RevocationReason | null;
};

/** What the control plane does after the transaction that stored the step, since these machines emit nothing; the parameters of each action by its name. */
export type ExecutorActions = {
  /** Refuse every frame of a lower epoch and end its held questions (N-205, N-508). */
  readonly fenceConnections: { readonly epoch: number };
  /** Forget the key, so that no challenge can be answered again (N-202, D-6). */
  readonly invalidateCredentials: undefined;
  /** End every candidate handle of this executor (N-202). */
  readonly invalidateHandles: undefined;
  /** Lease nothing more (N-201, N-204). */
  readonly stopLeasing: undefined;
  /** Delete the sealed arguments and results (N-552). */
  readonly eraseSealedPayloads: undefined;
  /** The event is refused with this code; nothing changed. */
  readonly refuse: { readonly code: ExecutorRefusal };
};
