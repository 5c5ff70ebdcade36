/*
 * link: the only process with a network. It carries opaque bytes between `daemon` and one API origin.
 *
 *   transport   channel 3, frames of helpers/protocol/frame.ts, messages of envelope.ts
 *   asks        `daemon`
 *   tells       `daemon`, by events: bytes that arrived, the connection's end
 *   trust       `daemon` believes nothing that arrives here unless the pinned key signed it; `link` believes nothing at all.
 *               A taken-over link can delay, drop and repeat, and gains an outage
 *
 * The origin and the CA file are launch facts (the supervisor's configuration), never part of a request.
 */
import * as z from 'zod';
import { bytesTo } from '../protocol/ids.ts';

/** Raised by any change of a union below. */
export const LINK_PROTOCOL_VERSION = 1;

/** Largest WebSocket message or HTTP body either way, in bytes. */
export const LINK_MESSAGE_LIMIT_BYTES = 786_432;

/** The closed list of HTTPS calls; pairing alone uses them. */
export const pairingCallSchema = z.enum(['enrol', 'start', 'poll', 'claim', 'confirm', 'cancel', 'replace']);
export type PairingCall = z.infer<typeof pairingCallSchema>;

export const linkRequests = {
  /** POSTs bytes to `/api/pairing/<call>` of the origin and returns the answer; no redirect is followed. */
  'link.call': {
    body: z.strictObject({ call: pairingCallSchema, bytes: bytesTo(LINK_MESSAGE_LIMIT_BYTES) }),
    reply: z.strictObject({ status: z.int(), bytes: bytesTo(LINK_MESSAGE_LIMIT_BYTES) }),
  },
  /** Opens the one control channel; refused while one is open. */
  'link.open': { body: z.strictObject({}), reply: z.strictObject({ connection: z.int().min(1) }) },
  /** Sends one message on the open channel. */
  'link.send': {
    body: z.strictObject({ connection: z.int().min(1), bytes: bytesTo(LINK_MESSAGE_LIMIT_BYTES) }),
    reply: z.strictObject({}),
  },
  /** Closes the channel; no event follows. */
  'link.close': { body: z.strictObject({ connection: z.int().min(1) }), reply: z.strictObject({}) },
} as const;

export const linkEvents = {
  'link.message': z.strictObject({ connection: z.int().min(1), bytes: bytesTo(LINK_MESSAGE_LIMIT_BYTES) }),
  'link.closed': z.strictObject({
    connection: z.int().min(1),
    reason: z.enum(['closed-by-peer', 'network', 'message-too-large', 'text-message', 'protocol']),
  }),
} as const;

export type LinkRequest = keyof typeof linkRequests;
export type LinkBody<Type extends LinkRequest> = z.infer<(typeof linkRequests)[Type]['body']>;
export type LinkReply<Type extends LinkRequest> = z.infer<(typeof linkRequests)[Type]['reply']>;
export type LinkEvent = keyof typeof linkEvents;
export type LinkEventBody<Type extends LinkEvent> = z.infer<(typeof linkEvents)[Type]>;

/** Why the network did not answer; each has its own remedy in `doctor`. */
export const linkRefusals = [
  'ORIGIN_UNRESOLVED',
  'ORIGIN_UNREACHABLE',
  'TLS_NAME_MISMATCH',
  'TLS_UNTRUSTED',
  'TLS_EXPIRED',
  'REDIRECT_REFUSED',
  'SUBPROTOCOL_REFUSED',
  'ANSWER_TOO_LARGE',
  'ANSWER_TIMEOUT',
  'CHANNEL_OPEN',
  'CHANNEL_CLOSED',
  'ORIGIN_NOT_PERMITTED',
] as const;
export type LinkRefusal = (typeof linkRefusals)[number];
