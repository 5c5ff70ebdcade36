import type { Digest, Refused } from '../values.ts';

/** Which of the two flows: the challenge for operators (N-070) or the eight-digit code with two sides (N-073). */
export type PairingFlow = 'enrolment' | 'code';

/** Who ended a pairing before it was confirmed. */
export type PairingSide = 'person' | 'machine';

// The control plane's side, kept by machine.ts.

/** What the control plane knows when a pairing begins: for `code` the machine's first request, for `enrolment` the person's. */
export type PairingInput = {
  readonly pairingId: string;
  readonly flow: PairingFlow;
  /** Digest of the machine's signed request; null in the enrolment flow until it arrives. */
  readonly requestDigest: Digest | null;
  /** Fingerprint of the machine's public key; null like the request. */
  readonly fingerprint: Digest | null;
  /** Executor that this pairing replaces, signed by its old key too, or null (N-079). */
  readonly replaces: string | null;
};

/** Facts and wishes; signatures, entitlement and rate limits are checked before one of these exists. */
export type PairingEvent =
  /** Enrolment: the machine sent its request, proof valid (N-072). */
  | { readonly type: 'pairing.submitted'; readonly requestDigest: Digest; readonly fingerprint: Digest }
  /** Code: the machine asked again with the same request id (N-074). */
  | { readonly type: 'pairing.repeated'; readonly requestDigest: Digest }
  /** Code: the signed-in person chose label, scope and team, repeating the fingerprint (N-075). */
  | { readonly type: 'pairing.claimed'; readonly fingerprint: Digest; readonly claimDigest: Digest }
  /** Enrolment: the person compared and confirmed the fingerprint (N-065). */
  | { readonly type: 'pairing.confirmed-by-person'; readonly fingerprint: Digest }
  /** Code: the person at the machine confirmed with the key of `fingerprint`; `current…` is rebuilt from the rows in the same transaction (N-077). */
  | {
      readonly type: 'pairing.confirmed-by-machine';
      readonly fingerprint: Digest;
      readonly claimDigest: Digest;
      readonly currentClaimDigest: Digest;
    }
  | { readonly type: 'pairing.reject'; readonly by: PairingSide }
  | { readonly type: 'pairing.cancel'; readonly by: PairingSide }
  /** Ten minutes passed (N-071, N-073). */
  | { readonly type: 'pairing.expired' };

/** Reasons with which a pairing refuses an event that its state knows. */
export type PairingRefusal =
  | 'ENROLLMENT_USED'
  | 'FINGERPRINT_NOT_CONFIRMED'
  | 'REQUEST_CONFLICT'
  | 'CLAIM_CONFLICT'
  | 'CLAIM_CHANGED';

/** Plain data of one pairing. */
export type PairingContext = PairingInput & {
  readonly claimDigest: Digest | null;
  readonly endedBy: PairingSide | null;
};

/** How a pairing ended; `by` is the side that refused or cancelled, null for the other outcomes. */
export type PairingOutput = {
  readonly pairingId: string;
  readonly outcome: 'confirmed' | 'refused' | 'cancelled' | 'expired';
  readonly replaces: string | null;
  readonly by: PairingSide | null;
};

/** What the control plane does after the transaction that stored the step. */
export type PairingActions = {
  /** Give the stored answer again, byte for byte, its expiry unchanged (N-063, N-074). */
  readonly repeatAnswer: undefined;
  /**
   * Tell the lifecycle of the executor that both sides confirmed this key and revoke the executor that it replaces, if any, in the
   * same transaction (N-079).
   */
  readonly activateExecutor: { readonly fingerprint: Digest; readonly replaces: string | null };
  /** Delete the verifier of the code or challenge. */
  readonly forgetVerifier: undefined;
  readonly refuse: { readonly code: PairingRefusal };
};

// The machine's side, run by joining.ts.

/** A request that is already on disk: a restarted daemon sends the same bytes again (N-062, N-063). */
export type PreparedRequest = {
  readonly requestId: string;
  readonly requestDigest: Digest;
  readonly fingerprint: Digest;
};

/** What the owner's CLI asked for. */
export type JoiningInput = {
  readonly flow: PairingFlow;
  /** Executor that this pairing replaces, or null. */
  readonly replaces: string | null;
  /** The request of an earlier start that has no answer yet, or null. */
  readonly prepared: PreparedRequest | null;
};

/** What the person at the machine is shown before confirming (N-076). */
export type Claim = {
  readonly claimDigest: Digest;
  /** Organisation, team, scope and label by the name under which they are shown; the digest covers them. */
  readonly facts: Readonly<Record<string, string>>;
};

/** The control plane's answer to the request: the offer of a pairing. */
export type Offer = {
  readonly pairingId: string;
  /** Eight digits to type on the page; null in the enrolment flow. Never in a trace. */
  readonly digits: string | null;
  /** Fingerprint of the command key as the control plane states it now (N-501). */
  readonly commandKeyFingerprint: Digest;
  /** Life left when the answer arrived, in ms. */
  readonly remainingMs: number;
};

