import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import * as z from 'zod';
import { CodecError, encode } from '../../../helpers/protocol/codec.ts';
import { decodeMessage, encodeMessage } from '../../../helpers/protocol/envelope.ts';
import type { Message } from '../../../helpers/protocol/envelope.ts';

describe('messages between processes', () => {
  const messages: Message[] = [
    { kind: 'request', version: 1, id: 1, type: 'keystore.sign', body: { a: 1 } },
    { kind: 'request', version: 1, id: 2, type: 'workspace.operate', key: 'cmd/1', body: null },
    { kind: 'reply', id: 1, body: [Buffer.from('x')] },
    { kind: 'refusal', id: 1, code: 'KEY_ABSENT', message: 'no' },
    { kind: 'event', type: 'link.closed', body: {} },
  ];
  for (const message of messages) {
    it(`a ${message.kind} comes back as it was`, () => {
      assert.deepEqual(encode(decodeMessage(encodeMessage(message))), encode(message));
    });
  }

  const whole = { kind: 'request', version: 1, id: 1, type: 'keystore.sign', body: {} };
  const refused: Record<string, unknown> = {
    'another version': { ...whole, version: 2 },
    'no version': { ...whole, version: undefined },
    'a number below one': { ...whole, id: 0 },
    'a number that is no integer': { ...whole, id: 1.5 },
    'a type without an owner': { ...whole, type: 'sign' },
    'a type of other letters': { ...whole, type: 'keystore.Sign' },
    'a type that is too long': { ...whole, type: `a.${'b'.repeat(64)}` },
    'an empty key': { ...whole, key: '' },
    'a key that is too long': { ...whole, key: 'k'.repeat(161) },
    'a field too many': { ...whole, uid: 0 },
    'another kind': { ...whole, kind: 'command' },
    'a refusal with a lower-case code': { kind: 'refusal', id: 1, code: 'no', message: '' },
    'a refusal with a long message': { kind: 'refusal', id: 1, code: 'NO', message: 'x'.repeat(401) },
    'no object': [whole],
  };
  for (const [what, value] of Object.entries(refused)) {
    it(`${what} is refused`, () => {
      assert.throws(() => decodeMessage(encode(value)), z.ZodError);
    });
  }

  it('S-008 an unknown kind or field, a key of every object and a key twice are refused, outside and inside the body', () => {
    const text = (value: string): Buffer => Buffer.concat([Buffer.from([0xa0 | value.length]), Buffer.from(value)]);
    const map = (entries: readonly (readonly [string, Buffer])[]): Buffer =>
      Buffer.concat([Buffer.from([0x80 | entries.length]), ...entries.flatMap(([name, value]) => [text(name), value])]);
    const message = (body: Buffer, ...more: readonly (readonly [string, Buffer])[]): Buffer => {
      const { body: _, ...fields } = whole;
      const own = Object.entries(fields).map(([name, value]) => [name, encode(value)] as const);
      return map([...own, ['body', body], ...more]);
    };
    const empty = map([]);
    assert.equal(decodeMessage(message(empty)).kind, 'request');
    const polluting = map([['polluted', encode(1)]]);
    const twice = map([
      ['a', encode(1)],
      ['a', encode(2)],
    ]);
    const refusals = [
      encode({ ...whole, kind: 'command' }),
      message(empty, ['uid', encode(0)]),
      message(empty, ['kind', encode('reply')]),
      message(twice),
      message(map([['deep', twice]])),
      ...['__proto__', 'constructor', 'prototype'].flatMap((name) => [
        message(empty, [name, polluting]),
        message(map([[name, polluting]])),
        message(map([['deep', map([[name, polluting]])]])),
      ]),
    ];
    for (const bytes of refusals) {
      assert.throws(
        () => decodeMessage(bytes),
        (error) => error instanceof CodecError || error instanceof z.ZodError,
        bytes.toString('latin1'),
      );
    }
    assert.equal('polluted' in {}, false);
  });

  it('any bytes are one message or one of two errors', () => {
    const shaped = fc
      .record(
        { kind: fc.constantFrom('request', 'reply', 'event', 'x'), id: fc.nat(), body: fc.string() },
        { noNullPrototype: true },
      )
      .map((value) => encode(value));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 100 }), shaped), (bytes) => {
        try {
          decodeMessage(bytes);
        } catch (error) {
          assert.ok(error instanceof CodecError || error instanceof z.ZodError, String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });
});
