/*
 * One end of a connection to a helper: asks requests of the owner's protocol.ts, matches replies by their number, and
 * hands on what the helper tells unasked.
 *
 *   ask ──► request ──► reply     resolves with the checked body
 *                   ──► refusal   rejects with HelperRefused: policy said no, or it was tried and broke
 *                   ──► silence   rejects with HelperSilent after `withinMs`; what happened is then unknown
 *           end of the connection rejects everything that waits with HelperGone
 *           bytes outside the protocol end the connection: HelperViolation, which the owner answers as EXIT_PROTOCOL_VIOLATION
 */
import type { Duplex } from 'node:stream';
import { decodeMessage, encodeMessage, ENVELOPE_VERSION } from '../helpers/protocol/envelope.ts';
import type { Message } from '../helpers/protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../helpers/protocol/frame.ts';

/** What checks one body: a zod schema, of which nothing but `parse` is used. */
export interface Shape<Body> {
  parse(value: unknown): Body;
}

/** What a helper's protocol.ts declares: requests with their replies, events, and codes of refusals. */
export interface HelperContract {
  readonly requests: Readonly<Record<string, { readonly body: Shape<unknown>; readonly reply: Shape<unknown> }>>;
  readonly events: Readonly<Record<string, Shape<unknown>>>;
  /** Codes that may come; `any` where the answering side hands on codes of others. */
  readonly refusals: readonly string[] | 'any';
}

/** Name of a request of a contract. */
export type RequestType<Contract extends HelperContract> = keyof Contract['requests'] & string;
/** Body of one request of a contract. */
export type RequestBody<Contract extends HelperContract, Type extends RequestType<Contract>> = ReturnType<
  Contract['requests'][Type]['body']['parse']
>;
/** Body of the reply to one request of a contract. */
export type ReplyBody<Contract extends HelperContract, Type extends RequestType<Contract>> = ReturnType<
  Contract['requests'][Type]['reply']['parse']
>;

/** One event of a contract, told by `type`. */
export type HelperEvent<Contract extends HelperContract> = {
  [Type in keyof Contract['events'] & string]: {
    readonly type: Type;
    readonly body: ReturnType<Contract['events'][Type]['parse']>;
  };
}[keyof Contract['events'] & string];

/** The helper refused; `code` is one of the contract's own. */
export class HelperRefused extends Error {
  override readonly name = 'HelperRefused';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** No answer came in time; whether the request had its effect is unknown. */
export class HelperSilent extends Error {
  override readonly name = 'HelperSilent';
}

/** The connection ended before the answer; whether the request had its effect is unknown. */
export class HelperGone extends Error {
  override readonly name = 'HelperGone';
}

/** The helper sent what its contract does not contain: a bug or a break-in, for which the owner goes to its error state. */
export class HelperViolation extends Error {
  override readonly name = 'HelperViolation';
}

/** How one request is asked. */
export interface Asking {
  /** Longest wait for the answer, in ms. */
  readonly withinMs: number;
  /** Idempotency key of a request that changes something: command id and step. */
  readonly key?: string;
  /** Gives up waiting; the helper is not told. */
  readonly signal?: AbortSignal;
}

interface Waiting {
  readonly reply: Shape<unknown>;
  settle(outcome: { readonly body: unknown } | { readonly error: unknown }): void;
}

/** A connection to one helper. Everything that arrives is checked against the contract before anybody sees it. */
export class HelperClient<Contract extends HelperContract> {
  readonly #connection: Duplex;
  readonly #contract: Contract;
  readonly #tell: (event: HelperEvent<Contract>) => void;
  readonly #reader = new FrameReader();
  readonly #waiting = new Map<number, Waiting>();
  readonly #givenUp = new Set<number>();
  #lastId = 0;
  #end: HelperGone | HelperViolation | undefined;
  /** Resolves, never rejects, with what ended the connection. */
  readonly ended: Promise<HelperGone | HelperViolation>;

