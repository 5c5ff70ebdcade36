/** SHA-256 of canonical bytes, 64 lower-case hexadecimal digits. */
export type Digest = string;

/** Side whose gate said no: the caller is always told which (N-125, R39). */
export type Gate = 'control-plane' | 'machine';

/** How one command truly ended; `unknown` says that it may or may not have happened (N-116). */
export type Outcome = 'succeeded' | 'failed' | 'refused' | 'cancelled' | 'expired' | 'unknown';

/** An outcome that proves something, as a late receipt must (N-118). */
export type KnownOutcome = Exclude<Outcome, 'unknown'>;

/** A failure that an actor reports as a value, so that a machine can tell a lost answer from a refusal without reading an Error. */
export type Refused = { readonly refused: true; readonly code: string };
