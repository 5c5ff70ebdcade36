import assert from 'node:assert/strict';
import fs from 'node:fs';

import { encode } from '../../../helpers/protocol/codec.ts';
import { decodeMessage, encodeMessage, type Message } from '../../../helpers/protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../../../helpers/protocol/frame.ts';
import { EXIT_VIOLATION, type Exit } from '../../../helpers/runtime/exits.ts';
import type { Installation } from '../../../helpers/runtime/installation.ts';
import { UID_BASE } from '../../../helpers/runtime/privileges.ts';
import type { Started } from '../../../helpers/runtime/start.ts';
import { installForTest, startRoleForTest } from '../../fixtures/start-role.ts';
import { until } from '../../fixtures/until.ts';

const VIOLATION: Exit = { by: 'code', code: EXIT_VIOLATION };
const request = (id: number, type: string, body: unknown, key?: string): Message => ({
  kind: 'request',
  version: 1,
  id,
  type,
  ...(key === undefined ? {} : { key }),
  body,
});
const OPEN = request(1, 'counter.open', {});

const byText = (one: Message, other: Message): number => JSON.stringify(one).localeCompare(JSON.stringify(other));

describe('serving a role', () => {
  let installation: Installation;
  let remove: () => void;
  let started: Started;
  let answers: Message[];
  const nothing = fs.openSync('/dev/null', 'r');

  before(async () => {
    ({ installation, remove } = await installForTest({ link: 'test/fixtures/roles/counter.ts' }));
  });
  after(() => remove());
  beforeEach(() => {
    const user = process.getuid?.() === 0 ? { uid: UID_BASE + 2, gid: UID_BASE + 2 } : undefined;
    started = startRoleForTest(installation, 'link', { 4: nothing }, { user, origin: 'https://localhost' });
    answers = [];
    const frames = new FrameReader();
    started.channel?.on('error', () => undefined);
    started.channel?.on('data', (bytes: Buffer) => answers.push(...frames.push(bytes).map(decodeMessage)));
  });
  afterEach(() => started.end('SIGKILL'));

  const send = (...messages: Message[]): void => {
    for (const message of messages) started.channel?.write(encodeFrame(encodeMessage(message)));
  };
  const answered = (count: number): Promise<Message[]> =>
    until(`${count} answers`, () => (answers.length >= count ? answers : undefined));

  it('answers, tells an event, refuses by a code of the contract, and ends with its channel', async () => {
    send(OPEN, request(2, 'counter.add', { by: 100 }), request(3, 'counter.add', { by: 1 }));
    const expected: Message[] = [
      { kind: 'reply', id: 1, body: {} },
      { kind: 'event', type: 'counter.full', body: { total: 100 } },
      { kind: 'reply', id: 2, body: { total: 100 } },
      { kind: 'refusal', id: 3, code: 'TOO_MUCH', message: 'one hundred is the limit' },
    ];
    assert.deepEqual((await answered(4)).toSorted(byText), expected.toSorted(byText));
    started.channel?.end();
    assert.deepEqual(await started.exited, { by: 'code', code: 0 });
  });

  it('a slow request does not hold up a later one', async () => {
    send(request(1, 'counter.slow', {}), request(2, 'counter.open', {}));
    const order = (await answered(2)).map((answer) => 'id' in answer && answer.id);
    assert.deepEqual(order, [2, 1]);
  });

  it('the same key with the same bytes has one effect and one answer', async () => {
    send(
      OPEN,
      request(2, 'counter.add', { by: 5 }, 'a'),
      request(3, 'counter.add', { by: 5 }, 'a'),
      request(4, 'counter.add', { by: 1 }),
    );
    const byId = new Map((await answered(4)).map((answer) => ['id' in answer && answer.id, answer]));
    assert.deepEqual(byId.get(2), { kind: 'reply', id: 2, body: { total: 5 } });
    assert.deepEqual(byId.get(3), { kind: 'reply', id: 3, body: { total: 5 } });
    assert.deepEqual(byId.get(4), { kind: 'reply', id: 4, body: { total: 6 } });
  });

  it('a refusal is not remembered: the same key is tried anew, and its reply is then kept', async () => {
    send(OPEN, request(2, 'counter.refuse-next', {}));
    await answered(2);
    send(request(3, 'counter.add', { by: 5 }, 'a'));
    assert.deepEqual((await answered(3))[2], { kind: 'refusal', id: 3, code: 'TOO_MUCH', message: 'not now' });
    for (const id of [4, 5]) {
      send(request(id, 'counter.add', { by: 5 }, 'a'));
      assert.deepEqual((await answered(id))[id - 1], { kind: 'reply', id, body: { total: 5 } });
    }
  });

  it('eight MiB of replies are kept and the oldest is forgotten first', async () => {
    send(OPEN, request(2, 'counter.add', { by: 1 }, 'old'));
    await answered(2);
    for (let id = 3; id <= 12; id += 1) send(request(id, 'counter.large', {}, `large-${id}`));
    await answered(12);
    send(request(13, 'counter.add', { by: 1 }, 'new'));
    assert.deepEqual((await answered(13))[12], { kind: 'reply', id: 13, body: { total: 2 } });
    send(request(14, 'counter.add', { by: 1 }, 'new'), request(15, 'counter.add', { by: 1 }, 'old'));
    const late = (await answered(15)).slice(13).toSorted(byText);
    assert.deepEqual(late, [
      { kind: 'reply', id: 14, body: { total: 2 } },
      { kind: 'reply', id: 15, body: { total: 3 } },
    ]);
  });

  const violations: Readonly<Record<string, () => void>> = {
    'a request in a phase that does not permit it': () => send(request(1, 'counter.add', { by: 1 })),
    'an unknown request': () => send(request(1, 'counter.erase', {})),
    'a request named like a property of every object': () => send(request(1, 'counter.constructor', {})),
    'a body of another shape': () => send(OPEN, request(2, 'counter.add', { by: 0 })),
    'a body with an unknown field': () => send(OPEN, request(2, 'counter.add', { by: 1, to: 2 })),
    'a key with other bytes': () =>
      send(OPEN, request(2, 'counter.add', { by: 1 }, 'a'), request(3, 'counter.add', { by: 2 }, 'a')),
    'a number that came before': () => send(OPEN, request(1, 'counter.add', { by: 1 })),
    'a reply instead of a request': () => send({ kind: 'reply', id: 1, body: {} }),
    'another version': () => void started.channel?.write(encodeFrame(encode({ ...OPEN, version: 2 }))),
    'a frame that is no message': () => void started.channel?.write(encodeFrame(Buffer.from('hello'))),
    'a frame that announces one GiB': () => void started.channel?.write(Buffer.from([0x40, 0, 0, 0])),
  };
  for (const [title, offend] of Object.entries(violations)) {
    it(`${title} ends the role as a protocol violation`, async () => {
      offend();
      assert.deepEqual(await started.exited, VIOLATION);
    });
  }

  it('S-005 a request that is permitted once, sent a second time, ends the role as a protocol violation', async () => {
    send(OPEN);
    assert.deepEqual(await answered(1), [{ kind: 'reply', id: 1, body: {} }]);
    send(request(2, 'counter.open', {}));
    assert.deepEqual(await started.exited, VIOLATION);
    assert.equal(answers.length, 1);
  });

  it('a handler that breaks ends the role, and not as a violation', async () => {
    send(request(1, 'counter.break', {}));
    assert.deepEqual(await started.exited, { by: 'code', code: 1 });
  });
});
