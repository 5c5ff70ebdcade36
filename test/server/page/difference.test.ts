import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';

import nacl from 'tweetnacl';

import { manifestBytes } from '../../../helpers/files/manifest.ts';
import { runIdSchema } from '../../../helpers/protocol/ids.ts';
import type { Part } from '../../../server/page/calls.ts';
import { SealBroken, SIDE_LIMIT_BYTES } from '../../../server/page/difference/broken.ts';
import { compare } from '../../../server/page/difference/lines.ts';
import { readManifest } from '../../../server/page/difference/manifest.ts';
import { piecesOf } from '../../../server/page/difference/pieces.ts';
import { createReader } from '../../../server/page/difference/sealed.ts';

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'utf8'));
const digest = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

/** Seals pieces of a content as a machine does; `change` may spoil one. */
function machine(content: Uint8Array, change: (piece: Piece, offset: number) => Piece = (piece) => piece) {
  const PIECE = 7;
  return ({ recipientKey, offset }: { recipientKey: string; part: Part; offset: number }) => {
    const sender = nacl.box.keyPair();
    const nonce = randomBytes(24);
    const plain = content.subarray(offset, offset + PIECE);
    const sealed = nacl.box(plain, nonce, Buffer.from(recipientKey, 'base64'), sender.secretKey);
    const next = offset + plain.length;
    const piece: Piece = {
      sealed: Buffer.from(sealed).toString('base64'),
      nonce: nonce.toString('base64'),
      senderKey: Buffer.from(sender.publicKey).toString('base64'),
      totalBytes: content.length,
      ...(next < content.length ? { next } : {}),
    };
    return Promise.resolve(change(piece, offset));
  };
}
interface Piece {
  readonly sealed: string;
  readonly nonce: string;
  readonly senderKey: string;
  readonly totalBytes: number;
  readonly next?: number | undefined;
}
const before: Part = { of: 'before', change: 0 };

describe('sealed content in the browser', () => {
  const content = bytes('one line\nand another, longer one\n');

  it('a content in pieces is opened, joined and found to be the stated one', async () => {
    const reader = await createReader(machine(content));
    assert.deepEqual(await reader.read(before, digest(content)), content);
    assert.match(reader.fingerprint, /^[0-9a-f]{64}$/);
  });

  it('an empty content is opened', async () => {
    const reader = await createReader(machine(new Uint8Array()));
    assert.equal((await reader.read(before, digest(new Uint8Array()))).length, 0);
  });

  it('each view has a key of its own', async () => {
    const [one, other] = [await createReader(machine(content)), await createReader(machine(content))];
    assert.notEqual(one.fingerprint, other.fingerprint);
  });

  const broken: Readonly<Record<string, [SealBroken['fault'], Parameters<typeof machine>[1]]>> = {
    'sealed to another key': [
      'not-for-this-key',
      (piece) => ({ ...piece, senderKey: Buffer.alloc(32, 9).toString('base64') }),
    ],
    'a changed sealed byte': [
      'not-for-this-key',
      (piece) => ({ ...piece, sealed: Buffer.from(piece.sealed, 'base64').fill(1, 20, 21).toString('base64') }),
    ],
    'a length that changes on the way': [
      'wrong-length',
      (piece, offset) => (offset === 0 ? piece : { ...piece, totalBytes: piece.totalBytes + 1 }),
    ],
    'an end too early': ['wrong-length', (piece) => ({ ...piece, next: undefined })],
    'a piece that is skipped': [
      'wrong-length',
      (piece) => (piece.next === undefined ? piece : { ...piece, next: piece.next + 1 }),
    ],
    'a content past the limit': ['too-large', (piece) => ({ ...piece, totalBytes: SIDE_LIMIT_BYTES + 1 })],
  };
  for (const [what, [fault, change]] of Object.entries(broken)) {
    it(`nothing is shown of ${what}`, async () => {
      const reader = await createReader(machine(content, change));
      await assert.rejects(
        reader.read(before, digest(content)),
        (error) => error instanceof SealBroken && error.fault === fault,
      );
    });
  }

  it('nothing is shown of another content than the manifest states', async () => {
    const reader = await createReader(machine(bytes('something else, well sealed\n')));
    await assert.rejects(
      reader.read(before, digest(content)),
      (error) => error instanceof SealBroken && error.fault === 'wrong-digest',
    );
  });
});

describe('a manifest in the browser', () => {
  const run = runIdSchema.parse(`run_${'0a'.repeat(16)}`);
  const side = { bytes: 3, mode: '644', sha256: 'ab'.repeat(32) };

  it('reads what the machine writes', () => {
    const changes = [
      { path: 'a', type: 'file', kind: 'created', before: null, after: side },
      { path: 'b', type: 'directory', kind: 'deleted', before: { mode: '755' }, after: null },
    ] as const;
    const read = readManifest(manifestBytes({ version: 2, run, rootIdentity: 'cd'.repeat(32), changes }));
    assert.deepEqual(read, changes);
  });

  it('refuses what is none', () => {
    for (const text of [
      '',
      '[]',
      '{"changes":1}',
      '{"changes":[{"path":1}]}',
      '{"changes":[{"path":"a","type":"x"}]}',
    ]) {
      assert.throws(() => readManifest(bytes(text)), text);
    }
  });
});

const many = (seed: number): string =>
  Array.from({ length: 30_000 }, (_, line) => `${(line * seed) % 9973}\n`).join('');
const shown = (line: string) => piecesOf(line).map(({ text, hidden }) => (hidden ? `<${text}>` : text));

describe('a difference line by line', () => {
  it('counts lines on both sides', () => {
    const compared = compare(bytes('a\nb\nc\n'), bytes('a\nB\nc\nd\n'));
    assert.equal(compared.shown, 'hunks');
    assert.deepEqual(
      compared.shown === 'hunks' &&
        compared.hunks.flat().map(({ mark, before: old, after, text }) => [mark, old, after, text]),
      [
        [' ', 1, 1, 'a'],
        ['-', 2, undefined, 'b'],
        ['+', undefined, 2, 'B'],
        [' ', 3, 3, 'c'],
        ['+', undefined, 4, 'd'],
      ],
    );
  });

  it('says where a file ends without a line break', () => {
    const compared = compare(undefined, bytes('a'));
    assert.equal(compared.shown === 'hunks' && compared.hunks[0]?.[0]?.open, true);
  });

  it('does not guess at what is no text', () => {
    assert.deepEqual(compare(bytes('a\0b'), bytes('a')), { shown: 'nothing', reason: 'binary' });
    assert.deepEqual(compare(undefined, new Uint8Array([0xff, 0xfe])), { shown: 'nothing', reason: 'binary' });
  });

  it('ends in time on files made to be slow', () => {
    const begin = performance.now();
    const compared = compare(bytes(many(7)), bytes(many(11)));
    assert.ok(performance.now() - begin < 6000);
    assert.ok(compared.shown === 'hunks' || compared.reason === 'too-different');
  });

  it('a character that cannot be seen, or that turns text around, is shown by its number', () => {
    assert.deepEqual(shown('if (a) {\u202e} return'), ['if (a) {', '<U+202E>', '} return']);
    assert.deepEqual(shown('a\u200bb\u00adc\ufeff'), ['a', '<U+200B>', 'b', '<U+00AD>', 'c', '<U+FEFF>']);
    assert.deepEqual(shown('\u{e0041}'), ['<U+E0041>']);
    assert.deepEqual(shown('end\r'), ['end', '<U+000D>']);
    assert.deepEqual(shown('\tGrüße 日本 👍'), ['\t', 'Grüße 日本 👍']);
  });
});
