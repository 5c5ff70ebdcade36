import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { readPast } from '../../../helpers/promote/history.ts';
import type { PastPromotion } from '../../../helpers/promote/history.ts';
import { readRecords, RecordWriter } from '../../../helpers/promote/journal-records.ts';
import type { Begin } from '../../../helpers/promote/journal-records.ts';
import { Stopped } from '../../../helpers/promote/stop.ts';
import { undo } from '../../../helpers/promote/undo.ts';
import { reverse } from '../../../helpers/promote/undo-plan.ts';
import { promotionIdSchema } from '../../../helpers/protocol/ids.ts';
import type { PromotionId } from '../../../helpers/protocol/ids.ts';
import { chainOf } from '../../../helpers/runtime/folder-chains.ts';
import { cutHere, promoted, recoverHere } from '../../fakes/promote-here.ts';
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

  describe('and an undo', () => {
    const names = ['root', 'draft', 'own', 'owner', 'configuration'] as const;
    let opened: Record<(typeof names)[number], number>;
    let id: PromotionId;

    beforeEach(async () => {
      id = promotionIdSchema.parse(await promoted(scene));
      const open = (name: (typeof names)[number]): number => fs.openSync(scene[name], 'r');
      opened = {
        root: open('root'),
        draft: open('draft'),
        own: open('own'),
        owner: open('owner'),
        configuration: open('configuration'),
      };
    });
    afterEach(() => {
      for (const descriptor of Object.values(opened)) fs.closeSync(descriptor);
    });

    const isUnsafe = (error: unknown): boolean => error instanceof Stopped && error.code === 'PROMOTION_UNSAFE_ROOT';

    function past(): PastPromotion {
      const found = readPast(opened.own, id);
      assert.ok(found !== undefined);
      return found;
    }

    it('of another inode alone, or of another identity alone, is refused', () => {
      const kept = past();
      assert.ok(reverse(opened, id, kept, []).plan.length > 0);
      for (const changes of [{ rootIno: '1' }, { rootIdentity: '0'.repeat(64) }]) {
        const prepared = { ...kept.prepared, begin: { ...kept.prepared.begin, ...changes } };
        assert.throws(() => reverse(opened, id, { ...kept, prepared }, []), isUnsafe);
      }
    });

    it('knows again what an undo has placed since, and not what one had placed before', () => {
      const { prepared } = past();
      const { begin, steps } = prepared;
      const inosWith = (at: number): number => {
        const undone = { ...prepared, begin: { ...begin, at }, steps };
        const { plan } = reverse(opened, id, past(), [undone]);
        return Math.max(...plan.map(({ before }) => before?.known?.inos.length ?? 0));
      };
      assert.deepEqual([inosWith(begin.at), inosWith(begin.at - 1)], [2, 1]);
    });

    it('looks first whether the root may be written at all', async () => {
      const forbidden = [chainOf(opened.root).folders];
      const pace = { step: () => Promise.resolve(), turn: () => Promise.resolve(), log: () => undefined };
      await assert.rejects(
        undo({ ...opened, forbidden }, opened, { promotion: id, bootId: 'this boot' }, pace),
        isUnsafe,
      );
    });
  });
});
