import { Pool } from 'undici';
import type { buildConnector } from 'undici';
import type { Connect } from './connector.ts';
import type { Origin } from '../protocol/origin.ts';
import { LINK_MESSAGE_LIMIT_BYTES } from './protocol.ts';
import type { LinkReply, PairingCall } from './protocol.ts';
import { LinkRefused, linkRefusedBecause } from './refused.ts';

/** Longest times of one call, in ms. */
export interface CallTimes {
  readonly headersMs: number;
  readonly bodyMs: number;
  readonly totalMs: number;
}

/** What a call to a healthy control plane stays far below. */
export const CALL_TIMES: CallTimes = { headersMs: 20_000, bodyMs: 10_000, totalMs: 30_000 };

const CONNECTIONS = 4;
const HEADER_BYTES = 16_384;

/** POSTs bytes of one pairing call; rejects with LinkRefused. */
export type Call = (call: PairingCall, bytes: Uint8Array) => Promise<LinkReply<'link.call'>>;

/** Prepares calls to the origin over connections of `connect`. */
export function caller(origin: Origin, connect: Connect, times: CallTimes = CALL_TIMES): Call {
  const pool = new Pool(origin.text, {
    connections: CONNECTIONS,
    pipelining: 1,
    maxHeaderSize: HEADER_BYTES,
    maxResponseSize: LINK_MESSAGE_LIMIT_BYTES,
    headersTimeout: times.headersMs,
    bodyTimeout: times.bodyMs,
    allowH2: false,
    connect: (_asked, done) => void handOver(connect, done),
  });
  return async (call, bytes) => {
    try {
      const { statusCode, body } = await pool.request({
        method: 'POST',
        path: `/api/pairing/${call}`,
        headers: { 'content-type': 'application/msgpack', accept: 'application/msgpack' },
        body: bytes,
        signal: AbortSignal.timeout(times.totalMs),
      });
      if (statusCode >= 300 && statusCode < 400) {
        await body.dump({ limit: 0 });
        throw new LinkRefused('REDIRECT_REFUSED', 'the origin points to another address; none is followed');
      }
      return { status: statusCode, bytes: new Uint8Array(await body.arrayBuffer()) };
    } catch (error) {
      throw linkRefusedBecause(error);
    }
  };
}

async function handOver(connect: Connect, done: buildConnector.Callback): Promise<void> {
  let socket;
  try {
    socket = await connect();
  } catch (error) {
    return done(linkRefusedBecause(error), null);
  }
  return done(null, socket);
}
