import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { HelperRefused } from '../../actors/helper-client.ts';
import { connectPromote } from '../../actors/promote.ts';
import type { PromoteClient } from '../../actors/promote.ts';
import { Peer } from '../../daemon/peers.ts';
import { NO_DRAFT, Promoter } from '../../daemon/promoter.ts';
import { decodeMessage, encodeMessage } from '../../helpers/protocol/envelope.ts';
import type { Message } from '../../helpers/protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../../helpers/protocol/frame.ts';
import { listenAt, unixSocket } from '../../helpers/runtime/native-sockets.ts';

/** What a promote answers to its first request: the slot that it was started for, or a refusal. */
type Answer = number | 'BUSY';

describe('a promote is lent', () => {
  let folder: string;
  let peer: Peer<PromoteClient>;
  let promoter: Promoter;
  let asked: number[];
  /** Connections of promotes, in the order in which they came. */
  let came: net.Socket[];
  /** Answers of those that will be started, in order; a start beyond them starts nothing. */
  let answers: Answer[];

  beforeEach(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'promoter-'));
    [asked, came, answers] = [[], [], []];
    peer = new Peer('promote', (socket) => connectPromote(socket, () => undefined), assert.fail);
    const listener = unixSocket();
    listenAt(listener, path.join(folder, 'promote.sock'), 8);
    await peer.listen(listener);
    promoter = new Promoter(peer, (slot) => {
      asked.push(slot);
      const answer = answers.shift();
      if (answer !== undefined) come(answer);
    });
  });
  afterEach(() => {
    peer.close();
    for (const socket of came) socket.destroy();
    fs.rmSync(folder, { recursive: true });
  });

  /** A promote connects, and answers its recovery. */
  function come(answer: Answer): net.Socket {
    const socket = net.connect(path.join(folder, 'promote.sock'));
    came.push(socket);
    const reader = new FrameReader();
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      for (const payload of reader.push(bytes)) {
        const message = decodeMessage(payload);
        assert.ok(message.kind === 'request' && message.type === 'promote.recover', 'nothing else is asked of it');
        const { id } = message;
        const body = { slot: answer, outcome: 'nothing-to-do', conflicts: [], promoted: [] };
        const reply: Message =
          answer === 'BUSY' ? { kind: 'refusal', id, code: answer, message: 'm' } : { kind: 'reply', id, body };
        socket.write(encodeFrame(encodeMessage(reply)));
      }
    });
    return socket;
  }

  const slotOf = (slot: number): Promise<number> =>
    promoter.lend(slot, [], (_, recovered) => Promise.resolve(recovered.slot));

  it('on its own draft only: one of another draft is ended and the right one asked for', async () => {
    answers = [7, 9];
    assert.equal(await slotOf(9), 9);
    assert.deepEqual(asked, [9, 9]);
    for (const socket of came) if (!socket.closed) await once(socket, 'close');
  });

  it('never after it was refused: it is ended with the refusal', async () => {
    answers = ['BUSY', 9];
    await assert.rejects(slotOf(8), (error) => error instanceof HelperRefused && error.code === 'BUSY');
    await once(came[0] ?? assert.fail(), 'close');
    assert.equal(await slotOf(9), 9);
  });

  it('anew for each piece of work: one that came too late and still waits is ended first', async () => {
    const late = come(7);
    await once(late, 'connect');
    await peer.connected(1000);
    answers = [9];
    assert.equal(await slotOf(9), 9);
    assert.ok(late.closed);
  });

  it('on no draft at all, whichever one comes: what it settled is not lost', async () => {
    answers = [7];
    assert.equal(await slotOf(NO_DRAFT), 7);
  });

  it('for one piece of work, which ends with it, whatever comes of it', async () => {
    answers = [9, 9];
    await slotOf(9);
    await once(came[0] ?? assert.fail(), 'close');
    await assert.rejects(
      promoter.lend(9, [], () => Promise.reject(new RangeError('broke'))),
      RangeError,
    );
    await once(came[1] ?? assert.fail(), 'close');
  });
});
