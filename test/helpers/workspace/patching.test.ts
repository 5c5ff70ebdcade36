import assert from 'node:assert/strict';

import { occurrences, patchBytes } from '../../../helpers/workspace/patching.ts';

const places = (content: string, wanted: string, limit = 99): number[] =>
  occurrences(Buffer.from(content), Buffer.from(wanted), limit);

const patched = (content: string, ...edits: [string, string][]): string => {
  const result = patchBytes(
    Buffer.from(content),
    edits.map(([oldText, newText]) => ({ oldText, newText })),
    () => undefined,
  );
  return 'bytes' in result ? result.bytes.toString() : result.conflict;
};

describe('patching', () => {
  it('finds every place of a text, overlapping ones too, and stops at the limit', () => {
    assert.deepEqual(places('abcabcab', 'abc'), [0, 3]);
    assert.deepEqual(places('aaaa', 'aa'), [0, 1, 2]);
    assert.deepEqual(places('aaaa', 'aa', 2), [0, 1]);
    assert.deepEqual(places('abababac', 'ababac'), [2]);
    assert.deepEqual(places('abc', 'abcd'), []);
  });

  it('finds what a search by position finds, in every text of two letters up to nine long', () => {
    const texts = (length: number): string[] =>
      Array.from({ length: 2 ** length }, (_, bits) => bits.toString(2).padStart(length, '0'));
    for (const content of texts(9)) {
      for (const wanted of [...texts(2), ...texts(3), ...texts(4)]) {
        const expected = Array.from({ length: 9 }, (_, at) => at).filter((at) => content.startsWith(wanted, at));
        assert.deepEqual(places(content, wanted), expected, `${wanted} in ${content}`);
      }
    }
  });

  it('takes time that follows the content, where comparing at each position takes the product', () => {
    const content = Buffer.alloc(4_000_000, 'a');
    const wanted = Buffer.concat([Buffer.alloc(30_000, 'a'), Buffer.from('b')]);
    const began = performance.now();
    assert.deepEqual(occurrences(content, wanted, 2), []);
    const linearMs = performance.now() - began;
    const naiveBegan = performance.now();
    const share = 2_000;
    for (let at = 0; at < content.length / share; at += 1) {
      let same = 0;
      while (same < wanted.length && content[at + same] === wanted[same]) same += 1;
      assert.ok(same < wanted.length);
    }
    const naiveMs = (performance.now() - naiveBegan) * share;
    assert.ok(linearMs * 10 < naiveMs, `${linearMs.toFixed(0)} ms against ${naiveMs.toFixed(0)} ms`);
  });

  it('applies edits in any order, at both ends, with texts that grow, shrink and vanish', () => {
    assert.equal(patched('one two three', ['three', '3'], ['one', 'first']), 'first two 3');
    assert.equal(patched('abc', ['b', '']), 'ac');
    assert.equal(patched('abc', ['abc', '']), '');
    assert.equal(patched('ab', ['a', 'b'], ['b', 'a']), 'ba', 'edits see the file as it was');
    assert.equal(patched('a\0\nb', ['\0\n', '-']), 'a-b');
  });

  it('leaves bytes that are no text as they are', () => {
    const result = patchBytes(Buffer.from([0xff, 0x61, 0xfe]), [{ oldText: 'a', newText: 'é' }], () => undefined);
    assert.deepEqual('bytes' in result ? [...result.bytes] : [], [0xff, 0xc3, 0xa9, 0xfe]);
  });
});
