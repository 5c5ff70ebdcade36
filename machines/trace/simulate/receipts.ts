/*
 * What a machine reports in a simulated world, as server/commands/receipts.ts and server/descriptors/submit.ts take it: receipts of one
 * command in one frame, judged by the rules that ship, and a further revision of what the machine offers.
 */
import { stateName } from '../../../server/commands/rules.ts';
import type { ChainLink } from '../../../server/commands/rules.ts';
import type { CommandEvent } from '../../command/types.ts';
import { begin, step } from '../../step.ts';
import type { ControlPlane, Session } from './control-plane.ts';
import { Refused } from './database.ts';
import type { Transaction } from './database.ts';
import { digestOf } from './digests.ts';
import type { Answer, Question, Receipt, Result } from './messages.ts';
import { executorOf, storeCommand } from './server-steps.ts';
import type { CommandRow, Revision } from './tables.ts';

type Frame = Extract<Question, { readonly ask: 'receipts' }>;
type Verdict = 'settled' | 'refused' | undefined;

/** Takes one frame of receipts; one that was taken before gets the same answer. */
export function takeReceipts(plane: ControlPlane, session: Session, id: number, frame: Frame): void {
  const known = plane.database.get('commands', frame.command);
  if (!known || known.executor !== session.executor || !frame.receipts.every((receipt) => isOwn(receipt, known)))
    return plane.refuse(session, id, 'RECEIPT_FOREIGN');
  plane.signed(() => {
    plane.database.write(plane, session.executor, {
      body: (tx) => take(plane, tx, session.epoch, frame),
      refused: (code) => plane.refuse(session, id, code, code === 'CONNECTION_FENCED'),
      after: (answer) => {
        plane.answer(session, id, answer);
        plane.changed(session.executor);
      },
    });
  });
}

function isOwn(receipt: Receipt, row: CommandRow): boolean {
  return receipt.executor === row.executor && receipt.command === row.id && receipt.epoch === row.epoch;
}

function take(plane: ControlPlane, tx: Transaction, epoch: number, frame: Frame): Answer {
  const { rules } = plane.setting;
  const before = tx.get('commands', frame.command);
  if (!before) throw new Refused('RECEIPT_FOREIGN');
  const { result, receipts } = frame;
  const failure = result?.acceptable === true ? result.failure : null;
  const unacceptable = result?.acceptable === false ? 'RESULT_INVALID' : null;
  const events: CommandEvent[] = [];
  const judged = rules.judgeFrame(before, receipts, { epoch, unacceptable, failure }, (stored, event) => {
    events.push(event);
    return step(rules.commandMachine, stored, event);
  });
  const verdict = verdictOf(receipts.at(-1), result, frame.late);
  switch (judged.is) {
    case 'refused':
      throw new Refused(judged.code);
    case 'open':
      return { answer: 'acknowledged', verdict: undefined };
    case 'repeated':
      return { answer: 'acknowledged', verdict: verdictAgain(before, receipts.at(-1)) };
    case 'taken':
      keep(plane, tx, { ...before, stored: judged.stored }, { fresh: judged.fresh, verdict, events, result });
      return { answer: 'acknowledged', verdict };
  }
}

interface Taken {
  readonly fresh: readonly Receipt[];
  readonly verdict: Verdict;
  readonly events: readonly CommandEvent[];
  readonly result: Result | undefined;
}

function keep(plane: ControlPlane, tx: Transaction, row: CommandRow, { fresh, verdict, events, result }: Taken): void {
  const links: ChainLink[] = fresh.map(({ type, digest }) => ({ type, digest }));
  const answered = links.at(-1)?.digest ?? '';
  const acknowledged = verdict ? [{ type: 'control.acknowledged', digest: `${verdict}:${answered}` }] : [];
  const chain = [...row.chain, ...links, ...acknowledged];
  const value = result?.acceptable === true ? result : undefined;
  const after = storeCommand(plane.setting, tx, { ...row, chain }, events, value);
  plane.setting.watch.believed(after, fresh);
  if (value?.manifestDigest !== undefined && row.operation === 'workspace.review' && value.failure === null) {
    const run = tx.get('runs', row.run);
    if (run) tx.put('runs', { ...run, reviewed: value.manifestDigest });
  }
  const executor = executorOf(tx, row.executor);
  let { remembered } = executor;
  for (const { stated } of fresh) remembered = plane.setting.rules.remember(remembered, stated);
  tx.put('executors', { ...executor, remembered });
}

/** What the countersignature of a last receipt says; undefined where it ends nothing. */
function verdictOf(last: Receipt | undefined, result: Result | undefined, late: boolean): Verdict {
  if (last?.type !== 'machine.result' && last?.type !== 'machine.refused') return undefined;
  const started = last.type === 'machine.result' && (last.outcome === 'succeeded' || last.outcome === 'failed');
  return started && result?.acceptable === false && !late ? 'refused' : 'settled';
}

/** The countersignature that was given to a receipt before. */
function verdictAgain({ chain }: CommandRow, last: Receipt | undefined): Verdict {
  const given = chain.find(
    ({ type, digest }) => type === 'control.acknowledged' && digest.endsWith(`:${last?.digest}`),
  );
  if (!given) return undefined;
  return given.digest.startsWith('settled') ? 'settled' : 'refused';
}

/** Takes a further revision; what is pending of an earlier one ends by it (N-084). */
export function takeDescriptor(plane: ControlPlane, session: Session, id: number, revision: Revision): void {
  const { executor } = session;
  plane.database.write(plane, executor, {
    body: (tx) => keepRevision(plane, tx, executor, revision),
    after: () => {
      plane.answer(session, id, { answer: 'taken' });
      plane.changed(executor);
    },
  });
}

function keepRevision({ setting }: ControlPlane, tx: Transaction, executor: string, revision: Revision): void {
  const { descriptorReviewMachine: machine } = setting.rules;
  const row = executorOf(tx, executor);
  if (row.latest && revision.revision <= row.latest.revision) return;
  const descriptorDigest = digestOf(JSON.stringify(revision));
  const earlier = row.latest && tx.get('reviews', `${executor}/${row.latest.revision}`);
  if (earlier && stateName(earlier.stored.value) === 'pending') {
    const event = { type: 'descriptor.arrived', revision: revision.revision, descriptorDigest } as const;
    const ended = step(machine, earlier.stored, event);
    if (ended.ok) {
      tx.put('reviews', { ...earlier, stored: ended.stored });
      tx.told.push({ machine: 'descriptor-review', actor: earlier.id, event });
    }
  }
  const input = { executorId: executor, revision: revision.revision, descriptorDigest };
  const review = `${executor}/${revision.revision}`;
  tx.put('reviews', { id: review, executor, revision, stored: begin(machine, input).stored });
  tx.told.push({ machine: 'descriptor-review', actor: review, event: { type: 'xstate.init', input } });
  tx.put('executors', { ...row, latest: revision });
}
