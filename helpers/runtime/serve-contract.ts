/*
 * What the two ways of serving a role share: its contract, its refusals, and the end of a process whose peer broke the protocol.
 */
import { decodeMessage, type Message, type Request } from '../protocol/envelope.ts';
import { EXIT_VIOLATION } from './exits.ts';

/** What checks one body: a zod schema, of which nothing but `parse` is used. */
type Shape = { parse(value: unknown): unknown };

/** What the owner's protocol.ts declares. */
export type Contract = {
  readonly requests: Readonly<Record<string, { readonly body: Shape; readonly reply: Shape }>>;
  readonly events: Readonly<Record<string, Shape>>;
  readonly refusals: readonly string[];
};

/** Ends the process: the peer is our own code, so what it sent is a bug or a break-in. */
export function violation(what: string): never {
  process.stderr.write(`protocol violation: ${what}\n`);
  return process.exit(EXIT_VIOLATION);
}

/** The request in a frame; the process ends where it is none, or its number is not above the last one. */
export function requestOf(payload: Buffer, lastId: number): Request {
  let message: Message;
  try {
    message = decodeMessage(payload);
  } catch {
    // the cause would quote the bytes
    return violation('a frame is no message');
  }
  if (message.kind !== 'request') return violation(`a ${message.kind} arrived`);
  if (message.id <= lastId) return violation('a number of a request came again');
  return message;
}

/** What a thrown error refuses with, or undefined where the contract does not name it. */
export function refusalOf(error: unknown, refusals: readonly string[]): { code: string; message: string } | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  return refusals.includes(error.code) ? { code: error.code, message: error.message.slice(0, 400) } : undefined;
}
