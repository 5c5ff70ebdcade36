import assert from 'node:assert/strict';

import type { WebSocket } from 'ws';
import { openChannel } from '../../../helpers/link/channel.ts';
import { connector } from '../../../helpers/link/connector.ts';
import { openLink } from '../../../helpers/link/handlers.ts';
import type { LinkHandlers } from '../../../helpers/link/handlers.ts';
import { LINK_MESSAGE_LIMIT_BYTES } from '../../../helpers/link/protocol.ts';
import { LinkRefused } from '../../../helpers/link/refused.ts';
import { decode, encode } from '../../../helpers/protocol/codec.ts';
import { readOrigin } from '../../../helpers/protocol/origin.ts';
import { questionSchema } from '../../../server/protocol.ts';
import { startFakeOrigin } from '../../fakes/fake-origin.ts';
import type { FakeOrigin, FakeOriginScript } from '../../fakes/fake-origin.ts';
import { makeTestAuthority } from '../../fakes/test-authority.ts';
import { skipBecause } from '../../skip.ts';

type Told = { type: string; body: { connection: number; bytes?: Uint8Array; reason?: string } };

const refusedWith =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof LinkRefused && error.code === code;

const question = (id: number, body: unknown = {}): Buffer =>
  encode({ kind: 'question', id, epoch: 1, sequence: id, type: 'control', body });
const answer = (id: number, body: unknown = {}): Buffer => encode({ kind: 'answer', id, epoch: 1, body });

