import assert from 'node:assert/strict';

import * as z from 'zod';
import { HelperClient, HelperGone, HelperRefused, HelperSilent, HelperViolation } from '../../actors/helper-client.ts';
import type { HelperEvent } from '../../actors/helper-client.ts';
import { encode } from '../../helpers/protocol/codec.ts';
import { encodeFrame } from '../../helpers/protocol/frame.ts';
import { startFakeHelper } from '../fakes/fake-helper.ts';
import type { FakeHelper, FakePeer } from '../fakes/fake-helper.ts';
import type { Request } from '../../helpers/protocol/envelope.ts';

const contract = {
  requests: {
    'echo.say': { body: z.strictObject({ text: z.string() }), reply: z.strictObject({ text: z.string() }) },
    'echo.change': { body: z.strictObject({}), reply: z.strictObject({}) },
  },
  events: { 'echo.heard': z.strictObject({ count: z.int() }) },
  refusals: ['TOO_LOUD'],
};
type Event = HelperEvent<typeof contract>;

describe('helper client', () => {
  let helper: FakeHelper | undefined;
  let client: HelperClient<typeof contract> | undefined;
  let told: Event[];

  async function connect(answer: (request: Request, peer: FakePeer) => void): Promise<HelperClient<typeof contract>> {
    helper = await startFakeHelper(answer);
    client = new HelperClient(await helper.connect(), contract, (event) => told.push(event));
    return client;
  }
  beforeEach(() => {
    told = [];
  });
  afterEach(async () => {
    client?.close();
    await helper?.close();
  });
  const say = (text: string, withinMs = 5000) => client?.request('echo.say', { text }, { withinMs });

  it('answers are matched by number, whatever their order, and events are told in order', async () => {
    const held: Request[] = [];
    await connect((request, peer) => {
      held.push(request);
      if (held.length < 2) return;
      peer.send({ kind: 'event', type: 'echo.heard', body: { count: 1 } });
      for (const { id, body } of held.toReversed()) peer.send({ kind: 'reply', id, body });
      peer.send({ kind: 'event', type: 'echo.heard', body: { count: 2 } });
    });
    assert.deepEqual(await Promise.all([say('a'), say('b')]), [{ text: 'a' }, { text: 'b' }]);
    await client?.request('echo.say', { text: 'again' }, { withinMs: 20 }).catch(() => undefined);
    assert.deepEqual(told.map((event) => event.body.count).slice(0, 2), [1, 2]);
  });

  it('a refusal carries the code of the contract, and the connection lives on', async () => {
    await connect(({ id, body }, peer) => {
      if ((body as { text: string }).text === 'loud')
        peer.send({ kind: 'refusal', id, code: 'TOO_LOUD', message: 'no' });
      else peer.send({ kind: 'reply', id, body });
    });
    await assert.rejects(
      say('loud') ?? Promise.resolve(),
      (error) => error instanceof HelperRefused && error.code === 'TOO_LOUD',
    );
    assert.deepEqual(await say('soft'), { text: 'soft' });
  });

  it('silence rejects in time, and the late answer of it is dropped', async () => {
    const held: number[] = [];
    await connect(({ id, body }, peer) => {
      held.push(id);
      if (held.length === 2) for (const one of held) peer.send({ kind: 'reply', id: one, body });
    });
    await assert.rejects(say('first', 20) ?? Promise.resolve(), HelperSilent);
    assert.deepEqual(await say('second'), { text: 'second' });
    assert.equal(client?.pending, 0);
  });

  it('an abort rejects with its reason at once, before and after sending', async () => {
    await connect(() => undefined);
    const controller = new AbortController();
    const waiting = client?.request('echo.change', {}, { withinMs: 5000, key: 'cmd/1', signal: controller.signal });
    controller.abort(new Error('stop'));
    await assert.rejects(waiting ?? Promise.resolve(), /stop/);
    const late = client?.request('echo.change', {}, { withinMs: 5000, signal: controller.signal });
    await assert.rejects(late ?? Promise.resolve(), /stop/);
    assert.equal(client?.pending, 0);
  });

  it('the end of the connection rejects everything that waits and everything asked later', async () => {
    await connect(({ id }, peer) => {
      if (id === 2) peer.end();
    });
    const results = await Promise.allSettled([say('a'), say('b')]);
    for (const result of results) assert.ok(result.status === 'rejected' && result.reason instanceof HelperGone);
    await assert.rejects(say('c') ?? Promise.resolve(), HelperGone);
    assert.ok((await client?.ended) instanceof HelperGone);
  });

  it('a body outside its shape is refused here: nothing is sent', async () => {
    await connect(({ id, body }, peer) => peer.send({ kind: 'reply', id, body }));
    await assert.rejects(say(7 as unknown as string) ?? Promise.resolve(), z.ZodError);
    await say('x');
    assert.equal(helper?.requests.length, 1);
    assert.equal(helper?.requests[0]?.id, 1);
  });

  const nonsense: Record<string, (request: Request, peer: FakePeer) => void> = {
    'a reply of another shape': ({ id }, peer) => peer.send({ kind: 'reply', id, body: { text: 1 } }),
    'a reply with a field too many': ({ id }, peer) => peer.send({ kind: 'reply', id, body: { text: 'a', more: 1 } }),
    'a reply to what was not asked': ({ id }, peer) => peer.send({ kind: 'reply', id: id + 1, body: { text: 'a' } }),
    'an unknown refusal': ({ id }, peer) => peer.send({ kind: 'refusal', id, code: 'WHATEVER', message: '' }),
    'an unknown event': (_, peer) => peer.send({ kind: 'event', type: 'echo.other', body: {} }),
    'an event of another shape': (_, peer) => peer.send({ kind: 'event', type: 'echo.heard', body: { count: 1.5 } }),
    'a request': (_, peer) => peer.send({ kind: 'request', version: 1, id: 1, type: 'echo.say', body: { text: 'a' } }),
    'a frame of no message': (_, peer) => peer.sendBytes(encodeFrame(encode({ hello: 1 }))),
    'a frame that is too long': (_, peer) => peer.sendBytes(Buffer.from([0xff, 0xff, 0xff, 0xff])),
    'bytes that are no msgpack': (_, peer) => peer.sendBytes(encodeFrame(Buffer.from([0xc1, 0xc1]))),
  };
  for (const [what, answer] of Object.entries(nonsense)) {
    it(`${what} ends the connection as a violation`, async () => {
      await connect(answer);
      await assert.rejects(say('a') ?? Promise.resolve(), HelperViolation);
      assert.ok((await client?.ended) instanceof HelperViolation);
    });
  }

  it('the same answer twice ends the connection as a violation, after the first was believed', async () => {
    await connect(({ id, body }, peer) => peer.send({ kind: 'reply', id, body }, { kind: 'reply', id, body }));
    assert.deepEqual(await say('a'), { text: 'a' });
    assert.ok((await client?.ended) instanceof HelperViolation);
  });

  it('what the listener throws is not laid at the helper’s door', async () => {
    helper = await startFakeHelper((_, peer) => peer.send({ kind: 'event', type: 'echo.heard', body: { count: 1 } }));
    const socket = await helper.connect();
    const own = new HelperClient(socket, contract, () => {
      throw new RangeError('bug of the listener');
    });
    const [listener] = socket.listeners('data');
    socket.removeAllListeners('data');
    const thrown = new Promise((resolve) => {
      socket.on('data', (chunk) => {
        try {
          listener?.(chunk);
        } catch (error) {
          resolve(error);
        }
      });
    });
    own.request('echo.say', { text: 'a' }, { withinMs: 5000 }).catch(() => undefined);
    assert.ok((await thrown) instanceof RangeError);
    own.close();
    assert.ok((await own.ended) instanceof HelperGone);
  });
});
