import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { JournalDamaged, readRecords, RecordWriter } from '../../../helpers/promote/journal-records.ts';
import { repair } from '../../../helpers/promote/repair.ts';
import { stageOf } from '../../fakes/moments.ts';
import { cutHere, recoverHere } from '../../fakes/promote-here.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import { twelveChanges, twelveEntries } from '../../fakes/twelve-entries.ts';

describe('a promotion that was cut, and a tree that somebody changed before its recovery', () => {
  let scene: PromotionScene;
  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
  });
  afterEach(() => scene.remove());

  const removeStage = (): void => fs.rmSync(stageOf(scene), { recursive: true });

  it('a stage folder that was removed with old files in it: each is told, and so is what was placed', async () => {
    await cutHere(scene, 'journal.committed');
    removeStage();
    const { outcome, conflicts } = recoverHere(scene);
    assert.equal(outcome, 'needs-attention');
    const paths = Object.keys(twelveChanges).filter((name) => !name.startsWith('made/'));
    assert.deepEqual(new Set(conflicts.filter((name) => !name.startsWith('made/'))), new Set(paths));
  });

  it('a stage folder that was removed before anything was placed: nothing is lost and nobody is asked', async () => {
    const before = scene.listing();
    await cutHere(scene, 'journal.prepared');
    fs.renameSync(path.join(scene.own, 'journal.staging'), path.join(scene.own, 'journal.prepared'));
    removeStage();
    assert.deepEqual(recoverHere(scene), { outcome: 'rolled-back', conflicts: [] });
    assert.deepEqual(timeless(scene.listing()), timeless(before));
  });

  it('a stage folder that was removed before anything was prepared is no fault', async () => {
    const before = scene.listing();
    await cutHere(scene, 'journal.prepared');
    removeStage();
    assert.deepEqual(recoverHere(scene), { outcome: 'rolled-back', conflicts: [] });
    assert.deepEqual(timeless(scene.listing()), timeless(before));
  });

  it('the time of a root that somebody changed long after the cut is left as it is, with the stage folder and without', async () => {
    for (const isRemoved of [true, false]) {
      scene.remove();
      scene = twelveEntries({ asCaller: true });
      await cutHere(scene, 'journal.prepared');
      const hourAgo = new Date(Date.now() - 3_600_000);
      fs.utimesSync(path.join(scene.own, 'journal.staging'), hourAgo, hourAgo);
      fs.writeFileSync(scene.at('theirs'), 'theirs');
      if (isRemoved) removeStage();
      assert.equal(recoverHere(scene).outcome, 'rolled-back');
      assert.ok(fs.statSync(scene.root).mtimeMs > hourAgo.getTime(), String(isRemoved));
    }
  });

  it('a root in whose folders alone something changed has its time again, when the cut came after the stage folder was gone', async () => {
    scene.draftOf({ 'keep/one': { file: 'one' } });
    await cutHere(scene, 'journal');
    const now = new Date();
    for (const file of [scene.root, path.join(scene.own, 'journal.committed')]) fs.utimesSync(file, now, now);
    assert.equal(recoverHere(scene).outcome, 'cleaned');
    assert.equal(fs.statSync(scene.root).mtimeMs, 1_000_000_000_000);
  });

  it('two journals at once are believed neither', async () => {
    await cutHere(scene, 'journal.committed');
    const now = scene.listing();
    const journal = path.join(scene.own, 'journal.prepared');
    fs.copyFileSync(journal, path.join(scene.own, 'journal.committed'));
    assert.equal(recoverHere(scene).outcome, 'needs-attention');
    assert.deepEqual(scene.listing(), now);
  });

  it('a chain of records that is whole, with one missing or two in each other’s place, is believed as little', async () => {
    await cutHere(scene, 'journal.committed');
    const now = scene.listing();
    const journal = path.join(scene.own, 'journal.prepared');
    // The commit was written; its state was never entered.
    const records = readRecords(fs.readFileSync(journal)).records.filter(({ kind }) => kind !== 'commit');
    const [step, folder] = ['step', 'folder'].map((wanted) => records.findLastIndex(({ kind }) => kind === wanted));
    const [last, before] = [records[step ?? 0], records[(step ?? 0) - 1]];
    assert.ok(last?.kind === 'step' && before?.kind === 'step');
    for (const altered of [
      records.toSpliced(step ?? 0, 1),
      records.toSpliced(folder ?? 0, 1),
      records.toSpliced((step ?? 0) - 1, 2, last, before),
    ]) {
      const writer = new RecordWriter();
      fs.writeFileSync(journal, Buffer.concat(altered.map((record) => writer.next(record))), { mode: 0o600 });
      assert.equal(recoverHere(scene).outcome, 'needs-attention');
      assert.deepEqual(scene.listing(), now);
    }
    const writer = new RecordWriter();
    fs.writeFileSync(journal, Buffer.concat(records.map((record) => writer.next(record))));
    assert.equal(recoverHere(scene).outcome, 'rolled-back');
  });

  /** Puts a journal that cannot be believed where promotions rest. */
  function damagedIn(place: string): void {
    const folder = path.join(scene.own, place, `prm_${'0'.repeat(32)}`);
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    fs.writeFileSync(path.join(folder, 'journal'), 'damaged', { mode: 0o600 });
  }

  it('a damaged journal that waits keeps the one under way from no way back', async () => {
    const before = scene.listing();
    await cutHere(scene, 'journal.committed');
    damagedIn('waiting');
    assert.equal(recoverHere(scene).outcome, 'needs-attention');
    assert.deepEqual(scene.listing(), before);
  });

  it('a damaged journal that needs a person keeps none that waits from its end', async () => {
    await cutHere(scene, 'journal');
    const [id = ''] = fs.readdirSync(path.join(scene.own, 'history'));
    const waiting = path.join(scene.own, 'waiting', id);
    fs.mkdirSync(waiting, { recursive: true, mode: 0o700 });
    fs.renameSync(path.join(scene.own, 'journal.committed'), path.join(waiting, 'journal'));
    damagedIn('attention');
    assert.equal(recoverHere(scene).outcome, 'needs-attention');
    assert.ok(fs.existsSync(path.join(scene.own, 'history', id, 'journal')));
  });

  function repaired(): ReturnType<typeof repair> {
    const opened = { own: fs.openSync(scene.own, 'r'), root: fs.openSync(scene.root, 'r') };
    try {
      return repair(opened, 'restore');
    } finally {
      for (const descriptor of Object.values(opened)) fs.closeSync(descriptor);
    }
  }

  it('a new file that a person saved over is told until a person has seen it, whatever stands beside it', async () => {
    await cutHere(scene, 'journal.committed');
    const stage = path.basename(stageOf(scene));
    fs.writeFileSync(path.join(scene.folder, 'saved'), 'saved');
    fs.renameSync(path.join(scene.folder, 'saved'), scene.at('keep/three'));
    const told = recoverHere(scene);
    assert.equal(told.outcome, 'needs-attention');
    assert.ok(told.conflicts.includes('keep/three'));
    assert.deepEqual(recoverHere(scene), told);
    const [id = ''] = fs.readdirSync(path.join(scene.own, 'attention'));
    fs.writeFileSync(path.join(scene.own, 'journal.prepared'), 'damaged', { mode: 0o600 });
    assert.throws(() => repaired(), JournalDamaged);
    assert.ok(fs.existsSync(path.join(scene.own, 'attention', id, 'journal')));
    fs.rmSync(path.join(scene.own, 'journal.prepared'));
    fs.mkdirSync(path.join(scene.root, stage));
    assert.equal(repaired().outcome, 'nothing-to-do', 'the stage folder stands');
    fs.rmdirSync(path.join(scene.root, stage));
    assert.deepEqual(repaired(), { outcome: 'restored', kept: told.conflicts });
  });
});
