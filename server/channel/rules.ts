/*
 * What a machine's statements say about its own past, pure: an old copy or a clone is told from an honest machine by the ledger
 * that it states and by the counter of its key (S-208, N-504).
 */
import type { Statement } from '../../helpers/protocol/statements.ts';

/** How far the clocks of machine and control plane may differ, in ms (N-058). */
export const SKEW_MS = 60_000;
/** How long a challenge may be answered, in ms; it serves once (N-059). */
export const CHALLENGE_MS = 60_000;

/** What the control plane remembers of a machine. */
export interface Remembered {
  readonly ledgerCount: number;
  /** 64 hexadecimal digits. */
  readonly ledgerHead: string;
  readonly guard: number;
}

/** What a machine that never proved itself is remembered by. */
export const nothingRemembered: Remembered = { ledgerCount: 0, ledgerHead: '0'.repeat(64), guard: 0 };

/** The fields of a proof that speak of the past; digests as hexadecimal digits. */
export interface Stated {
  readonly guard: number;
  readonly ledgerCount: number;
  readonly ledgerHead: string;
  readonly acknowledgedCount: number;
  readonly acknowledgedHead: string;
}

/** Verdict over a proof's ledger and counter: what stands in `control.session` when it is not the ordinary one. */
export function judgePast(
  stated: Stated,
  remembered: Remembered,
  challenged: number,
): Extract<Statement<'control.session'>['verdict'], 'ledger-behind' | 'ledger-forked'> | undefined {
  if (stated.ledgerCount < remembered.ledgerCount) return 'ledger-behind';
  if (stated.acknowledgedCount !== challenged) return 'ledger-forked';
  if (stated.acknowledgedHead !== remembered.ledgerHead) return 'ledger-forked';
  if (stated.ledgerCount === remembered.ledgerCount && stated.ledgerHead !== remembered.ledgerHead)
    return 'ledger-forked';
  return stated.guard <= remembered.guard ? 'ledger-forked' : undefined;
}

/** What a proof is judged by. */
export interface ProofRow {
  readonly state: string;
  readonly epoch: number;
  /** Highest descriptor revision that ever arrived. */
  readonly latestRevision: number;
}

/** Verdict over a proof whose signature and challenge hold, and the epoch that its connection gets. */
export function judgeProof(
  row: ProofRow,
  proof: Stated & { readonly repaired: boolean; readonly capabilityRevision: number },
  remembered: Remembered,
  challengedCount: number,
): { readonly verdict: Statement<'control.session'>['verdict']; readonly epoch: number } {
  if (row.state === 'revoked') return { verdict: 'revoked', epoch: Math.max(1, row.epoch) };
  const copied = judgePast(proof, remembered, challengedCount);
  const failing = row.state === 'error';
  if (copied) return { verdict: copied, epoch: row.epoch + (failing ? 0 : 1) };
  if (failing && !proof.repaired) return { verdict: 'in-error', epoch: row.epoch };
  const verdict = proof.capabilityRevision > row.latestRevision ? 'descriptor-needed' : 'online';
  return { verdict, epoch: row.epoch + (failing ? 2 : 1) };
}

/** Whether a statement's time is near enough. */
export function isTimely(at: number, now: number): boolean {
  return Math.abs(at - now) <= SKEW_MS;
}

/** What is remembered after a further statement: the highest of each. */
export function remember(
  before: Remembered,
  stated: { readonly guard: number; readonly ledgerCount?: number; readonly ledgerHead?: string },
): Remembered {
  const { guard, ledgerCount, ledgerHead } = stated;
  const higher = ledgerCount !== undefined && ledgerHead !== undefined && ledgerCount > before.ledgerCount;
  return {
    guard: Math.max(before.guard, guard),
    ledgerCount: higher ? ledgerCount : before.ledgerCount,
    ledgerHead: higher ? ledgerHead : before.ledgerHead,
  };
}

/** What a control answer says of an executor whose row is this, to the connection of `epoch`. */
export function standingOf(
  row: { readonly state: string; readonly epoch: number; readonly accepting: boolean },
  epoch: number,
): Statement<'control.answer'>['standing'] {
  if (row.state === 'revoked') return 'revoked';
  if (row.epoch !== epoch || (row.state !== 'online' && row.state !== 'draining')) return 'fenced';
  if (row.state === 'draining') return 'draining';
  return row.accepting ? 'accepting' : 'paused';
}
