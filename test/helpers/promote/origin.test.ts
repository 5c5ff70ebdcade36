import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { readRecords, RecordWriter } from '../../../helpers/promote/journal-records.ts';
import type { Begin } from '../../../helpers/promote/journal-records.ts';
import { cutHere, recoverHere } from '../../fakes/promote-here.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';

const elsewhere: Readonly<Record<string, Partial<Begin>>> = {
  'of another identity': { rootIdentity: '0'.repeat(64) },
  'of another inode': { rootIno: '1' },
  'on another device in this boot': { rootDev: '1' },
};

describe('a journal whose first record tells of another root', () => {
  let scene: PromotionScene;
  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
  });
  afterEach(() => scene.remove());

  /** Writes a journal anew with its first record changed. */
  function rewrite(file: string, changes: Partial<Begin>): void {
    const records = readRecords(fs.readFileSync(file)).records.map((record) =>
      record.kind === 'begin' ? { ...record, ...changes } : record,
    );
    const writer = new RecordWriter();
    fs.writeFileSync(file, Buffer.concat(records.map((record) => writer.next(record))));
  }

  for (const [sentence, changes] of Object.entries(elsewhere)) {
    it(`${sentence} is left as it is, and so is the tree`, async () => {
      await cutHere(scene, 'journal.committed');
      const now = scene.listing();
      const journal = path.join(scene.own, 'journal.prepared');
      rewrite(journal, changes);
      assert.equal(recoverHere(scene).outcome, 'needs-attention');
      assert.ok(fs.existsSync(journal));
      assert.deepEqual(scene.listing(), now);
    });
  }

  it('on another device after another boot is that of this root: numbers of devices do not last', async () => {
    const before = scene.listing();
    await cutHere(scene, 'journal.committed');
    rewrite(path.join(scene.own, 'journal.prepared'), { rootDev: '1', bootId: 'another boot' });
    assert.equal(recoverHere(scene).outcome, 'rolled-back');
    assert.deepEqual(scene.listing(), before);
  });

  it('and that waits stays where it waits', async () => {
    await cutHere(scene, 'journal');
    const waiting = path.join(scene.own, 'waiting', `prm_${'0'.repeat(32)}`);
    fs.mkdirSync(waiting, { recursive: true, mode: 0o700 });
    fs.renameSync(path.join(scene.own, 'journal.committed'), path.join(waiting, 'journal'));
    rewrite(path.join(waiting, 'journal'), { rootIno: '1' });
    assert.equal(recoverHere(scene).outcome, 'needs-attention');
    assert.ok(fs.existsSync(path.join(waiting, 'journal')));
  });

  it('a stage folder whose record is lost is left for a person', async () => {
    await cutHere(scene, 'journal.prepared');
    const now = scene.listing();
    fs.truncateSync(path.join(scene.own, 'journal.staging'), 3);
    assert.equal(recoverHere(scene).outcome, 'needs-attention');
    assert.deepEqual(scene.listing(), now);
  });
});
