/*
 * What holds of runs, candidates and bindings, pure.
 */

/** How long a candidate's handle may be used, in ms; it serves one binding (N-098). */
export const CANDIDATE_MS = 300_000;
/** How often being heard is noted in the store, in ms. */
export const NOTED_MS = 60_000;
/** Age of that note after which a run that an agent opened ends, in ms: half an hour of silence, and how old a note may be. */
export const SILENT_AFTER_MS = 1_800_000 + NOTED_MS;

/** Why a run ended. */
export type RunEnd = 'stopped' | 'closed-by-client' | 'silent' | 'agent-ended';

/** Who and what a handle was resolved for. */
export interface CandidateFor {
  readonly run: string;
  readonly person: string;
  readonly agent: string | null;
  readonly operation: string;
}

/** What is stored of a handle. */
export interface StoredCandidate extends CandidateFor {
  readonly expiresAt: number;
  readonly usedAt: number | null;
}

/** What becomes of a presented handle. */
export type CandidateJudgement = 'bind' | 'repeat' | 'CANDIDATE_UNKNOWN' | 'CANDIDATE_FOREIGN' | 'CANDIDATE_EXPIRED';

/** Judges a handle that somebody presents; used before, it can only lead to the binding that it made. */
export function judgeCandidate(
  stored: StoredCandidate | undefined,
  presented: CandidateFor,
  now: number,
): CandidateJudgement {
  if (!stored) return 'CANDIDATE_UNKNOWN';
  const own =
    stored.run === presented.run &&
    stored.person === presented.person &&
    stored.agent === presented.agent &&
    stored.operation === presented.operation;
  if (!own) return 'CANDIDATE_FOREIGN';
  if (stored.usedAt !== null) return 'repeat';
  return now > stored.expiresAt ? 'CANDIDATE_EXPIRED' : 'bind';
}

/** Of several machines the one that offers most of the wanted keys; the earlier one where two offer as many. */
export function chooseMachine<Machine>(
  offers: readonly { readonly machine: Machine; readonly keys: number }[],
): Machine | undefined {
  let best: { readonly machine: Machine; readonly keys: number } | undefined;
  for (const offer of offers) if (offer.keys > (best?.keys ?? 0)) best = offer;
  return best?.machine;
}
