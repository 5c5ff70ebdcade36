/*
 * One machine's connection. Before the session is proved the epoch is 0 and two questions exist; afterwards each frame carries
 * the epoch of the session and a sequence that grows by one.
 *
 * THREAT: a machine, or whoever speaks for one, sends garbage, repeats frames, floods questions or reads nothing. Each of these
 * ends its own connection and touches nobody else's (test/server/channel/connection.test.ts).
 */
import { aboutError } from '../about-error.ts';
import type { WebSocket } from 'ws';
import { loseCommands, tellCancel } from '../commands/cancel.ts';
import type { CommandRow } from '../commands/store.ts';
import type { Work } from '../commands/work.ts';
import { stepExecutor } from '../executors/lifecycle.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import { answerAtOnce } from './handlers.ts';
import { readStanding } from '../executors/store.ts';
import { HeldQuestions } from './held.ts';
import type { Connection } from './lanes.ts';
import { channelRefusals, channelQuestions } from '../protocol.ts';
import type { ChannelQuestion, ChannelRefusal } from '../protocol.ts';
import { ChannelRefused, ChannelViolation } from './refused.ts';
import { challenge, prove } from './session.ts';
import type { Challenge, Proved } from './session.ts';
import { readQuestion, Wire } from './wire.ts';
import type { Question } from './wire.ts';

/** Most questions of one connection that may be under way. */
const UNDERWAY_LIMIT = 256;
/** How long a connection may stand without a proof, in ms. */
const PROVE_WITHIN_MS = 10_000;

/** One WebSocket of a machine. */
class ChannelConnection implements Connection {
  readonly #work: Work;
  readonly #wire: Wire;
  readonly #unproved: NodeJS.Timeout;
  readonly #onProved: () => void;
  #sequence = 0;
  #underway = 0;
  #challenged = false;
  #challenge: Challenge | undefined;
  #proved: Proved | undefined;
  #held: HeldQuestions | undefined;
  #ended = false;

