import type { Work } from '../commands/work.ts';
import { takeReceipts } from '../commands/receipts.ts';
import { findCommand } from '../commands/store.ts';
import { submitDescriptor } from '../descriptors/submit.ts';
import { rotateKey } from '../executors/rotate-key.ts';
import { touchExecutor } from '../executors/store.ts';
import type { AnswerBody, ChannelQuestion, QuestionBody } from '../protocol.ts';
import { ChannelRefused } from './refused.ts';
import { isTimely } from './rules.ts';
import type { Proved } from './session.ts';
import { rememberStated } from './store.ts';

/** Questions that are answered at once. */
export type AnsweredAtOnce = Exclude<ChannelQuestion, 'session.challenge' | 'session.prove' | 'work' | 'control'>;

type Handler<Type extends ChannelQuestion> = (
  work: Work,
  proved: Proved,
  body: QuestionBody<Type>,
) => Promise<AnswerBody<Type>>;

/** What answers each question of a proved connection. */
const handlers: { readonly [Type in AnsweredAtOnce]: Handler<Type> } = {
  heartbeat: takeHeartbeat,
  receipts: takeReceipts,
  descriptor: (work, { executor }, body) => submitDescriptor(work, executor, body),
  rotation: async (work, proved, body) => {
    const answer = await rotateKey(work, proved.executor, body);
    proved.rotate(answer.publicKey);
    return answer;
  },
  progress: async (work, { executor, epoch }, { command, ...progress }) => {
    const row = await findCommand(work.store.read, command);
    if (row?.executor !== executor || row.epoch !== epoch || row.open !== 1) return {};
    work.outcomes.tellProgress(command, progress);
    const { done, total, phase } = progress;
    work.wake.progress({ run: row.run, command, operation: row.operation, done, total, phase });
    return {};
  },
};

/** Answers a question of a proved connection. Throws ChannelRefused or Refusal. */
export async function answerAtOnce<Type extends AnsweredAtOnce>(
  type: Type,
  work: Work,
  proved: Proved,
  body: QuestionBody<Type>,
): Promise<AnswerBody<Type>> {
  const handler: Handler<Type> = handlers[type];
  return handler(work, proved, body);
}

/** A signed sign of life: of this connection, in time, and with a guard that was not seen before (N-209). */
async function takeHeartbeat(
  work: Work,
  proved: Proved,
  { heartbeat }: QuestionBody<'heartbeat'>,
): Promise<AnswerBody<'heartbeat'>> {
  const statement = proved.open('machine.heartbeat', heartbeat)?.statement;
  if (statement?.executor !== proved.executor) {
    throw new ChannelRefused('PROOF_INVALID', 'heartbeat is not signed by the paired key');
  }
  if (statement.epoch !== proved.epoch)
    throw new ChannelRefused('CONNECTION_FENCED', 'heartbeat of another connection');
  const now = work.clock.now();
  if (!isTimely(statement.at, now)) throw new ChannelRefused('CLOCK_SKEW', 'heartbeat is more than 60 s away from now');
  if (statement.guard <= proved.heartbeatGuard) throw new ChannelRefused('PROOF_INVALID', 'heartbeat was seen before');
  proved.heartbeatGuard = statement.guard;
  await work.store.write(async (tx) => {
    await rememberStated(tx, proved.executor, statement);
    await touchExecutor(tx, proved.executor, now);
  });
  return { at: now };
}