  /** `tell` hears the helper's events in order, never after `ended`. */
  constructor(connection: Duplex, contract: Contract, tell: (event: HelperEvent<Contract>) => void = () => undefined) {
    this.#connection = connection;
    this.#contract = contract;
    this.#tell = tell;
    this.ended = new Promise((resolve) => {
      connection.on('data', (chunk: Buffer) => this.#read(chunk));
      connection.on('error', (cause) => this.#finish(new HelperGone('connection to the helper broke', { cause })));
      connection.on('end', () => this.#finish(new HelperGone('helper ended the connection')));
      connection.on('close', () => {
        this.#finish(new HelperGone('connection to the helper is closed'));
        resolve(this.#end ?? new HelperGone('connection to the helper is closed'));
      });
    });
  }

  /** True from the moment that nothing can be asked any more, which is before `ended` resolves. */
  get isEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Number of requests whose answer has not come. */
  get pending(): number {
    return this.#waiting.size;
  }

  /** Asks one request. Rejects with HelperRefused, HelperSilent, HelperGone, HelperViolation, or the signal's reason; a body outside its shape rejects before anything is sent. */
  request<Type extends RequestType<Contract>>(
    type: Type,
    body: RequestBody<Contract, Type>,
    asking: Asking,
  ): Promise<ReplyBody<Contract, Type>> {
    return new Promise((resolve, reject) => {
      if (this.#end) throw new HelperGone('connection to the helper has ended', { cause: this.#end });
      asking.signal?.throwIfAborted();
      const shapes = this.#shapesOf(type);
      const id = this.#lastId + 1;
      const frame = encodeFrame(encodeMessage(requestMessage(id, type, shapes.body.parse(body), asking.key)));
      this.#lastId = id;
      this.#waiting.set(id, {
        reply: shapes.reply,
        settle: this.#settler(id, asking, (outcome) => {
          if ('error' in outcome) return reject(outcome.error);
          // The shape of `type` made this body; the compiler cannot follow an indexed lookup through parse.
          return resolve(outcome.body as ReplyBody<Contract, Type>);
        }),
      });
      this.#connection.write(frame);
    });
  }

  /** Ends the connection; what waits is rejected with HelperGone. */
  close(): void {
    this.#finish(new HelperGone('connection to the helper was closed here'));
  }

  #shapesOf(type: string): { readonly body: Shape<unknown>; readonly reply: Shape<unknown> } {
    const shapes = this.#contract.requests[type];
    if (!shapes) throw new TypeError(`${type} is not a request of this helper`);
    return shapes;
  }

  #settler(id: number, asking: Asking, then: Waiting['settle']): Waiting['settle'] {
    const giveUp = (error: unknown): void => {
      this.#givenUp.add(id);
      this.#waiting.get(id)?.settle({ error });
    };
    const abort = (): void => giveUp(asking.signal?.reason);
    const timer = setTimeout(() => giveUp(new HelperSilent(`no answer within ${asking.withinMs} ms`)), asking.withinMs);
    asking.signal?.addEventListener('abort', abort, { once: true });
    return (outcome) => {
      clearTimeout(timer);
      asking.signal?.removeEventListener('abort', abort);
      this.#waiting.delete(id);
      then(outcome);
    };
  }

  #read(chunk: Buffer): void {
    if (this.#end) return;
    try {
      for (const payload of violating('frame', () => this.#reader.push(chunk))) {
        this.#take(violating('message', () => decodeMessage(payload)));
        if (this.#end) return;
      }
    } catch (error) {
      // What `tell` throws is a bug of the caller and must not be laid at the helper's door.
      if (!(error instanceof HelperViolation)) throw error;
      this.#finish(error);
    }
  }

  #take(message: Message): void {
    if (message.kind === 'request') throw new HelperViolation('helper asked a request');
    if (message.kind === 'event') return this.#takeEvent(message.type, message.body);
    if (this.#givenUp.delete(message.id)) return undefined;
    const waiting = this.#waiting.get(message.id);
    if (!waiting) throw new HelperViolation('helper answered what was not asked, or twice');
    if (message.kind === 'reply') {
      return waiting.settle({ body: violating('reply', () => waiting.reply.parse(message.body)) });
    }
    const { refusals } = this.#contract;
    if (refusals !== 'any' && !refusals.includes(message.code))
      throw new HelperViolation('helper refused with an unknown code');
    return waiting.settle({ error: new HelperRefused(message.code, message.message) });
  }

  #takeEvent(type: string, body: unknown): void {
    const shape = Object.hasOwn(this.#contract.events, type) ? this.#contract.events[type] : undefined;
    if (!shape) throw new HelperViolation('helper told an unknown event');
    // Type and body were checked by the one shape of this contract that has this name.
    this.#tell({ type, body: violating('event', () => shape.parse(body)) } as HelperEvent<Contract>);
  }

  #finish(end: HelperGone | HelperViolation): void {
    if (this.#end) return;
    this.#end = end;
    this.#connection.destroy();
    for (const waiting of this.#waiting.values()) waiting.settle({ error: end });
    this.#givenUp.clear();
  }
}

function requestMessage(id: number, type: string, body: unknown, key: string | undefined): Message {
  const message = { kind: 'request', version: ENVELOPE_VERSION, id, type, body } as const;
  return key === undefined ? message : { ...message, key };
}

function violating<Value>(what: string, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new HelperViolation(`helper sent a malformed ${what}`, { cause });
  }
}