describe('link: the control channel', () => {
  let origin: FakeOrigin | undefined;
  let link: LinkHandlers;
  let told: Told[];
  let wake: () => void;

  async function start(script: FakeOriginScript): Promise<void> {
    origin = await startFakeOrigin(script);
    told = [];
    wake = () => undefined;
    const facts = { origin: `http://127.0.0.1:${origin.port}`, loopbackHttp: true, authorities: undefined };
    link = openLink(facts, (type, body) => {
      told.push({ type, body });
      wake();
    });
  }
  async function heard(count: number): Promise<Told[]> {
    while (told.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return told;
  }
  afterEach(() => origin?.close());

  it('questions go out, answers come in as they are, in order', async () => {
    const arrived: string[] = [];
    await start({
      channel: (socket) =>
        socket.on('message', (data: Buffer) => {
          const { id } = questionSchema.parse(decode(data));
          arrived.push(data.toString('hex'));
          socket.send(answer(id, { content: Buffer.alloc(1000, id) }));
        }),
    });
    const { connection } = await link['link.open']({});
    for (const id of [1, 2, 3]) await link['link.send']({ connection, bytes: question(id) });
    const events = await heard(3);
    assert.deepEqual(
      arrived,
      [1, 2, 3].map((id) => question(id).toString('hex')),
    );
    const expected = [1, 2, 3].map((id) => answer(id, { content: Buffer.alloc(1000, id) }).toString('hex'));
    assert.deepEqual(
      events.map(({ body }) => Buffer.from(body.bytes ?? []).toString('hex')),
      expected,
    );
    for (const event of events) assert.deepEqual([event.type, event.body.connection], ['link.message', connection]);
  });

  it('over TLS the channel is checked like a call: trusted it opens, untrusted it does not', async function () {
    const made = makeTestAuthority();
    if (!made) return skipBecause(this, 'the openssl program');
    origin = await startFakeOrigin({ certificate: made.issue('IP:127.0.0.1'), channel: () => undefined });
    const facts = { origin: `https://127.0.0.1:${origin.port}`, loopbackHttp: false };
    const trusting = openLink({ ...facts, authorities: made.authority }, () => undefined);
    const { connection } = await trusting['link.open']({});
    await trusting['link.send']({ connection, bytes: question(1) });
    const doubting = openLink({ ...facts, authorities: undefined }, () => undefined);
    await assert.rejects(doubting['link.open']({}), refusedWith('TLS_UNTRUSTED'));
  });

  it('no extension is agreed: nothing that arrives is ever inflated', async () => {
    let extensions = 'unset';
    await start({
      channel: (socket) => {
        extensions = socket.extensions;
      },
    });
    await link['link.open']({});
    assert.equal(extensions, '');
  });

  const endings: Record<string, [string, (socket: WebSocket) => void]> = {
    'a text message': ['text-message', (socket) => socket.send('{"kind":"answer"}')],
    'an answer to no question': ['protocol', (socket) => socket.send(answer(9))],
    'the same answer twice': [
      'protocol',
      (socket) => {
        socket.send(answer(1));
        socket.send(answer(1));
      },
    ],
    'a message that is no answer': ['protocol', (socket) => socket.send(question(1))],
    'bytes that are no plain value': ['protocol', (socket) => socket.send(Buffer.from([0xc1]))],
    'an empty message': ['protocol', (socket) => socket.send(Buffer.alloc(0))],
    'a message beyond the limit': [
      'message-too-large',
      (socket) => socket.send(Buffer.alloc(LINK_MESSAGE_LIMIT_BYTES + 1)),
    ],
    'many pieces beyond the limit': [
      'message-too-large',
      (socket) => {
        for (let piece = 0; piece < 4; piece += 1) {
          socket.send(Buffer.alloc(LINK_MESSAGE_LIMIT_BYTES / 3), { fin: piece === 3 });
        }
      },
    ],
    'a close of the peer': ['closed-by-peer', (socket) => socket.close(1000)],
    'a cut of the line': ['network', (socket) => socket.terminate()],
  };
  for (const [what, [reason, act]] of Object.entries(endings)) {
    it(`${what} ends the channel as ${reason}, told once, and another can be opened`, async () => {
      await start({ channel: (socket) => socket.once('message', () => act(socket)) });
      const { connection } = await link['link.open']({});
      await link['link.send']({ connection, bytes: question(1) });
      while (told.at(-1)?.type !== 'link.closed') await heard(told.length + 1);
      assert.deepEqual(told.at(-1)?.body, { connection, reason });
      await assert.rejects(link['link.send']({ connection, bytes: question(2) }), refusedWith('CHANNEL_CLOSED'));
      const next = await link['link.open']({});
      assert.equal(next.connection, connection + 1);
      assert.equal(told.filter(({ type }) => type === 'link.closed').length, 1);
    });
  }

  it('an upgrade that is never answered is refused in time', async () => {
    await start({ upgrade: () => undefined });
    const one = readOrigin(`http://127.0.0.1:${origin?.port}`, true);
    const connect = connector({ origin: one, authorities: undefined });
    const nobody = { message: () => undefined, closed: () => undefined };
    await assert.rejects(openChannel(one, connect, nobody, 50), refusedWith('ANSWER_TIMEOUT'));
  });

  it('a message that comes with the upgrade is met, not lost', async () => {
    await start({ channel: (socket) => socket.send('at once') });
    const opened = await link['link.open']({}).catch(() => undefined);
    if (opened) assert.deepEqual((await heard(1)).at(-1)?.body, { ...opened, reason: 'text-message' });
  });

  it('one channel is open at a time, while it is being opened too, and closing it tells nothing', async () => {
    await start({ channel: () => undefined });
    const opening = link['link.open']({});
    await assert.rejects(link['link.open']({}), refusedWith('CHANNEL_OPEN'));
    const { connection } = await opening;
    await assert.rejects(link['link.open']({}), refusedWith('CHANNEL_OPEN'));
    await link['link.close']({ connection });
    const next = await link['link.open']({});
    await link['link.close']({ connection });
    await link['link.send']({ connection: next.connection, bytes: question(1) });
    assert.deepEqual(told, []);
  });

  const upgrades: Record<string, [string, FakeOriginScript]> = {
    'a redirect': ['REDIRECT_REFUSED', status('307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/')],
    'a refusal': ['SUBPROTOCOL_REFUSED', status('404 Not Found')],
    'a server that is not ready': ['ORIGIN_UNREACHABLE', status('503 Service Unavailable')],
    'another subprotocol': ['SUBPROTOCOL_REFUSED', { subprotocol: 'something-else.v9' }],
    'no subprotocol': ['SUBPROTOCOL_REFUSED', { subprotocol: false }],
    'no HTTP at all': ['ORIGIN_UNREACHABLE', { upgrade: (_, socket) => socket.end('hello\r\n\r\n') }],
    'a cut of the line': ['ORIGIN_UNREACHABLE', { upgrade: (_, socket) => socket.destroy() }],
  };
  for (const [what, [code, script]] of Object.entries(upgrades)) {
    it(`${what} instead of the upgrade is refused with ${code}, and a channel can be tried again`, async () => {
      await start(script);
      await assert.rejects(link['link.open']({}), refusedWith(code));
      await assert.rejects(link['link.open']({}), refusedWith(code));
      assert.deepEqual(told, []);
    });
  }
});

function status(line: string): FakeOriginScript {
  return { upgrade: (_, socket) => socket.end(`HTTP/1.1 ${line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`) };
}
