import http from 'node:http';
import https from 'node:https';
import type net from 'node:net';
import type { Duplex } from 'node:stream';

import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { SUBPROTOCOL } from '../../server/protocol.ts';
import type { TestCertificate } from './test-authority.ts';

/** What a fake origin does with what arrives. */
export interface FakeOriginScript {
  readonly certificate?: TestCertificate;
  readonly call?: (request: http.IncomingMessage, body: Buffer, response: http.ServerResponse) => void;
  readonly upgrade?: (request: http.IncomingMessage, socket: Duplex) => void;
  readonly channel?: (socket: WebSocket) => void;
  readonly subprotocol?: string | false;
}

/** An HTTP or HTTPS server on 127.0.0.1 with a control channel. */
export interface FakeOrigin {
  readonly port: number;
  /** Connections that were accepted so far. */
  readonly connections: () => number;
  close(): Promise<void>;
}

/** Starts a fake origin on a free port. */
export async function startFakeOrigin(script: FakeOriginScript): Promise<FakeOrigin> {
  const server = script.certificate ? https.createServer({ ...script.certificate }) : http.createServer();
  const sockets = new Set<net.Socket>();
  let connections = 0;
  server.on('connection', (socket: net.Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  server.on('tlsClientError', () => undefined);
  server.on('request', (request: http.IncomingMessage, response: http.ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => script.call?.(request, Buffer.concat(chunks), response));
  });
  const upgrades = new WebSocketServer({
    noServer: true,
    perMessageDeflate: true,
    handleProtocols: () => script.subprotocol ?? SUBPROTOCOL,
  });
  server.on('upgrade', (request: http.IncomingMessage, socket: Duplex, head: Buffer) => {
    if (script.upgrade) return script.upgrade(request, socket);
    return upgrades.handleUpgrade(request, socket, head, (channel) => {
      channel.on('error', () => undefined);
      script.channel?.(channel);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('a server on TCP has an address');
  return {
    port: address.port,
    connections: () => connections,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