/** Where the pairing stands, as one poll answers. */
export type Standing =
  | { readonly standing: 'waiting' }
  | { readonly standing: 'claimed'; readonly claim: Claim }
  | { readonly standing: 'confirmed'; readonly executorId: string; readonly commandKeyFingerprint: Digest }
  | { readonly standing: 'refused' | 'cancelled'; readonly by: PairingSide }
  | { readonly standing: 'expired' };

/** Contract of `prepareRequest`: key made, request built and signed by `key-store`; nothing has been sent. */
export type PrepareRequest = {
  readonly input: { readonly flow: PairingFlow; readonly replaces: string | null };
  readonly output: PreparedRequest | Refused;
};
/** Contract of `persistRequest`: the exact signed bytes are on disk, file and folder flushed, when it resolves (N-062). */
export type PersistRequest = { readonly input: PreparedRequest; readonly output: { readonly durable: true } };
/** Contract of `sendRequest`: sends the persisted bytes; rejects when no answer came, so that they are sent again. */
export type SendRequest = { readonly input: { readonly requestId: string }; readonly output: Offer | Refused };
/** Contract of `askStanding`: one signed poll; rejects when no answer came. */
export type AskStanding = { readonly input: { readonly pairingId: string }; readonly output: Standing };
/** Contract of `sendConfirmation`: signs the claim's digest with the new key and sends it; rejects when no answer came (N-077). */
export type SendConfirmation = {
  readonly input: { readonly pairingId: string; readonly claimDigest: Digest };
  readonly output: Standing | Refused;
};
/** Contract of `sendEnding`: tells the control plane that this side cancelled or rejected. */
export type SendEnding = {
  readonly input: { readonly pairingId: string; readonly ending: 'cancel' | 'reject' };
  readonly output: { readonly told: true };
};
/** Contract of `savePairing`: paired state and the pinned command key are durable when it resolves (N-077). */
export type SavePairing = {
  readonly input: {
    readonly requestId: string;
    readonly executorId: string;
    readonly fingerprint: Digest;
    readonly commandKeyFingerprint: Digest;
    readonly replaces: string | null;
  };
  readonly output: { readonly durable: true };
};
/** Contract of `dropRequest`: removes the pending record and, unless paired, the key that was made for it. */
export type DropRequest = {
  readonly input: { readonly requestId: string | null; readonly keepKey: boolean };
  readonly output: { readonly dropped: true };
};

/** Wishes of the person at the machine. */
export type JoiningEvent =
  | { readonly type: 'claim.confirm'; readonly claimDigest: Digest }
  | { readonly type: 'claim.reject' }
  | { readonly type: 'joining.cancel' };

/** Progress for the CLI, which prints it; `joining.offered` holds the digits and goes to the owner's terminal alone. */
export type JoiningEmitted =
  | {
      readonly type: 'joining.offered';
      readonly digits: string | null;
      readonly fingerprint: Digest;
      readonly commandKeyFingerprint: Digest;
    }
  | { readonly type: 'joining.claimed'; readonly claim: Claim }
  /** The claim is no longer what the person saw: shown again, to be confirmed anew (N-077). */
  | { readonly type: 'joining.claim-changed'; readonly claim: Claim }
  | { readonly type: 'joining.retrying'; readonly attempt: number };

/** Reasons with which the joining side refuses an event that its state knows. */
export type JoiningRefusal = 'CLAIM_CHANGED' | 'ALREADY_CONFIRMED';

/** Own codes of a joining that ended without a pairing; a code of the control plane stands as it came. */
export type JoiningCode =
  | 'REQUEST_NOT_PREPARED'
  | 'STATE_UNWRITABLE'
  | 'COMMAND_KEY_CHANGED'
  | 'ENDED_HERE'
  | 'PAIRING_REFUSED'
  | 'PAIRING_CANCELLED'
  | 'PAIRING_EXPIRED';

/** Plain data of one joining. */
export type JoiningContext = {
  readonly flow: PairingFlow;
  readonly replaces: string | null;
  readonly prepared: PreparedRequest | null;
  readonly offer: Offer | null;
  readonly claim: Claim | null;
  readonly executorId: string | null;
  /** Sends without an answer since the last one, for the waits between them. */
  readonly attempt: number;
  /** Which ending the person asked to tell the control plane. */
  readonly wish: 'cancel' | 'reject';
  readonly ending: JoiningOutput['outcome'];
  readonly code: string | null;
};

/** How a joining ended on this machine; `executorId` stands where it is paired, `code` where it is not. */
export type JoiningOutput = {
  readonly outcome: 'paired' | 'refused' | 'cancelled' | 'expired' | 'failed';
  readonly executorId: string | null;
  readonly code: string | null;
};

/** What the joining side does when it refuses a wish. */
export type JoiningActions = {
  readonly refuse: { readonly code: JoiningRefusal };
};
