/*
 * Serves the owner's command line on its inherited listener. Nonsense closes that one connection; a refusal is an answer.
 */
import net from 'node:net';
import type { Socket } from 'node:net';
import { decodeMessage, encodeMessage } from '../helpers/protocol/envelope.ts';
import type { Message, Request } from '../helpers/protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../helpers/protocol/frame.ts';
import { daemonRequests } from './protocol.ts';
import type { DaemonBody, DaemonRefusal, DaemonReply, DaemonRequest } from './protocol.ts';

/** One handler for each request of protocol.ts. */
export type OwnerTable = { readonly [Type in DaemonRequest]: (body: DaemonBody<Type>) => Promise<DaemonReply<Type>> };

/** An answer that is no: `code` is one of protocol.ts. */
export class OwnerRefused extends Error {
  override readonly name = 'OwnerRefused';
  readonly code: DaemonRefusal;

  constructor(code: DaemonRefusal, message: string) {
    super(message);
    this.code = code;
  }
}

/** What happens once the reply to a request has left this process. */
export type AfterReply = { readonly [Type in DaemonRequest]?: () => void };

/** Serves the listener that the daemon inherited. */
export function serveOwner(descriptor: number, table: OwnerTable, after: AfterReply): net.Server {
  const server = net.createServer((socket) => serveOne(socket, table, after));
  server.listen({ fd: descriptor });
  return server;
}

function serveOne(socket: Socket, table: OwnerTable, after: AfterReply): void {
  const reader = new FrameReader();
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    try {
      for (const payload of reader.push(chunk)) {
        const message = decodeMessage(payload);
        if (message.kind !== 'request') throw new TypeError('a command line asks and does not answer');
        void reply(socket, table, message, after);
      }
    } catch {
      // Whatever it is that cannot speak the protocol: this connection ends, the daemon goes on.
      socket.destroy();
    }
  });
}

async function reply(socket: Socket, table: OwnerTable, request: Request, after: AfterReply): Promise<void> {
  const message = await answer(table, request);
  if (!socket.writable) return;
  const then =
    message.kind === 'reply' ? Object.entries(after).find(([type]) => type === request.type)?.[1] : undefined;
  socket.write(encodeFrame(encodeMessage(message)), () => then?.());
}

async function answer(table: OwnerTable, request: Request): Promise<Message> {
  const { id } = request;
  try {
    return { kind: 'reply', id, body: await dispatch(table, request) };
  } catch (error) {
    if (error instanceof OwnerRefused) return { kind: 'refusal', id, code: error.code, message: error.message };
    const code = refusalOf(error);
    return {
      kind: 'refusal',
      id,
      code,
      message:
        code === 'REQUEST_INVALID'
          ? 'The request has no shape that this daemon knows; are both of one version?'
          : messageOf(error),
    };
  }
}

async function dispatch(table: OwnerTable, request: Request): Promise<unknown> {
  const type = Object.keys(daemonRequests).find((known): known is DaemonRequest => known === request.type);
  if (type === undefined) throw new OwnerRefused('REQUEST_INVALID', 'The daemon knows no such request.');
  // The body was checked by the schema of the same key; the compiler cannot follow the union through the lookup.
  const answered = await (table[type] as (body: unknown) => Promise<unknown>)(
    daemonRequests[type].body.parse(request.body),
  );
  // A reply outside its shape is this daemon's own mistake and must not look like the command line's.
  return daemonRequests[type].reply.parse(answered);
}

function refusalOf(error: unknown): string {
  if (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^[A-Z][A-Z0-9_]*$/.test(error.code)
  )
    return error.code;
  return error instanceof Error && error.name === 'ZodError' ? 'REQUEST_INVALID' : 'HELPER_UNAVAILABLE';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.slice(0, 400) : 'The request could not be carried out.';
}
