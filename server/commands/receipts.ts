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
import { eventOf, lateEnding } from './rules.ts';
import { addToChain, chainOf, findCommand, stepRow } from './store.ts';
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
  const { from, frame, receipts } = taking;
  const before = await findCommand(tx, frame.command);
  if (!before) throw foreign('no command of this machine has this id');
  const chain = await chainOf(tx, before.id);
  const fresh = receipts.filter(({ bytes }) => !chain.some((row) => row.digest.equals(bytes)));
  if (fresh.length === 0) return { answer: answerAgain(chain, receipts.at(-1)), row: undefined, result: undefined };
  requireLinks(chain, fresh);
  const late = before.state === 'unknown';
  if (before.open === 0 && !late) throw afterTheEnd(fresh);
  if (!late && before.epoch !== from.epoch) {
    throw new ChannelRefused('CONNECTION_FENCED', 'an earlier connection was given this command; its chain is late');
  }
  const after = late ? takeLate(before, chain, fresh, taking) : takeLinks(before, fresh, taking);
  if (!after) return { answer: undefined, row: undefined, result: undefined };
  return store(work, tx, { ...taking, receipts: fresh }, before, after, chain);
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

/** Within its connection each receipt is one step. */
function takeLinks(before: CommandRow, fresh: readonly OpenedReceipt[], { from, judged }: Taking): CommandRow {
  const unacceptable = judged?.acceptable === false ? judged.code : null;
  const failure = judged?.acceptable ? judged.code : null;
  let row = before;
  for (const receipt of fresh) {
    const stepped = stepRow(row, eventOf(receipt, { state: row.state, epoch: from.epoch, unacceptable, failure }));
    if (!stepped.ok) {
      if (stepped.code === 'CONNECTION_FENCED') throw new ChannelRefused('CONNECTION_FENCED', 'of another connection');
      throw outOfOrder(`${receipt.type} cannot follow here`);
    }
    row = stepped.row;
  }
  return row;
}

/** After an unknown outcome a whole chain is one step; without an ending it changes nothing. */
function takeLate(
  before: CommandRow,
  chain: readonly ReceiptRow[],
  fresh: readonly OpenedReceipt[],
  { judged }: Taking,
): CommandRow | undefined {
  const last = fresh.at(-1);
  const end = last && lateEnding(last, judged?.acceptable ? judged.code : null);
  if (!last || !end) return undefined;
  const leased = chain.find(({ type }) => type === 'control.leased');
  const accepted =
    chain.find(({ type }) => type === 'machine.accepted')?.digest ??
    fresh.find(({ type }) => type === 'machine.accepted')?.bytes;
  const stepped = stepRow(before, {
    type: 'receipt.late',
    leasedDigest: leased?.digest.toString('hex') ?? '',
    acceptedDigest: accepted?.toString('hex') ?? null,
    ending: { ...end, receiptDigest: last.digest },
  });
  if (!stepped.ok) throw outOfOrder('the late chain does not continue the one that is known');
  return stepped.row;
}

/** Each new receipt names the statement before it; a replacement names the result that it stands in for. */
function requireLinks(chain: readonly ReceiptRow[], fresh: readonly OpenedReceipt[]): void {
  let previous = chain.findLast(({ type }) => type !== 'control.acknowledged' && type !== 'control.command')?.digest;
  for (const receipt of fresh) {
    if (previous?.toString('hex') !== receipt.previous)
      throw outOfOrder(`${receipt.type} does not follow what is known`);
    previous = receipt.bytes;
  }
}

function answerAgain(chain: readonly ReceiptRow[], last: OpenedReceipt | undefined): Signed | undefined {
  const at = chain.findIndex(({ digest }) => last && digest.equals(last.bytes));
  const next = chain[at + 1];
  if (at === -1 || next?.type !== 'control.acknowledged') return undefined;
  return { payload: next.payload, signature: next.signature };
}

function afterTheEnd(fresh: readonly OpenedReceipt[]): ChannelRefused {
  const ending = fresh.some(({ type }) => type === 'machine.result' || type === 'machine.refused');
  if (ending) return new ChannelRefused('RESULT_DUPLICATE', 'this command has another ending already, which stays');
  return outOfOrder('this command has ended');
}

function outOfOrder(message: string): ChannelRefused {
  return new ChannelRefused('RECEIPT_OUT_OF_ORDER', message);
}

function foreign(message: string): ChannelRefused {
  return new ChannelRefused('RECEIPT_FOREIGN', message);
}

function invalid(message: string): ChannelRefused {
  return new ChannelRefused('RECEIPT_INVALID', message);
}
