import websocket from '@fastify/websocket';
import type { FastifyInstance } from 'fastify';
import type { Work } from '../commands/work.ts';
import { addressSubject } from '../accounts/limits.ts';
import { CHANNEL_PATH, MESSAGE_LIMIT_BYTES, SUBPROTOCOL } from '../protocol.ts';
import { serveChannel } from './connection.ts';
import { Unproved } from './unproved.ts';

/** Most connections of machines to one process. */
const CONNECTION_LIMIT = 4096;

/** The control channel: one WebSocket a machine, one subprotocol, no compression, no message above the limit. */
export async function routes(app: FastifyInstance, work: Work): Promise<void> {
  await app.register(websocket, {
    options: {
      maxPayload: MESSAGE_LIMIT_BYTES,
      perMessageDeflate: false,
      handleProtocols: () => SUBPROTOCOL,
    },
  });
  const unproved = new Unproved();
  app.route({
    method: 'GET',
    url: CHANNEL_PATH,
    preValidation: async (request, reply) => {
      // There is no other version to fall back to (R6).
      if (offered(request.headers['sec-websocket-protocol']).includes(SUBPROTOCOL)) return;
      const message = `expected the subprotocol ${SUBPROTOCOL}; update the executor or this control plane`;
      await reply.code(400).send({ code: 'PROTOCOL_VERSION_UNSUPPORTED', message });
    },
    handler: async (_request, reply) => {
      await reply.code(426).send({ code: 'UPGRADE_REQUIRED', message: 'this address is for executors alone' });
    },
    wsHandler: (socket, request) => {
      const hasRoom = app.websocketServer.clients.size <= CONNECTION_LIMIT;
      if (hasRoom && unproved.admit(socket, addressSubject(request.ip), performance.now()))
        serveChannel(work, socket, () => unproved.release(socket));
      else socket.close(1013, 'too many connections');
    },
  });
}

function offered(header: string | string[] | undefined): readonly string[] {
  return String(header ?? '')
    .split(',')
    .map((name) => name.trim());
}
