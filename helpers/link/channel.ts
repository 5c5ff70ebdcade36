/*
 * The control channel: one WebSocket whose messages are counted, bounded and framed, and otherwise opaque.
 *
 * THREAT: whoever speaks at the other end wants a daemon to read what it did not ask for. A message that is no answer of
 * server/protocol.ts, or answers no open question, ends the channel here and never reaches `daemon`.
 */
import { WebSocket } from 'ws';
import { decode } from '../protocol/codec.ts';
import { answerSchema, CHANNEL_PATH, questionSchema, SUBPROTOCOL } from '../../server/protocol.ts';
import type { Connect } from './connector.ts';
import type { Origin } from '../protocol/origin.ts';
import { LINK_MESSAGE_LIMIT_BYTES } from './protocol.ts';
import type { LinkEventBody } from './protocol.ts';
import { LinkRefused, linkRefusedBecause } from './refused.ts';

/** Longest wait for the answer to the upgrade, in ms. */
export const UPGRADE_MS = 10_000;
/** Longest wait for the peer's half of a close, in ms. */
const CLOSE_MS = 1000;

/** Why a channel ended that was not closed here. */
export type ClosedBecause = LinkEventBody<'link.closed'>['reason'];

/** What a channel tells: answers in order, then why it ended, once. */
export interface Listener {
  message(bytes: Uint8Array): void;
  closed(reason: ClosedBecause): void;
}

/** An open channel. */
export interface Channel {
  /** Sends one question; resolves when the kernel has it. Rejects with LinkRefused: CHANNEL_CLOSED. Throws CodecError or ZodError for what is no question. */
  send(bytes: Uint8Array): Promise<void>;
  /** Closes without a word to the listener. */
  close(): void;
}

/** Opens the channel; `upgradeMs` is the longest wait for the answer to the upgrade. Rejects with LinkRefused. */
export async function openChannel(
  origin: Origin,
  connect: Connect,
  listener: Listener,
  upgradeMs: number = UPGRADE_MS,
): Promise<Channel> {
  const connection = await connect();
  const scheme = origin.isSecure ? 'wss:' : 'ws:';
  const socket = new WebSocket(`${origin.text.replace(/^https?:/, scheme)}${CHANNEL_PATH}`, [SUBPROTOCOL], {
    createConnection: () => connection,
    perMessageDeflate: false,
    maxPayload: LINK_MESSAGE_LIMIT_BYTES,
    followRedirects: false,
    rejectUnauthorized: true,
  });
  return upgraded(socket, listener, upgradeMs);
}

function upgraded(socket: WebSocket, listener: Listener, withinMs: number): Promise<Channel> {
  return new Promise((resolve, reject) => {
    let refused: LinkRefused | undefined;
    const timer = setTimeout(() => {
      refused = new LinkRefused('ANSWER_TIMEOUT', 'no answer to the upgrade in time');
      socket.terminate();
    }, withinMs);
    socket.once('unexpected-response', (request, { statusCode = 0 }) => {
      refused = refusalOfStatus(statusCode);
      request.destroy(refused);
    });
    socket.once('upgrade', ({ headers }) => {
      if (headers['sec-websocket-protocol'] === SUBPROTOCOL) return;
      refused = new LinkRefused('SUBPROTOCOL_REFUSED', `the origin does not speak ${SUBPROTOCOL}`);
    });
    socket.once('error', (error) => {
      clearTimeout(timer);
      reject(refused ?? linkRefusedBecause(error));
    });
    socket.once('open', () => {
      clearTimeout(timer);
      socket.removeAllListeners('error');
      // In this very turn: a message that came with the upgrade would be lost to a later one.
      resolve(serveChannel(socket, listener));
    });
  });
}

function refusalOfStatus(status: number): LinkRefused {
  if (status >= 300 && status < 400) {
    return new LinkRefused('REDIRECT_REFUSED', 'the origin points to another address; none is followed');
  }
  if (status >= 500 || status === 429)
    return new LinkRefused('ORIGIN_UNREACHABLE', `the origin is not ready (${status})`);
  return new LinkRefused('SUBPROTOCOL_REFUSED', `the origin offers no control channel (${status})`);
}

function serveChannel(socket: WebSocket, listener: Listener): Channel {
  const open = new Set<number>();
  let reason: ClosedBecause | undefined;
  let isQuiet = false;
  const end = (because: ClosedBecause, code: number): void => {
    reason ??= because;
    socket.close(code);
    setTimeout(() => socket.terminate(), CLOSE_MS).unref();
  };
  socket.on('message', (data, isBinary) => {
    if (reason !== undefined || isQuiet) return;
    if (!isBinary) return end('text-message', 1003);
    const bytes = Buffer.isBuffer(data) ? data : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)]);
    if (!isAnswerTo(open, bytes)) return end('protocol', 1002);
    return listener.message(bytes);
  });
  socket.on('error', (error) => {
    reason ??= reasonOf(error);
  });
  socket.on('close', (code) => {
    if (!isQuiet) listener.closed(reason ?? (code === 1006 ? 'network' : 'closed-by-peer'));
  });
  return {
    send: (bytes) => {
      open.add(questionSchema.parse(decode(bytes)).id);
      return sent(socket, bytes);
    },
    close: () => {
      isQuiet = true;
      end('closed-by-peer', 1000);
    },
  };
}

function isAnswerTo(open: Set<number>, bytes: Uint8Array): boolean {
  try {
    return open.delete(answerSchema.parse(decode(bytes)).id);
  } catch {
    // Bytes that are no answer are the answer to the question of this function.
    return false;
  }
}

function reasonOf(error: Error): ClosedBecause {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') return 'message-too-large';
  return code.startsWith('WS_ERR_') ? 'protocol' : 'network';
}

function sent(socket: WebSocket, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    if (socket.readyState !== WebSocket.OPEN) return reject(new LinkRefused('CHANNEL_CLOSED', 'the channel is closed'));
    return socket.send(bytes, { binary: true }, (error) => {
      if (error) reject(new LinkRefused('CHANNEL_CLOSED', 'the channel closed while sending', { cause: error }));
      else resolve();
    });
  });
}
