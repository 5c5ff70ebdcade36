import type { WebSocket } from 'ws';
import type * as z from 'zod';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { channelQuestions, questionSchema } from '../protocol.ts';
import type { AnswerBody, ChannelQuestion, ChannelRefusal } from '../protocol.ts';
import { ChannelViolation } from './refused.ts';

/** A question whose frame, kind and number are right; its body is checked by `bodyOf`. */
export type Question = z.infer<typeof questionSchema> & { readonly type: ChannelQuestion };

/** Bytes that may wait to be written before a machine that does not read is cut off. */
const BACKLOG_LIMIT_BYTES = 8_388_608;

/** Reads one message. Throws ChannelViolation for anything but a known question. */
export function readQuestion(data: Uint8Array): Question {
  try {
    const question = questionSchema.parse(decode(data));
    if (Object.hasOwn(channelQuestions, question.type)) {
      // The table has exactly the keys of ChannelQuestion.
      return { ...question, type: question.type as ChannelQuestion };
    }
  } catch {
    // CodecError or ZodError: no honest machine sends this.
  }
  throw new ChannelViolation('message is not a question of this protocol');
}

/** The writing half of one connection. An answer carries the number and the epoch of its question. */
export class Wire {
  readonly #socket: WebSocket;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /** Sends an answer; false when the connection ended. */
  answer<Type extends ChannelQuestion>({ id, epoch }: Question, body: AnswerBody<Type>): boolean {
    return this.#send({ kind: 'answer', id, epoch, body });
  }

  /** Sends a refusal; false when the connection ended. */
  refuse({ id, epoch }: Question, code: ChannelRefusal, message: string): boolean {
    return this.#send({ kind: 'refusal', id, epoch, code, message: message.slice(0, 400) });
  }

  /** Ends the connection after what was sent: 1002 for a violation, 1008 for a fence, 1001 when this process stops. */
  close(code: 1001 | 1002 | 1003 | 1008 | 1011, reason: string): void {
    this.#socket.close(code, reason);
  }

  #send(message: unknown): boolean {
    if (this.#socket.readyState !== this.#socket.OPEN) return false;
    if (this.#socket.bufferedAmount > BACKLOG_LIMIT_BYTES) {
      this.#socket.terminate();
      return false;
    }
    this.#socket.send(encode(message));
    return true;
  }
}
