import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { decodeMessage, encodeMessage } from '../../helpers/protocol/envelope.ts';
import type { Message, Request } from '../../helpers/protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../../helpers/protocol/frame.ts';

/** One connection of a fake helper: what it may say, well-formed or not. */
export interface FakePeer {
  send(...messages: Message[]): void;
  sendBytes(bytes: Uint8Array): void;
  end(): void;
}

/** A helper on a real socket whose answers a test scripts. */
export interface FakeHelper {
  readonly requests: Request[];
  connect(): Promise<net.Socket>;
  close(): Promise<void>;
}

/** Starts a fake helper on a Unix socket; `answer` is called for each request, in order. */
export async function startFakeHelper(answer: (request: Request, peer: FakePeer) => void): Promise<FakeHelper> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'fake-helper-'));
  const address = path.join(folder, 'socket');
  const requests: Request[] = [];
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    const reader = new FrameReader();
    const peer = peerOf(socket);
    socket.on('data', (chunk) => {
      for (const payload of reader.push(chunk)) {
        const message = decodeMessage(payload);
        if (message.kind !== 'request') throw new TypeError('a fake helper is only ever asked');
        requests.push(message);
        answer(message, peer);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(address, resolve));
  return {
    requests,
    connect: () =>
      new Promise((resolve, reject) => {
        const socket = net.connect(address, () => resolve(socket));
        socket.once('error', reject);
      }),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      fs.rmSync(folder, { recursive: true });
    },
  };
}

function peerOf(socket: net.Socket): FakePeer {
  return {
    send: (...messages) => {
      socket.write(Buffer.concat(messages.map((message) => encodeFrame(encodeMessage(message)))));
    },
    sendBytes: (bytes) => {
      socket.write(bytes);
    },
    end: () => {
      socket.end();
    },
  };
}
