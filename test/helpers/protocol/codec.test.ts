import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { CodecError, decode, DEPTH_LIMIT, encode } from '../../../helpers/protocol/codec.ts';

const number = fc
  .oneof(
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (Object.is(value, -0) ? 0 : value)),
  )
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value));
const key = fc
  .string({ unit: 'grapheme' })
  .filter((text) => !['__proto__', '__proto_', 'constructor', 'prototype'].includes(text));
const { plain } = fc.letrec((tie) => ({
  plain: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, false),
    number,
    fc.string({ unit: 'grapheme' }),
    fc.uint8Array({ maxLength: 50 }),
    fc.array(tie('plain'), { maxLength: 5 }),
    fc.dictionary(key, tie('plain'), { maxKeys: 5, noNullPrototype: true }),
  ),
}));

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const nested = (depth: number): Buffer => Buffer.concat([Buffer.alloc(depth, 0x91), hex('c0')]);

describe('codec', () => {
  it('plain values come back unchanged, and their bytes are their one spelling', () => {
    fc.assert(
      fc.property(plain, (value) => {
        const bytes = encode(value);
        const back = decode(bytes);
        assert.ok(encode(back).equals(bytes));
        assert.deepEqual(normal(back), normal(value));
      }),
      { numRuns: 500 },
    );
  });

  it('any bytes are one plain value or a CodecError, never another error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          assert.ok(encode(decode(bytes)).equals(bytes));
        } catch (error) {
          assert.ok(error instanceof CodecError, String(error));
        }
      }),
      { numRuns: 5000 },
    );
  });

  it('a changed, cut or lengthened message is another value or a CodecError', () => {
    fc.assert(
      fc.property(plain, fc.nat(), fc.integer({ min: 1, max: 255 }), (value, where, change) => {
        const bytes = encode(value);
        const changed = Buffer.from(bytes);
        const at = where % bytes.length;
        changed[at] = (changed[at] ?? 0) ^ change;
        for (const other of [changed, bytes.subarray(0, at), Buffer.concat([bytes, hex('c0')])]) {
          try {
            assert.ok(encode(decode(other)).equals(other));
            assert.ok(!other.equals(bytes));
          } catch (error) {
            assert.ok(error instanceof CodecError, String(error));
          }
        }
      }),
      { numRuns: 1000 },
    );
  });

  const refused: Record<string, Buffer> = {
    'the same key twice': hex('82 a161 01 a161 02'),
    'the same key twice, deep inside': hex('81 a178 91 82 a161 01 a161 02'),
    '__proto__ as a key': keyed('__proto__'),
    '__proto__ as a key, deep inside': Buffer.concat([hex('91 81 a161'), keyed('__proto__')]),
    'constructor as a key': keyed('constructor'),
    'prototype as a key': keyed('prototype'),
    'a key that is a number': hex('81 01 01'),
    'a key that is bytes': hex('81 c40161 01'),
    'a key that is null': hex('81 c0 01'),
    'an integer in two bytes where one is enough': hex('cc 01'),
    'an integer as a float': hex('cb 3ff0000000000000'),
    'a thousand as a float': hex('cb 408f400000000000'),
    'negative zero': hex('cb 8000000000000000'),
    infinity: hex('cb 7ff0000000000000'),
    'not a number': hex('cb 7ff8000000000000'),
    'the first integer that is not safe': hex('cf 0020000000000000'),
    'the largest unsigned integer': hex('cf ffffffffffffffff'),
    'a single float': hex('ca 3fc00000'),
    'a string with a length in two bytes where one is enough': hex('d9 01 61'),
    'a string that is not UTF-8': hex('a2 c328'),
    'a string with half a surrogate pair': hex('a3 eda080'),
    'an array with a length in three bytes where one is enough': hex('dc 0001 c0'),
    'an object with a length in three bytes where one is enough': hex('de 0001 a161 01'),
    'bytes with a length in three bytes where two are enough': hex('c5 0001 61'),
    'a time': hex('d6 ff 00000000'),
    'a regular expression': hex('92 d4 78 00'),
    'a record definition': hex('d4 72 40 91 a161 01'),
    'an extension nobody knows': hex('d4 05 00'),
    'the byte that means nothing': hex('c1'),
    'two values': hex('c0 c0'),
    nothing: Buffer.alloc(0),
    'an array that claims four thousand million items': hex('dd ffffffff'),
    'an object that claims four thousand million keys': hex('df ffffffff'),
    'bytes that claim four thousand million': hex('c6 ffffffff'),
    'a string that claims four thousand million': hex('db ffffffff'),
    'one level too many': nested(DEPTH_LIMIT + 1),
    'ten thousand levels': nested(10_000),
    'a million levels': nested(1_000_000),
  };
  for (const [what, bytes] of Object.entries(refused)) {
    it(`${what} is refused`, () => {
      assert.throws(() => decode(bytes), CodecError);
    });
  }

  it('a refused message changes nothing for the next one', () => {
    for (const hostile of ['d4 72 40 91 a161 01', 'd5 72 40 00 91 a161 01', '92 d4 72 40 91 a161 01 40 02']) {
      assert.throws(() => decode(hex(hostile)), CodecError);
      assert.deepEqual(decode(hex('92 40 41')), [64, 65]);
    }
  });

  it('the deepest permitted nesting passes', () => {
    assert.ok(decode(nested(DEPTH_LIMIT)));
  });

  const unwritten: Record<string, unknown> = {
    'a date': new Date(0),
    'a map': new Map(),
    'a set': new Set(),
    'an error': new Error('x'),
    'a function': () => undefined,
    'a symbol': Symbol('x'),
    'a big integer': 1n,
    'undefined alone': undefined,
    'not a number': Number.NaN,
    'negative zero': -0,
    'an integer that is not safe': 2 ** 53,
    'an object of a class': new URL('https://a.example'),
    'an object without a prototype': Object.create(null),
  };
  for (const [what, value] of Object.entries(unwritten)) {
    it(`${what} is never written`, () => {
      assert.throws(() => encode({ value: [value] }), CodecError);
    });
  }

  it('a field that is undefined is left out', () => {
    assert.deepEqual(decode(encode({ a: 1, b: undefined })), { a: 1 });
  });

  it('a megabyte of keys, levels or items is decided in bounded time and memory', () => {
    const keys = Buffer.concat([hex('df 0003d090'), ...Array.from({ length: 250_000 }, (_, index) => keyOf(index))]);
    const items = Buffer.concat([hex('dd 000fffff'), Buffer.alloc(0xfffff, 0xc0)]);
    for (const bytes of [keys, items, nested(1_000_000)]) {
      const start = process.hrtime.bigint();
      try {
        decode(bytes);
      } catch (error) {
        assert.ok(error instanceof CodecError);
      }
      const tookMs = Number(process.hrtime.bigint() - start) / 1e6;
      assert.ok(tookMs < 1500, `took ${tookMs} ms`);
    }
  });
});

// msgpack of a short distinct key and null, 5 bytes.
function keyOf(index: number): Buffer {
  return Buffer.concat([hex('a3'), Buffer.from(index.toString(36).padStart(4, '0').slice(-3), 'latin1'), hex('c0')]);
}

// msgpack of an object with this one key and 1.
function keyed(key: string): Buffer {
  return Buffer.concat([Buffer.from([0x81, 0xa0 + key.length]), Buffer.from(key), hex('01')]);
}

function normal(value: unknown): unknown {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('hex') };
  if (Array.isArray(value)) return value.map(normal);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, normal(item)]));
}
