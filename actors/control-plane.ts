/*
 * The daemon's end of the control channel: asks questions, matches answers, ends the connection for anything else. Which
 * answers are believed is decided by whoever asked; nothing here is authority.
 */
import { decode, encode } from '../helpers/protocol/codec.ts';
import { answerSchema, channelQuestions, MESSAGE_LIMIT_BYTES } from '../server/protocol.ts';
import type { AnswerBody, ChannelQuestion, QuestionBody } from '../server/protocol.ts';

/** The channel ended, or was ended here; whether the question had its effect is unknown. */
export class ChannelEnded extends Error {
  override readonly name = 'ChannelEnded';
}

/** The control plane refused a question. Unsigned: it explains, it never decides. */
export class ChannelRefused extends Error {
  override readonly name = 'ChannelRefused';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** How bytes leave and how the connection is closed. */
export interface ChannelCarrier {
  send(bytes: Uint8Array): Promise<unknown>;
  close(): void;
}

interface Waiting {
  readonly type: ChannelQuestion;
  readonly timer: NodeJS.Timeout;
  readonly resolve: (body: never) => void;
  readonly reject: (error: Error) => void;
}

/** One connection, from open to its end. */
export class ControlChannel {
  readonly #carrier: ChannelCarrier;
  readonly #waiting = new Map<number, Waiting>();
  #finish: ((reason: ChannelEnded) => void) | undefined;
  /** Resolves, never rejects, when the connection is over. */
  readonly ended: Promise<ChannelEnded>;
  #over: ChannelEnded | undefined;
  #lastId = 0;
  #sequence = 0;
  /** Epoch of the proved session, 0 before. */
  epoch = 0;

  constructor(carrier: ChannelCarrier) {
    this.#carrier = carrier;
    this.ended = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  /** Asks one question. Rejects with ChannelRefused, with ChannelEnded, and ends the connection when no answer comes in time. */
  ask<Type extends ChannelQuestion>(type: Type, body: QuestionBody<Type>, withinMs: number): Promise<AnswerBody<Type>> {
    if (this.#over) return Promise.reject(this.#over);
    this.#lastId += 1;
    this.#sequence += 1;
    const id = this.#lastId;
    const bytes = encode({ kind: 'question', id, epoch: this.epoch, sequence: this.#sequence, type, body });
    if (bytes.length > MESSAGE_LIMIT_BYTES)
      return Promise.reject(new RangeError(`question of ${bytes.length} bytes, allowed are ${MESSAGE_LIMIT_BYTES}`));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.end(`no answer to ${type} within ${withinMs} ms`), withinMs);
      this.#waiting.set(id, { type, timer, resolve, reject });
      this.#carrier.send(bytes).catch((cause: unknown) => this.end('link cannot send', cause));
    });
  }

  /** Takes a message that arrived. What answers no open question ends the connection (N-106). */
  take(bytes: Uint8Array): void {
    if (this.#over) return;
    try {
      const answer = answerSchema.parse(decode(bytes));
      const waiting = this.#waiting.get(answer.id);
      if (!waiting || answer.epoch !== this.epoch)
        throw new TypeError('message answers no open question of this session');
      // Each question's waiter takes the body of its own type, which its schema has just passed.
      const settle =
        answer.kind === 'answer'
          ? waiting.resolve.bind(undefined, channelQuestions[waiting.type].answer.parse(answer.body) as never)
          : waiting.reject.bind(undefined, new ChannelRefused(answer.code, answer.message));
      this.#waiting.delete(answer.id);
      clearTimeout(waiting.timer);
      settle();
    } catch (cause) {
      this.end('control plane sent what the protocol does not contain', cause);
    }
  }

  /** Ends the connection; open questions are rejected. Safe to call twice. */
  end(reason: string, cause?: unknown): void {
    if (this.#over) return;
    this.#over = new ChannelEnded(reason, { cause });
    for (const waiting of this.#waiting.values()) {
      clearTimeout(waiting.timer);
      waiting.reject(this.#over);
    }
    this.#waiting.clear();
    this.#carrier.close();
    this.#finish?.(this.#over);
  }
}
