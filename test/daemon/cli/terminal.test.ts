import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { columns, grouped, visible } from '../../../daemon/cli/terminal.ts';

describe('what goes to the owner’s terminal', () => {
  const hidden: Record<string, [string, string]> = {
    'an escape sequence': ['\u001b[2J', '\\x1b[2J'],
    'an eight-bit escape': ['\u009b2J', '\\x9b2J'],
    'a carriage return': ['good\rbad', 'good\\x0dbad'],
    'a backspace': ['good\b\b', 'good\\x08\\x08'],
    'a line end': ['one\ntwo', 'one\\x0atwo'],
    'a bell': ['\u0007', '\\x07'],
    'a right-to-left override': ['a\u202etxt.exe', 'a\\u{202e}txt.exe'],
    'an isolate': ['\u2066x\u2069', '\\u{2066}x\\u{2069}'],
    'a space without width': ['pass\u200bword', 'pass\\u{200b}word'],
    'a soft hyphen': ['a\u00adb', 'a\\xadb'],
    'a byte order mark': ['\ufeff', '\\u{feff}'],
    'a line separator': ['a\u2028b', 'a\\u{2028}b'],
    'a filler': ['a\u3164b', 'a\\u{3164}b'],
    'a tag': ['\u{e0041}', '\\u{e0041}'],
    'a variation selector': ['a\ufe0f', 'a\\u{fe0f}'],
    'half a pair': ['\ud800', '\\u{d800}'],
  };
  for (const [what, [text, shown]] of Object.entries(hidden)) {
    it(`${what} is shown as what it is`, () => {
      assert.equal(visible(text), shown);
    });
  }

  it('ordinary text of any language, and the tab, are left alone', () => {
    for (const text of ['plain', 'ä é ß', 'Ελληνικά', '日本語', 'العربية', '\tindented', '😀'])
      assert.equal(visible(text), text);
  });

  it('nothing that a terminal would obey is left, whatever comes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        assert.doesNotMatch(visible(text).replaceAll('\t', ''), /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      }),
      { numRuns: 2000 },
    );
  });

  it('columns are as wide as their longest cell, and a fingerprint comes in groups of four', () => {
    assert.deepEqual(
      columns([
        ['a', 'bbb', 'c'],
        ['aaa', 'b', ''],
      ]),
      ['a    bbb  c', 'aaa  b'],
    );
    assert.equal(grouped('0123456789ab'), '0123 4567 89ab');
  });
});
