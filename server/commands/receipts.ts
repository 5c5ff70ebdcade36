/*
 * Takes the receipts of a machine: signature, place in the chain, and the result behind the digest, then everything in one
 * transaction with the countersignature.
 *
 * INVARIANT 1  A frame is taken whole or not at all.
 * INVARIANT 2  What was countersigned once is answered with the same bytes again; another ending is refused and the first stays.
 * INVARIANT 3  A chain of an earlier connection settles an unknown outcome and nothing else (N-118, R57).
 */
import type { Plain } from '../../helpers/protocol/codec.ts';
import { sha256, statementDigest } from '../../helpers/protocol/signed.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import { commandMachine } from '../../machines/command/machine.ts';
import { step } from '../../machines/step.ts';
import { ChannelRefused } from '../channel/refused.ts';
import type { Proved } from '../channel/session.ts';
import { rememberStated } from '../channel/store.ts';
import { touchExecutor } from '../executors/store.ts';
import { deleteAt } from '../payloads/rules.ts';
import { keepPayload } from '../payloads/store.ts';
import type { AnswerBody, ReceiptFrame } from '../protocol.ts';
import type { Writer } from '../store/store.ts';
import { openReceipts } from './check-receipts.ts';
import type { OpenedReceipt } from './check-receipts.ts';
import { storeStep, tellEnd } from './finish.ts';
import { judgeResult } from './result.ts';
import type { JudgedResult } from './result.ts';
import { judgeFrame } from './rules.ts';
import type { CommandStanding, Judging } from './rules.ts';
import { addToChain, chainOf, findCommand, rowAfter, storedOf } from './store.ts';
import type { CommandRow, ReceiptRow } from './store.ts';
import type { Work } from './work.ts';

interface Taking {
  readonly from: Proved;
  readonly frame: ReceiptFrame;
  readonly receipts: readonly OpenedReceipt[];
  readonly judged: JudgedResult | undefined;
  /** Countersignature of the last receipt if it ends something; stored only if it is taken as it was judged. */
  readonly acknowledged: Signed | undefined;
}

/** Takes one frame of receipts. Throws ChannelRefused; a frame that was taken before gets the same answer. */
export async function takeReceipts(work: Work, from: Proved, frame: ReceiptFrame): Promise<AnswerBody<'receipts'>> {
  const row = await findCommand(work.store.read, frame.command);
  if (row === undefined || row.executor !== from.executor) throw foreign('no command of this machine has this id');
  if (row.epoch === null) throw foreign('this command was never given to a machine');
  const receipts = openReceipts(from, row, frame);
  const judged = judge(row, frame, receipts);
  const acknowledged = await countersign(work, from, receipts.at(-1), judged);
  const taking = { from, frame, receipts, judged, acknowledged };
  const taken = await work.store.write((tx) => take(work, tx, taking));
  if (taken.row) tellEnd(work, taken.row, taken.result);
  return taken.answer ? { acknowledged: taken.answer } : {};
}

function judge(
  row: CommandRow,
  { result }: ReceiptFrame,
  receipts: readonly OpenedReceipt[],
): JudgedResult | undefined {
  const ending = receipts.find((receipt) => receipt.type === 'machine.result');
  if (ending?.type !== 'machine.result') return undefined;
  if (!result) throw invalid('a result receipt travels with its result');
  if (Buffer.compare(ending.resultDigest, sha256(result)) !== 0) {
    throw invalid('result is not the one that its receipt was signed for');
  }
  return judgeResult(row.operation, ending.outcome, result);
}

async function countersign(
  work: Work,
  from: Proved,
  last: OpenedReceipt | undefined,
  judged: JudgedResult | undefined,
): Promise<Signed | undefined> {
  if (last?.type !== 'machine.result' && last?.type !== 'machine.refused') return undefined;
  const started = last.type === 'machine.result' && (last.outcome === 'succeeded' || last.outcome === 'failed');
  const verdict = started && judged?.acceptable === false && !last.late ? 'refused' : 'settled';
  const { command, executor } = last;
  const fields = { at: work.clock.now(), executor, command, receiptDigest: last.bytes, verdict } as const;
  const [signed] = await work.signer.sign([{ type: 'control.acknowledged', fields }]);
  return signed;
}

