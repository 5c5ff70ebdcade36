/*
 * A machine's proof in a simulated world, as server/channel/session.ts judges it: read, judged, signed, and judged again by the
 * transaction that lets it in, since the store may have changed meanwhile.
 */
import { CHALLENGE_MS } from '../../../server/channel/rules.ts';
import { stateName } from '../../../server/commands/rules.ts';
import type { ControlPlane, Session } from './control-plane.ts';
import type { Transaction } from './database.ts';
import { proofRow } from './facts.ts';
import type { Proof } from './messages.ts';
import { executorOf, loseCommands, stepExecutor } from './server-steps.ts';
import type { ExecutorRow } from './tables.ts';

type Judged = ReturnType<ControlPlane['setting']['rules']['judgeProof']>;

/** How often a proof is judged anew because something changed between signature and transaction. */
const ATTEMPTS = 3;

/** Makes a challenge; it names how far the machine's ledger is acknowledged. */
export function challenge(plane: ControlPlane, session: Session, id: number, executor: string): void {
  const count = plane.database.get('executors', executor)?.remembered.ledgerCount ?? 0;
  session.challenged = { executor, count, at: plane.setting.timeline.now };
  plane.answer(session, id, { answer: 'challenge', acknowledgedCount: count });
}

/** Judges a proof and answers it; whoever is let in has the machine's connection from then on. */
export function prove(plane: ControlPlane, session: Session, id: number, proof: Proof, attempts = ATTEMPTS): void {
  const { rules, timeline, epochMs } = plane.setting;
  const { challenged } = session;
  const row = plane.database.get('executors', proof.executor);
  const refuse = (code: string): void => plane.refuse(session, id, code, true);
  if (!row || challenged?.executor !== proof.executor) return refuse('PROOF_INVALID');
  if (timeline.now - challenged.at > CHALLENGE_MS) return refuse('CHALLENGE_EXPIRED');
  const at = epochMs + timeline.now;
  if (!rules.isTimely(proof.at, at)) return refuse('CLOCK_SKEW');
  if (attempts === 0) return refuse('UNAVAILABLE');
  if (row.remembered.ledgerCount !== challenged.count) return refuse('CHALLENGE_EXPIRED');
  const judged = rules.judgeProof(proofRow(row), proof, row.remembered, challenged.count);
  const { verdict, epoch } = judged;
  const isOnline = verdict === 'online' || verdict === 'descriptor-needed';
  const say = (): void => {
    plane.answer(session, id, { answer: 'session', verdict, epoch, at });
    if (!isOnline) plane.close(session);
  };
  plane.signed(() => {
    // Nothing changes by these two: what holds already is said to a machine that asks.
    if (verdict === 'revoked' || verdict === 'in-error') return say();
    plane.database.write(plane, row.id, {
      body: (tx) => enter(plane, tx, row, proof, judged),
      refused: () => refuse('PROOF_INVALID'),
      after: (entered) => {
        if (!entered) return prove(plane, session, id, proof, attempts - 1);
        if (isOnline && !session.link.isOver('server')) plane.join(session, row.id, epoch);
        say();
        plane.changed(row.id);
      },
    });
  });
}

/** The transaction of a proof; false when the executor is no longer the one that was judged. */
function enter(plane: ControlPlane, tx: Transaction, judgedOn: ExecutorRow, proof: Proof, judged: Judged): boolean {
  const { setting } = plane;
  const { id } = judgedOn;
  const now = executorOf(tx, id);
  const state = stateName(now.stored.value);
  const same =
    now.stored.context.epoch === judgedOn.stored.context.epoch &&
    state === stateName(judgedOn.stored.value) &&
    now.remembered.guard === judgedOn.remembered.guard;
  if (!same) return false;
  if (judged.verdict === 'ledger-behind' || judged.verdict === 'ledger-forked') {
    if (state !== 'error') stepExecutor(setting, tx, id, { type: 'executor.damaged', fault: 'state-copied' });
  } else {
    if (state === 'error') stepExecutor(setting, tx, id, { type: 'executor.repaired' });
    setting.watch.admitted(proof, now.remembered);
    const fingerprint = now.stored.context.fingerprint ?? '';
    const row = stepExecutor(setting, tx, id, { type: 'executor.proved', fingerprint });
    tx.put('executors', { ...row, remembered: setting.rules.remember(row.remembered, proof) });
  }
  loseCommands(plane, tx, id, judged.epoch);
  return true;
}
