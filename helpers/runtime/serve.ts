/*
 * Answers requests on a role's channel by a table: which request, in which phases, how often, by which handler.
 *
 *   bytes ─► frame ─► plain value ─► envelope ─► row of the table ─► phase ─► body's shape ─► handler ─► reply or refusal
 *
 * The peer is our own code, so whatever is unknown, malformed, early, asked twice or a key with other bytes is a bug or a
 * break-in and ends the process with EXIT_PROTOCOL_VIOLATION (S-004, S-005). A handler that breaks ends it too: there is no
 * partial success. The end of the channel is the wish to end.
 */
import { createHash } from 'node:crypto';
import { Socket } from 'node:net';

import { encode } from '../protocol/codec.ts';
import { decodeMessage, encodeMessage, type Message, type Request } from '../protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../protocol/frame.ts';
import { endUnlessConfined } from './confined.ts';
import { EXIT_VIOLATION } from './exits.ts';

/** What checks one body: a zod schema, of which nothing but `parse` is used. */
type Shape = { parse(value: unknown): unknown };

/** What the owner's protocol.ts declares. */
type Contract = {
  readonly requests: Readonly<Record<string, { readonly body: Shape; readonly reply: Shape }>>;
  readonly events: Readonly<Record<string, Shape>>;
  readonly refusals: readonly string[];
};

/** How one request is answered: `phases` in which it is permitted, once or many times in the life of the process. */
export type ServeRow<Body, Reply, Phase extends string> = {
  readonly phases: readonly Phase[] | 'any';
  readonly times: 'once' | 'many';
  /** Returns the reply; throws an Error whose `code` is one of the contract's refusals to refuse. Anything else thrown ends the process. */
  readonly handle: (body: Body) => Reply | Promise<Reply>;
};

/** The table: one row for each request of the contract. */
export type ServeTable<C extends Contract, Phase extends string> = {
  readonly [Type in keyof C['requests']]: ServeRow<
    ReturnType<C['requests'][Type]['body']['parse']>,
    ReturnType<C['requests'][Type]['reply']['parse']>,
    Phase
  >;
};

/** What a role is served with. `atEnd` runs when the channel has ended, before the process does. */
export type ServeOptions<C extends Contract, Phase extends string> = {
  readonly contract: C;
  readonly firstPhase: Phase;
  readonly table: ServeTable<C, Phase>;
  readonly atEnd?: () => void | Promise<void>;
};

/** The serving side in a handler's hands: tell an event, move to another phase. */
export type Served<C extends Contract, Phase extends string> = {
  readonly tell: <Type extends keyof C['events'] & string>(
    type: Type,
    body: ReturnType<C['events'][Type]['parse']>,
  ) => void;
  readonly enter: (phase: Phase) => void;
};

/**
 * Replies kept for repeated keys, by count and by their bytes; a key older than that is answered as new, so a
 * handler that must know longer keeps its own record.
 */
const KEYS_KEPT = 4096;
const BYTES_KEPT = 8_388_608;

function violation(what: string): never {
  process.stderr.write(`protocol violation: ${what}\n`);
  return process.exit(EXIT_VIOLATION);
}

type Remembered = { readonly asked: string; readonly answer: Promise<Message>; bytes: number };

/** Answers by idempotency key: the same key and bytes get the same reply, the same key with other bytes is a violation. */
class Answers {
  readonly #byKey = new Map<string, Remembered>();
  #bytes = 0;

  of(request: Request, make: () => Promise<Message>): Promise<Message> {
    const { key, id } = request;
    if (key === undefined) return make();
    const asked = createHash('sha256')
      .update(encode([request.type, request.body]))
      .digest('hex');
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      if (known.asked !== asked) violation(`${request.type} reuses a key with other bytes`);
      return known.answer.then((answer) => ('id' in answer ? { ...answer, id } : answer));
    }
    const remembered: Remembered = { asked, answer: make(), bytes: 0 };
    this.#byKey.set(key, remembered);
    return remembered.answer.then((answer) => {
      this.#keep(key, remembered, answer);
      return answer;
    });
  }

  #keep(key: string, remembered: Remembered, answer: Message): void {
    // a refusal had no effect and its cause may be gone: the same key is tried anew
    if (answer.kind !== 'reply') return void this.#byKey.delete(key);
    remembered.bytes = encodeMessage(answer).length;
    this.#bytes += remembered.bytes;
    for (const [old, { bytes }] of this.#byKey) {
      if (this.#byKey.size <= KEYS_KEPT && this.#bytes <= BYTES_KEPT) return;
      // one that is not answered yet takes no bytes, and forgetting it would let its effect happen twice
      if (bytes === 0) continue;
      this.#byKey.delete(old);
      this.#bytes -= bytes;
    }
  }
}

