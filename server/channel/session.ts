/*
 * A session begins with a fresh challenge, signed by the paired key together with the head of the machine's ledger.
 *
 * INVARIANT 1  A challenge serves one proof of one connection within a minute (N-059).
 * INVARIANT 2  A machine whose past contradicts what is remembered of it is never online: the executor goes to `error`, and both
 *              sides are told, the copy and, when it proves itself again, the original (N-504). A person's `repair` alone leads back.
 * INVARIANT 3  The proof raises the epoch; what an earlier connection was given and did not end is unknown in the same
 *              transaction (R59).
 */
import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import { admitKey } from '../../helpers/protocol/signed.ts';
import type { AdmittedKey, Signed } from '../../helpers/protocol/signed.ts';
import { openStatement } from '../../helpers/protocol/statements.ts';
import type { MachineStatementType, Opened, Statement } from '../../helpers/protocol/statements.ts';
import { loseCommands, tellCancel } from '../commands/cancel.ts';
import type { CommandRow } from '../commands/store.ts';
import type { Work } from '../commands/work.ts';
import { stepExecutor } from '../executors/lifecycle.ts';
import { findExecutor, touchExecutor } from '../executors/store.ts';
import type { ExecutorRow } from '../executors/store.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import { ChannelRefused } from './refused.ts';
import { CHALLENGE_MS, isTimely, judgeProof } from './rules.ts';
import type { Remembered } from './rules.ts';
import { findRemembered, rememberStated } from './store.ts';

type Proof = Statement<'machine.session'>;
type Verdict = Statement<'control.session'>['verdict'];

/** How often a proof is judged anew because something changed between signature and transaction. */
const ATTEMPTS = 3;
/** Signs of life closer together than this are one, in ms. */
const TOUCH_MS = 5000;

/** A machine that proved its key: what every later statement of its connection is checked against. */
export class Proved {
  readonly executor: ExecutorId;
  readonly epoch: number;
  /** Guard of the newest heartbeat of this connection; one that is not above it is a replay. */
  heartbeatGuard = 0;
  #key: AdmittedKey;
  #touchedAt = 0;

  constructor(executor: ExecutorId, epoch: number, publicKey: Uint8Array) {
    this.executor = executor;
    this.epoch = epoch;
    this.#key = admitKey(publicKey);
  }

  /** Verifies, then parses; undefined for anything that the key did not sign in the shape of this type. */
  open<Type extends MachineStatementType>(type: Type, signed: Signed): Opened<Type> | undefined {
    try {
      return openStatement(type, this.#key, signed);
    } catch {
      // Signed, yet not in the shape of its type: for a receiver that is the same as not signed.
      return undefined;
    }
  }

  /** Whether a sign of life is worth a write: the last one is some seconds old. Counts this one. */
  isDue(now: number): boolean {
    if (now - this.#touchedAt < TOUCH_MS) return false;
    this.#touchedAt = now;
    return true;
  }

  /** The paired key was rotated under this very connection. */
  rotate(publicKey: Uint8Array): void {
    this.#key = admitKey(publicKey);
  }
}

/** A challenge that waits for its proof. */
export interface Challenge {
  readonly executor: ExecutorId;
  readonly challenge: Buffer;
  readonly acknowledgedCount: number;
  readonly at: number;
}

/** Makes a challenge. An executor that does not exist gets one too, and fails like a wrong key (R7). */
export async function challenge(work: Work, executor: ExecutorId): Promise<Challenge> {
  const { ledgerCount } = await findRemembered(work.store.read, executor);
  return { executor, challenge: work.random(32), acknowledgedCount: ledgerCount, at: work.clock.now() };
}

/** The answer to a proof, and the session it began where it began one. */
export interface ProofAnswer {
  readonly session: Signed;
  readonly proved: Proved | undefined;
}

/** Judges a proof. Throws ChannelRefused for one that is not the paired key's or not fresh. */
export async function prove(work: Work, challenged: Challenge, signed: Signed): Promise<ProofAnswer> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const row = await findExecutor(work.store.read, challenged.executor);
    const statement = openProof(row, challenged, signed);
    if (!row?.publicKey || !statement) throw invalid();
    const now = work.clock.now();
    if (now - challenged.at > CHALLENGE_MS)
      throw ended('CHALLENGE_EXPIRED', 'the challenge is older than a minute; ask anew');
    if (!isTimely(statement.at, now)) {
      const seconds = Math.round((statement.at - now) / 1000);
      throw ended('CLOCK_SKEW', `the machine's clock differs by ${seconds} s, allowed are 60; set it and try again`);
    }
    const answer = await attemptProof(work, challenged, row, row.publicKey, statement);
    if (answer) return answer;
  }
  throw ended('UNAVAILABLE', 'the executor changes at this moment; try again');
}

