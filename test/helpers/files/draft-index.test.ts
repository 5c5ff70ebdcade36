import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import {
  DraftDamaged,
  readIndex,
  sealFrozen,
  sealHeader,
  sealSteps,
  type Entry,
  type IndexState,
} from '../../../helpers/files/draft-index.ts';
import { promotionIdSchema, runIdSchema } from '../../../helpers/protocol/ids.ts';

const header = { run: runIdSchema.parse(`run_${'7'.repeat(32)}`), rootIdentity: 'a'.repeat(64), createdAt: 1000 };
const promotion = promotionIdSchema.parse(`prm_${'8'.repeat(32)}`);
const file: Entry = {
  base: null,
  now: { type: 'file', content: 1, bytes: 3, mode: 0o644, sha256: 'b'.repeat(64) },
  at: 1001,
};
const gone: Entry = {
  base: { type: 'file', bytes: 9, mode: 0o755, sha256: 'c'.repeat(64), stamp: '1.9.1.1', lost: ['group'] },
  now: { type: 'removed' },
  at: 1002,
};

describe('draft index', () => {
  const first = sealHeader(header);
  const second = sealSteps(first.checksum, 1001, [{ path: 'a/\xff', entry: file }]);
  const third = sealSteps(second.checksum, 1002, [
    { path: 'b', entry: gone },
    { path: 'a/\xff', entry: null },
  ]);
  const fourth = sealFrozen(third.checksum, 1003, promotion);
  const whole = Buffer.concat([first.bytes, second.bytes, third.bytes, fourth.bytes]);
  let folder: string;

  before(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'index-'));
  });
  after(() => fs.rmSync(folder, { recursive: true }));

  function read(bytes: Buffer): IndexState {
    fs.writeFileSync(path.join(folder, 'index'), bytes);
    const descriptor = fs.openSync(path.join(folder, 'index'), 'r');
    try {
      return readIndex(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  }

  it('says what its records said', () => {
    const state = read(whole);
    assert.deepEqual(state.header, header);
    assert.deepEqual([...state.entries], [['b', gone]]);
    assert.deepEqual([state.frozenFor, state.changedAt, state.wholeBytes], [promotion, 1003, whole.length]);
    assert.deepEqual(state.checksum, fourth.checksum);
  });

  it('cut at any byte it is the draft of the records that are whole', () => {
    const ends = [first, second, third, fourth].map((_, index, all) =>
      all.slice(0, index + 1).reduce((sum, { bytes }) => sum + bytes.length, 0),
    );
    for (let length = 0; length < whole.length; length += 1) {
      const cut = whole.subarray(0, length);
      const records = ends.filter((end) => end <= length);
      if (records.length === 0) assert.throws(() => read(cut), DraftDamaged);
      else assert.equal(read(cut).wholeBytes, records.at(-1), `cut at ${length}`);
    }
  });

  it('zeros after the last whole record are what a crash leaves, and no record', () => {
    const state = read(Buffer.concat([whole, Buffer.alloc(5000)]));
    assert.deepEqual([state.wholeBytes, state.fileBytes], [whole.length, whole.length + 5000]);
  });

  it('a flipped bit before the last record is damage, and in the last one never another draft', () => {
    const lastStart = whole.length - fourth.bytes.length;
    for (let at = 0; at < whole.length; at += 1) {
      const other = Buffer.from(whole);
      other[at] = (other[at] ?? 0) ^ 0x10;
      let state: IndexState | undefined;
      try {
        state = read(other);
      } catch (error) {
        assert.ok(error instanceof DraftDamaged, String(error));
      }
      // a length that grew past the end of the file reads as torn: the records before it are all that is believed
      if (state) assert.ok(state.wholeBytes <= lastStart, `byte ${at}`);
    }
  });

  it('records of another draft do not continue this one', () => {
    const foreign = sealHeader({ ...header, createdAt: 1 });
    const steps = sealSteps(foreign.checksum, 1001, [{ path: 'x', entry: file }]);
    assert.throws(() => read(Buffer.concat([first.bytes, steps.bytes, fourth.bytes])), DraftDamaged);
    assert.throws(() => read(Buffer.concat([first.bytes, third.bytes, second.bytes])), DraftDamaged);
  });

  it('a draft of the version before this one is read, one of a later version is not', () => {
    const older = { ...header, version: 2 };
    const later = { ...header, version: 4 };
    assert.equal(read(sealHeader(older).bytes).header.run, header.run);
    assert.throws(() => read(sealHeader(later).bytes), DraftDamaged);
  });
});
