/*
 * What travels in a frame between `daemon` (or `server`) and a helper: requests one way, replies and events the other.
 *
 *   request  {kind: 'request', id, type, key?, body}     asked by the peer that connected the row to its work
 *   reply    {kind: 'reply', id, body}                   the answer of type `type`, shaped by the owner's protocol.ts
 *   refusal  {kind: 'refusal', id, code, message}        policy said no, or it was tried and broke; never a stack or a path
 *   event    {kind: 'event', type, body}                 told unasked by the helper: progress, exits, arriving bytes
 *
 * `key` is the idempotency key of a request that changes something: once it was answered by a reply, the same key and
 * body get that reply, and the key with another body ends the helper; what was refused is tried anew.
 */
import * as z from 'zod';
import { decode, encode } from './codec.ts';

/** Version of this envelope; a peer with another one is a protocol violation. */
export const ENVELOPE_VERSION = 1;

const id = z.int().min(1);
const type = z
  .string()
  .regex(/^[a-z-]+(\.[a-z-]+)+$/)
  .max(64);

/** Closed shape of every message between helpers. */
export const messageSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('request'),
    version: z.literal(ENVELOPE_VERSION),
    id,
    type,
    key: z.string().min(1).max(160).optional(),
    body: z.unknown(),
  }),
  z.strictObject({ kind: z.literal('reply'), id, body: z.unknown() }),
  z.strictObject({
    kind: z.literal('refusal'),
    id,
    code: z
      .string()
      .regex(/^[A-Z][A-Z0-9_]*$/)
      .max(64),
    message: z.string().max(400),
  }),
  z.strictObject({ kind: z.literal('event'), type, body: z.unknown() }),
]);

/** One message between two processes of the product. */
export type Message = z.infer<typeof messageSchema>;
/** A question to a helper. */
export type Request = Extract<Message, { kind: 'request' }>;

/** Writes one message as a frame payload. */
export function encodeMessage(message: Message): Buffer {
  return encode(message);
}

/** Reads one message from a frame payload; the body is still unknown. Throws CodecError or ZodError. */
export function decodeMessage(payload: Uint8Array): Message {
  return messageSchema.parse(decode(payload));
}