function openProof(row: ExecutorRow | undefined, challenged: Challenge, signed: Signed): Proof | undefined {
  if (!row?.publicKey) return undefined;
  const opened = new Proved(row.executor, 0, row.publicKey).open('machine.session', signed);
  if (opened?.statement.executor !== challenged.executor) return undefined;
  return challenged.challenge.equals(opened.statement.challenge) ? opened.statement : undefined;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

interface Judged {
  readonly verdict: Verdict;
  readonly epoch: number;
  readonly remembered: Remembered;
}

function judge(row: ExecutorRow, proof: Proof, remembered: Remembered, challenged: Challenge): Judged {
  const stated = { ...proof, ledgerHead: hex(proof.ledgerHead), acknowledgedHead: hex(proof.acknowledgedHead) };
  return { ...judgeProof(row, stated, remembered, challenged.acknowledgedCount), remembered };
}

/** One attempt: undefined when the store changed between the signature and the transaction. */
async function attemptProof(
  work: Work,
  challenged: Challenge,
  row: ExecutorRow,
  publicKey: Buffer,
  proof: Proof,
): Promise<ProofAnswer | undefined> {
  const { executor } = row;
  const remembered = await findRemembered(work.store.read, executor);
  // THREAT: a copy of the machine states the old head, which both have, while the newest record that is known is the other one's.
  if (remembered.ledgerCount !== challenged.acknowledgedCount)
    throw ended('CHALLENGE_EXPIRED', 'more of this ledger came to be known since the challenge; ask anew');
  const judged = judge(row, proof, remembered, challenged);
  const fields = {
    at: work.clock.now(),
    executor,
    nonce: proof.nonce,
    epoch: judged.epoch,
    acknowledgedCount: remembered.ledgerCount,
    acknowledgedHead: Buffer.from(remembered.ledgerHead, 'hex'),
    verdict: judged.verdict,
  };
  const [session] = await work.signer.sign([{ type: 'control.session', fields }]);
  if (!session) throw ended('UNAVAILABLE', 'the command key does not answer');
  // Nothing changes by these two: what holds already is said to a machine that asks.
  if (judged.verdict === 'revoked' || judged.verdict === 'in-error') return { session, proved: undefined };
  const lost = await work.store.write((tx) => enter(work, tx, row, proof, judged));
  if (!lost) return undefined;
  tellCancel(work, lost);
  work.wake.executor(executor);
  const isOnline = judged.verdict === 'online' || judged.verdict === 'descriptor-needed';
  return { session, proved: isOnline ? new Proved(executor, judged.epoch, publicKey) : undefined };
}

/** The transaction of a proof. Undefined when the executor is no longer the one that was judged. */
async function enter(
  work: Work,
  tx: Writer,
  row: ExecutorRow,
  proof: Proof,
  { verdict, epoch, remembered }: Judged,
): Promise<CommandRow[] | undefined> {
  const now = await findExecutor(tx, row.executor);
  const still = await findRemembered(tx, row.executor);
  if (now?.epoch !== row.epoch || now.state !== row.state || still.guard !== remembered.guard) return undefined;
  const { executor, fingerprint } = row;
  if (verdict === 'ledger-behind' || verdict === 'ledger-forked') {
    if (row.state !== 'error')
      await stepExecutor(work, tx, executor, { type: 'executor.damaged', fault: 'state-copied' });
    return loseCommands(work, tx, executor, epoch);
  }
  try {
    if (row.state === 'error') await stepExecutor(work, tx, executor, { type: 'executor.repaired' });
    await stepExecutor(work, tx, executor, { type: 'executor.proved', fingerprint: fingerprint ?? '' });
  } catch (cause) {
    if (cause instanceof Refusal) throw invalid();
    throw cause;
  }
  await rememberStated(tx, executor, proof);
  await touchExecutor(tx, executor, work.clock.now());
  return loseCommands(work, tx, executor, epoch);
}

function ended(code: ConstructorParameters<typeof ChannelRefused>[0], message: string): ChannelRefused {
  return new ChannelRefused(code, message, { ends: true });
}

function invalid(): ChannelRefused {
  return ended('PROOF_INVALID', 'no executor of this name proved itself with its paired key');
}
