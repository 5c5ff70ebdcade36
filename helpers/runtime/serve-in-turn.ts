/*
 * Answers requests on a role's channel one after another, with the process blocked in between: no event loop, no stream and no
 * promise stands between a request and its reply. For a role with one peer, whose handlers wait for nothing.
 *
 *   read ─► frames ─► plain value ─► envelope ─► handler of the contract ─► body's shape ─► handler ─► reply or refusal ─► write
 *
 * As in serve.ts, whatever is unknown, malformed or out of order ends the process with EXIT_PROTOCOL_VIOLATION (S-004, S-005), and a
 * handler that breaks ends it too. An idempotency key is out of order here: what such a role does is done once or the same again by its own rules. The end of
 * the channel is the wish to end.
 */
import fs from 'node:fs';

import { encodeMessage, type Message, type Request } from '../protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../protocol/frame.ts';
import { endUnlessConfined } from './confined.ts';
import { refusalOf, requestOf, violation, type Contract } from './serve-contract.ts';

const CHANNEL = 3;
const CHUNK_BYTES = 65_536;
/** Reads between two turns of the event loop, which the engine's own tasks wait for. */
const READS_IN_A_TURN = 256;

/** One function for each request: it returns the reply, or throws an Error whose `code` is one of the contract's refusals. */
export type Handlers<C extends Contract> = {
  readonly [Type in keyof C['requests']]: (
    body: ReturnType<C['requests'][Type]['body']['parse']>,
  ) => ReturnType<C['requests'][Type]['reply']['parse']>;
};

/** What a role is served with. `afterwards` runs when every request that has arrived is answered. */
export type InTurn<C extends Contract> = {
  readonly contract: C;
  readonly handlers: Handlers<C>;
  readonly afterwards?: () => void;
};

/** Serves descriptor 3, which must block, until it ends, then exits 0. Ends the process at once when it is not confined. */
export function serveInTurn<C extends Contract>({ contract, handlers, afterwards }: InTurn<C>): void {
  endUnlessConfined();
  // the handlers are typed by the contract; each body has passed its shape before its handler sees it
  const table = handlers as unknown as Readonly<Record<string, (body: unknown) => unknown>>;
  const frames = new FrameReader();
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let lastId = 0;
  const takeChunk = (): void => {
    const length = readChannel(chunk);
    for (const payload of framesOf(frames, chunk.subarray(0, length))) {
      const request = requestOf(payload, lastId);
      if (request.key !== undefined) violation('a request has a key');
      lastId = request.id;
      writeChannel(encodeFrame(encodeMessage(answer(contract, table, request))));
    }
    afterwards?.();
  };
  const turn = (): void => {
    for (let read = 0; read < READS_IN_A_TURN; read += 1) takeChunk();
    setImmediate(turn);
  };
  turn();
}

function framesOf(frames: FrameReader, bytes: Buffer): Buffer[] {
  try {
    // what is not whole yet is held by the reader, and the chunk is read into again
    return frames.push(Buffer.from(bytes));
  } catch {
    return violation('a frame breaks its limit');
  }
}

function answer(
  contract: Contract,
  handlers: Readonly<Record<string, (body: unknown) => unknown>>,
  { type, id, body }: Request,
): Message {
  const shapes = Object.hasOwn(contract.requests, type) ? contract.requests[type] : undefined;
  const handle = Object.hasOwn(handlers, type) ? handlers[type] : undefined;
  if (shapes === undefined || handle === undefined) return violation('a request is unknown');
  const asked = shaped(shapes.body, body, type);
  try {
    return { kind: 'reply', id, body: shapes.reply.parse(handle(asked)) };
  } catch (error) {
    const refusal = refusalOf(error, contract.refusals);
    // a failure that the contract does not name is a bug: it ends the process as uncaught
    if (refusal === undefined) throw error;
    return { kind: 'refusal', id, ...refusal };
  }
}

function shaped(shape: { parse(value: unknown): unknown }, body: unknown, type: string): unknown {
  try {
    return shape.parse(body);
  } catch {
    // the cause would quote the body
    return violation(`the body of ${type}`);
  }
}

/** Bytes that arrived; the process ends with the channel. */
function readChannel(chunk: Buffer): number {
  const length = orEnded(() => fs.readSync(CHANNEL, chunk, 0, chunk.length, null));
  return length === 0 ? process.exit(0) : length;
}

function writeChannel(bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += orEnded(() => fs.writeSync(CHANNEL, bytes, at));
}

function orEnded(call: () => number): number {
  try {
    return call();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ECONNRESET' || code === 'EPIPE') return process.exit(0);
    throw error;
  }
}
