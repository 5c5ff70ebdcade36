import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { fromPathText, PathTextError, toPathText } from '../../../helpers/protocol/path-text.ts';

// Names as they happen and as an attacker makes them: text, broken UTF-8, backslashes, all mixed.
const name = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom('\\', '\\x', '\\x41', '\\\\', '\ufeff', 'é').map((text) => Buffer.from(text)),
    ),
    { maxLength: 6 },
  )
  .map((parts) => Buffer.concat(parts));

describe('path text', () => {
  it('every name of bytes has one text that leads back to it', () => {
    fc.assert(
      fc.property(name, (bytes) => {
        assert.ok(fromPathText(toPathText(bytes)).equals(bytes));
      }),
      { numRuns: 5000 },
    );
  });

  it('two different names never have one text', () => {
    fc.assert(
      fc.property(name, name, (one, other) => {
        assert.equal(toPathText(one) === toPathText(other), one.equals(other));
      }),
      { numRuns: 2000 },
    );
  });

  it('a text is the one spelling of its bytes or it is refused', () => {
    const piece = fc.constantFrom(
      'a',
      '\\',
      'x',
      '4',
      '1',
      'f',
      'F',
      'é',
      '\u{1f600}',
      '\ud800',
      '\udc00',
      '\ufeff',
      '\0',
      '/',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const text = pieces.join('');
        try {
          assert.equal(toPathText(fromPathText(text)), text);
        } catch (error) {
          assert.ok(error instanceof PathTextError, String(error));
        }
      }),
      { numRuns: 10_000 },
    );
  });

  const spelled: Record<string, [Buffer, string]> = {
    'plain text': [Buffer.from('src/main.ts'), 'src/main.ts'],
    'text of every length of UTF-8': [Buffer.from('aé€😀'), 'aé€😀'],
    'a backslash': [Buffer.from('a\\b'), 'a\\\\b'],
    'what looks like an escape': [Buffer.from('\\xff'), '\\\\xff'],
    'a byte that is no UTF-8': [Buffer.from([0x61, 0xff, 0x62]), 'a\\xffb'],
    'a character cut in the middle': [Buffer.from([0xe2, 0x82]), '\\xe2\\x82'],
    'an overlong slash': [Buffer.from([0xc0, 0xaf]), '\\xc0\\xaf'],
    'half a surrogate pair': [Buffer.from([0xed, 0xa0, 0x80]), '\\xed\\xa0\\x80'],
    'a character beyond Unicode': [Buffer.from([0xf4, 0x90, 0x80, 0x80]), '\\xf4\\x90\\x80\\x80'],
    'a byte order mark': [Buffer.from([0xef, 0xbb, 0xbf, 0x61]), '\ufeffa'],
  };
  for (const [what, [bytes, text]] of Object.entries(spelled)) {
    it(`${what} is written and read`, () => {
      assert.equal(toPathText(bytes), text);
      assert.ok(fromPathText(text).equals(bytes));
    });
  }

  const refused: Record<string, string> = {
    'a lone backslash': '\\',
    'an escape that is cut': '\\x4',
    'an escape of capital digits': '\\xFF',
    'an escape of another kind': '\\n',
    'an escape of text that stands for itself': '\\x41',
    'an escape of the slash': '\\x2f',
    'an escape of the dot': '\\x2e\\x2e/secret',
    'a character written as escapes': '\\xc3\\xa9',
    'an escape that completes a character': '\\xe2\\x82\\xac',
    'the first half of a pair': '\ud83d',
    'the second half of a pair': '\ude00',
  };
  for (const [what, text] of Object.entries(refused)) {
    it(`${what} is refused`, () => {
      assert.throws(() => fromPathText(text), PathTextError);
    });
  }
});