  constructor(work: Work, socket: WebSocket, onProved: () => void) {
    this.#work = work;
    this.#onProved = onProved;
    this.#wire = new Wire(socket);
    this.#unproved = setTimeout(() => this.#wire.close(1008, 'not proved'), PROVE_WITHIN_MS);
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.#take(data);
      else this.#wire.close(1003, 'binary messages only');
    });
    socket.on('close', (code) => void this.#close(code === 1000));
    socket.on('error', () => undefined);
  }

  get executor(): Connection['executor'] {
    return this.#session.executor;
  }

  get epoch(): number {
    return this.#proved?.epoch ?? 0;
  }

  /** Looks again whether this connection still stands, and tells its machine. */
  wake(): void {
    this.#held?.wake();
    if (!this.#ended) this.#work.dispatcher.poke(this.executor);
  }

  end(reason: 'fenced' | 'stopping'): void {
    const code = reason === 'fenced' ? 1008 : 1001;
    void Promise.resolve(this.#held?.tellNow()).finally(() => this.#wire.close(code, reason));
  }

  get #session(): Proved {
    if (!this.#proved) throw new Error('connection has not proved itself');
    return this.#proved;
  }

  #take(data: Buffer): void {
    if (this.#ended) return;
    let question: Question;
    try {
      question = readQuestion(data);
      this.#requireOrder(question);
    } catch (error) {
      this.#violated(error);
      return;
    }
    this.#underway += 1;
    void this.#answer(question).finally(() => {
      this.#underway -= 1;
    });
  }

  #requireOrder(question: Question): void {
    if (question.sequence !== this.#sequence + 1) throw new ChannelViolation('sequence is not the next one');
    this.#sequence = question.sequence;
    if (this.#underway >= UNDERWAY_LIMIT) throw new ChannelViolation('too many questions at once');
    const opening = question.type === 'session.challenge' || question.type === 'session.prove';
    if (opening !== (this.#proved === undefined)) throw new ChannelViolation('question is not permitted in this phase');
  }

  async #answer(question: Question): Promise<void> {
    try {
      if (question.epoch !== this.epoch) {
        throw new ChannelRefused('CONNECTION_FENCED', 'frame of another connection epoch', { ends: true });
      }
      await this.#dispatch(question);
    } catch (error) {
      this.#refuse(question, error);
    }
  }

  async #dispatch(question: Question): Promise<void> {
    const { type } = question;
    if (type === 'session.challenge') {
      if (this.#challenged) throw new ChannelViolation('a connection is challenged once');
      this.#challenged = true;
      this.#challenge = await challenge(this.#work, bodyOf(type, question).executor);
      const { challenge: bytes, acknowledgedCount } = this.#challenge;
      this.#wire.answer<typeof type>(question, { challenge: bytes, acknowledgedCount });
      return;
    }
    if (type === 'session.prove') return this.#prove(question);
    await this.#requireStanding();
    if (type === 'work' || type === 'control') {
      if (!this.#held || this.#held.holds(type)) throw new ChannelViolation(`a ${type} question is held already`);
      if (type === 'work') this.#held.holdWork(question, bodyOf(type, question).capacity);
      else this.#held.holdControl(question, bodyOf(type, question).nonce);
      return;
    }
    const answer = await answerAtOnce(type, this.#work, this.#session, bodyOf(type, question));
    this.#wire.answer<typeof type>(question, answer);
  }

  /** A fenced, revoked or failed executor is refused everything, whether or not it noticed (N-207). */
  async #requireStanding(): Promise<void> {
    const { executor, epoch } = this.#session;
    const row = await readStanding(this.#work.store.read, executor);
    if (row?.state === 'revoked')
      throw new ChannelRefused('EXECUTOR_REVOKED', 'this executor was ended', { ends: true });
    if (row?.state === 'error') throw new ChannelRefused('EXECUTOR_ERROR', 'run repair on the machine', { ends: true });
    if (row?.epoch !== epoch) {
      throw new ChannelRefused('CONNECTION_FENCED', 'a newer epoch stands; prove the key again', { ends: true });
    }
  }

  async #prove(question: Question): Promise<void> {
    const challenged = this.#challenge;
    this.#challenge = undefined;
    if (!challenged) throw new ChannelRefused('CHALLENGE_EXPIRED', 'ask for a challenge first', { ends: true });
    const { proof } = bodyOf('session.prove', question);
    const { session, proved } = await prove(this.#work, challenged, proof);
    if (proved && !this.#ended) {
      clearTimeout(this.#unproved);
      this.#onProved();
      this.#proved = proved;
      this.#held = new HeldQuestions(this.#work, this.#wire, proved);
      this.#work.lanes.join(this);
      this.#work.dispatcher.expectQueued(proved.executor);
    }
    this.#wire.answer<'session.prove'>(question, { session });
    if (!proved) this.#wire.close(1008, 'not online');
  }

  #refuse(question: Question, error: unknown): void {
    if (error instanceof ChannelViolation) return this.#violated(error);
    if (error instanceof ChannelRefused) {
      this.#wire.refuse(question, error.code, error.message);
      if (error.ends) this.#wire.close(1008, error.code);
      return;
    }
    if (error instanceof Refusal && isChannelRefusal(error.code)) {
      this.#wire.refuse(question, error.code, error.message);
      return;
    }
    this.#work.log.error(
      { ...aboutError(error), question: question.type },
      'a question of a machine could not be answered',
    );
    this.#wire.refuse(question, 'UNAVAILABLE', 'the control plane could not do this now');
  }

  #violated(error: unknown): void {
    const message = error instanceof ChannelViolation ? error.message : 'protocol violation';
    this.#work.log.warn({ executor: this.#proved?.executor, violation: message }, 'a machine broke the protocol');
    this.#wire.close(1002, message);
  }

  async #close(goodbye: boolean): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#unproved);
    this.#held?.release();
    const proved = this.#proved;
    if (!proved || !this.#work.lanes.leave(this)) return;
    const { executor } = proved;
    try {
      const lost = await this.#work.store.write((tx) => leave(this.#work, tx, proved, goodbye));
      if (goodbye) this.#work.wake.executor(executor);
      tellCancel(this.#work, lost);
    } catch (error) {
      // The store is gone; the sweep and the next proof settle the same facts.
      this.#work.log.error({ ...aboutError(error), executor }, 'the end of a connection could not be stored');
    }
  }
}

/**
 * The transaction of a connection's end: what it was given is unknown, and where it said goodbye its machine is offline. A newer proof
 * may stand by now, in this process or another one: what its connection was given, and its standing, are none of this one's.
 */
async function leave(work: Work, tx: Writer, { executor, epoch }: Proved, goodbye: boolean): Promise<CommandRow[]> {
  const row = await readStanding(tx, executor);
  if (goodbye && row?.epoch === epoch && row.state === 'online') {
    await stepExecutor(work, tx, executor, { type: 'executor.silent' });
  }
  return loseCommands(work, tx, executor, epoch + 1);
}

/** Serves one machine's WebSocket until it closes; `onProved` hears once that the machine proved its key. */
export function serveChannel(work: Work, socket: WebSocket, onProved: () => void): Connection {
  return new ChannelConnection(work, socket, onProved);
}

function bodyOf<Type extends ChannelQuestion>(type: Type, question: Question) {
  const parsed = channelQuestions[type].body.safeParse(question.body);
  if (!parsed.success) throw new ChannelViolation(`body of ${type} is not in its shape`);
  // The schema of `type` has passed it; the compiler cannot follow an indexed lookup through safeParse.
  return parsed.data as (typeof channelQuestions)[Type]['body']['_output'];
}

function isChannelRefusal(code: string): code is ChannelRefusal {
  // `includes` of a tuple takes its own members alone; the question is whether this is one.
  return (channelRefusals as readonly string[]).includes(code);
}