interface Taken {
  readonly answer: Signed | undefined;
  /** The command after it, where something changed. */
  readonly row: CommandRow | undefined;
  readonly result: Plain | undefined;
}

async function take(work: Work, tx: Writer, taking: Taking): Promise<Taken> {
  const { frame, receipts } = taking;
  const before = await findCommand(tx, frame.command);
  if (!before) throw foreign('no command of this machine has this id');
  const chain = await chainOf(tx, before.id);
  const judged = judgeFrame(standingOf(before, chain), receipts, judgedBy(taking), (stored, event) =>
    step(commandMachine, stored, event),
  );
  switch (judged.is) {
    case 'repeated':
      return { answer: answerAgain(chain, receipts.at(-1)), row: undefined, result: undefined };
    case 'open':
      return { answer: undefined, row: undefined, result: undefined };
    case 'refused':
      throw new ChannelRefused(judged.code, judged.message);
    case 'taken': {
      const after = rowAfter(before, judged.stored);
      return store(work, tx, { ...taking, receipts: judged.fresh }, before, after, chain);
    }
  }
}

function standingOf(row: CommandRow, chain: readonly ReceiptRow[]): CommandStanding {
  const links = chain.map(({ type, digest }) => ({ type, digest: digest.toString('hex') }));
  return { stored: storedOf(row), epoch: row.epoch, chain: links };
}

function judgedBy({ from, judged }: Taking): Omit<Judging, 'state'> {
  const unacceptable = judged?.acceptable === false ? judged.code : null;
  return { epoch: from.epoch, unacceptable, failure: judged?.acceptable ? judged.code : null };
}

async function store(
  work: Work,
  tx: Writer,
  { from, frame, receipts, judged, acknowledged }: Taking,
  before: CommandRow,
  after: CommandRow,
  chain: readonly ReceiptRow[],
): Promise<Taken> {
  const { clock, keys, keptMs } = work;
  const statements = receipts.map(({ type, signed, bytes }) => ({ type, signed, digest: bytes }));
  const answer = acknowledged && {
    type: 'control.acknowledged',
    signed: acknowledged,
    digest: statementDigest('control.acknowledged', acknowledged.payload),
  };
  await addToChain(tx, before.id, chain.length, clock.now(), answer ? [...statements, answer] : statements);
  const value = judged?.acceptable ? judged.value : undefined;
  const resultDigest = frame.result ? sha256(frame.result) : before.resultDigest;
  const row = await storeStep(work, tx, before, { ...after, resultDigest }, value);
  if (frame.result && value !== undefined && row.operation !== 'review.difference') {
    const until = deleteAt(clock.now(), keptMs);
    await keepPayload(tx, keys, { command: row.id, direction: 'result', bytes: frame.result, deleteAt: until });
  }
  await rememberStated(tx, from.executor, ...receipts.map(({ stated }) => stated));
  if (from.isDue(clock.now())) await touchExecutor(tx, from.executor, clock.now());
  return { answer: acknowledged, row, result: value };
}

function answerAgain(chain: readonly ReceiptRow[], last: OpenedReceipt | undefined): Signed | undefined {
  const at = chain.findIndex(({ digest }) => last && digest.equals(last.bytes));
  const next = chain[at + 1];
  if (at === -1 || next?.type !== 'control.acknowledged') return undefined;
  return { payload: next.payload, signature: next.signature };
}

function foreign(message: string): ChannelRefused {
  return new ChannelRefused('RECEIPT_FOREIGN', message);
}

function invalid(message: string): ChannelRefused {
  return new ChannelRefused('RECEIPT_INVALID', message);
}