type AnyRow = ServeRow<unknown, unknown, string>;

function refusalOf(error: unknown, refusals: readonly string[]): { code: string; message: string } | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  return refusals.includes(error.code) ? { code: error.code, message: error.message.slice(0, 400) } : undefined;
}

class Server {
  readonly #contract: Contract;
  readonly #table: Readonly<Record<string, AnyRow>>;
  readonly #channel: Socket;
  readonly #answers = new Answers();
  readonly #asked = new Set<string>();
  #phase: string;
  #lastId = 0;

  constructor(contract: Contract, table: Readonly<Record<string, AnyRow>>, phase: string, channel: Socket) {
    this.#contract = contract;
    this.#table = table;
    this.#phase = phase;
    this.#channel = channel;
  }

  enter(phase: string): void {
    this.#phase = phase;
  }

  send(message: Message): void {
    this.#channel.write(encodeFrame(encodeMessage(message)));
  }

  take(payload: Buffer): void {
    let message: Message;
    try {
      message = decodeMessage(payload);
    } catch {
      // the cause would quote the bytes
      return violation('a frame is no message');
    }
    if (message.kind !== 'request') return violation(`a ${message.kind} arrived`);
    if (message.id <= this.#lastId) return violation('a number of a request came again');
    this.#lastId = message.id;
    const request = message;
    void this.#answers.of(request, () => this.#answer(request)).then((answer) => this.send(answer));
  }

  async #answer(request: Request): Promise<Message> {
    const { type, id } = request;
    const row = Object.hasOwn(this.#table, type) ? this.#table[type] : undefined;
    const shapes = this.#contract.requests[type];
    if (row === undefined || shapes === undefined) return violation('a request is unknown');
    if (row.phases !== 'any' && !row.phases.includes(this.#phase)) return violation(`${type} in phase ${this.#phase}`);
    if (row.times === 'once' && this.#asked.has(type)) return violation(`${type} a second time`);
    this.#asked.add(type);
    let body: unknown;
    try {
      body = shapes.body.parse(request.body);
    } catch {
      // the cause would quote the body
      return violation(`the body of ${type}`);
    }
    try {
      return { kind: 'reply', id, body: shapes.reply.parse(await row.handle(body)) };
    } catch (error) {
      const refusal = refusalOf(error, this.#contract.refusals);
      // a failure that the contract does not name is a bug: it ends the process as uncaught
      if (refusal === undefined) throw error;
      return { kind: 'refusal', id, ...refusal };
    }
  }
}

/** Serves descriptor 3 until it ends, then exits 0. Ends the process at once when it is not confined. */
export function serve<C extends Contract, Phase extends string>(options: ServeOptions<C, Phase>): Served<C, Phase> {
  endUnlessConfined();
  const { contract, atEnd } = options;
  const channel = new Socket({ fd: 3, readable: true, writable: true });
  // the table is typed by the contract; the server checks each body by the contract's shape before its handler sees it
  const table = options.table as Readonly<Record<string, AnyRow>>;
  const server = new Server(contract, table, options.firstPhase, channel);
  const frames = new FrameReader();
  const end = async (): Promise<void> => {
    await atEnd?.();
    process.exit(0);
  };
  channel.on('data', (chunk: Buffer) => {
    let payloads: Buffer[] = [];
    try {
      payloads = frames.push(chunk);
    } catch {
      violation('a frame breaks its limit');
    }
    for (const payload of payloads) server.take(payload);
  });
  channel.once('end', () => void end());
  channel.once('error', () => void end());
  return {
    tell: (type, body) => server.send({ kind: 'event', type, body }),
    enter: (phase) => server.enter(phase),
  };
}
