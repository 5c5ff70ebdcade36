import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { promotionIdSchema } from '../../../helpers/protocol/ids.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';
import type { Interposer } from '../../../helpers/runtime/libc.ts';
import { applyHere, liesIn, promoted, promoteHere, recoverHere, undoHere } from '../../fakes/promote-here.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { refused } from '../../fakes/shared-blocks.ts';

const WRITING = new Set(['pwrite64', 'mkdirat', 'fsync', 'openat2']);
const FULL = { code: 'UNDO_NOT_KEPT', path: 'one', detail: 'the disk was full when they were to be' } as const;

describe('a history that cannot be kept or read', function () {
  this.timeout(60_000);
  let scene: PromotionScene;

  beforeEach(() => {
    scene = new PromotionScene({ asCaller: true });
    for (const name of ['one', 'two']) scene.put(name, 'old');
    scene.draftOf({ one: { file: 'new' }, two: { file: 'new' } });
  });
  afterEach(() => scene.remove());

  const history = (): string => path.join(scene.own, 'history');
  const listed = async (): Promise<unknown> =>
    (await promoteHere(scene, (handlers) => handlers.history())).promotions.map(({ refusal }) => refusal);

  /** A disk that becomes full with the nth call that writes old files, and has room again. */
  function full(nth: number, errno: 'ENOSPC' | 'EDQUOT'): Interposer & { readonly hits: () => number } {
    let seen = 0;
    const disk: Interposer = (name, args, make, number) => {
      const isWrite = number !== undefined && WRITING.has(name) && liesIn(history(), args[0]);
      if (isWrite && (seen += 1) === nth) return refused(name, errno);
      return make();
    };
    return Object.assign(disk, { hits: () => seen - nth + 1 });
  }

  it('a disk that is full when old files are to be kept costs the undo alone, and the answer, the log and the history say so', async () => {
    let cases = 0;
    for (const errno of ['ENOSPC', 'EDQUOT'] as const) {
      for (let nth = 1; ; nth += 1) {
        const said: string[] = [];
        const approval = scene.approve();
        const disk = full(nth, errno);
        const reply = await promoteHere(
          scene,
          async (handlers) => {
            interpose(disk);
            try {
              return await handlers.apply({ approval });
            } finally {
              interpose(undefined);
            }
          },
          (sentence) => void said.push(sentence),
        );
        assert.ok(reply.outcome === 'promoted', JSON.stringify(reply));
        const isCut = reply.notKept !== undefined;
        if (isCut) {
          cases += 1;
          assert.equal(reply.notKept, 2);
          assert.deepEqual(said, [
            'promoted; it cannot be undone, because the disk was full: 2 old files are not kept',
          ]);
          assert.deepEqual(fs.readdirSync(path.join(history(), reply.history)).toSorted(), ['journal', 'not-kept']);
          assert.deepEqual(await listed(), [FULL]);
          assert.deepEqual(await undoHere(scene, reply.history), { outcome: 'refused', ...FULL });
        }
        assert.equal(fs.readFileSync(scene.at('one'), 'utf8'), 'new');
        assert.equal(recoverHere(scene).outcome, 'nothing-to-do');
        scene.remove();
        scene = new PromotionScene({ asCaller: true });
        for (const name of ['one', 'two']) scene.put(name, 'old');
        scene.draftOf({ one: { file: 'new' }, two: { file: 'new' } });
        if (disk.hits() < 1) break;
      }
    }
    assert.ok(cases >= 10, `${cases} cases`);
  });

  it('and where there is no room for the note either, the answer says it still, and the history that nothing is kept', async () => {
    const reply = await applyHere(scene, (name, args, make) =>
      name === 'pwrite64' && liesIn(history(), args[0]) ? refused(name, 'ENOSPC') : make(),
    );
    assert.ok(reply.outcome === 'promoted' && reply.notKept === 2, JSON.stringify(reply));
    assert.deepEqual(await listed(), [{ code: 'UNDO_NOT_KEPT', path: 'one' }]);
  });

  it('a recovery that finds the disk full says it too', async () => {
    let isOver = false;
    const reply = await applyHere(scene, (name, args, make) => {
      isOver ||= name === 'mkdirat' && liesIn(scene.own, args[0]);
      if (isOver && name === 'mkdirat') return refused(name, 'EIO');
      return make();
    });
    assert.ok(reply.outcome === 'promoted' && reply.notKept === undefined);
    const said: string[] = [];
    interpose(full(3, 'ENOSPC'));
    try {
      assert.equal(recoverHere(scene, (sentence) => void said.push(sentence)).outcome, 'cleaned');
    } finally {
      interpose(undefined);
    }
    assert.match(said.join(), /it cannot be undone, because the disk was full: 2 old files/);
    assert.deepEqual(await listed(), [FULL]);
  });

  it('a disk that fails while one promotion is looked at leaves the others in the answer', async () => {
    const first = await promoted(scene);
    scene.draftOf({ one: { file: 'newer' } });
    const second = await promoted(scene);
    let told = 0;
    for (let nth = 1; ; nth += 1) {
      const isHit = await promoteHere(scene, async (handlers) => {
        let seen = 0;
        interpose((name, args, make) => {
          const isOne = liesIn(path.join(history(), first), args[0]) || liesIn(path.join(history(), second), args[0]);
          if (isOne && (seen += 1) === nth) return refused(name, 'EIO');
          return make();
        });
        try {
          const { promotions } = await handlers.history();
          assert.deepEqual(new Set(promotions.map(({ promotion }) => promotion)), new Set([first, second]));
          told += promotions.filter(({ refusal }) => refusal?.code === 'PROMOTION_IO_FAILURE').length;
          return seen >= nth;
        } finally {
          interpose(undefined);
        }
      });
      if (!isHit) break;
    }
    assert.ok(told > 10, `${told} told as unreadable`);
    assert.ok((await promoteHere(scene, (handlers) => handlers.history())).promotions.some(({ refusal }) => !refusal));
  });

  it('one whose folder is no folder that promote would make is told as damaged beside the others', async () => {
    const first = await promoted(scene);
    scene.draftOf({ one: { file: 'newer' } });
    const second = await promoted(scene);
    fs.chmodSync(path.join(history(), first), 0o755);
    const { promotions } = await promoteHere(scene, (handlers) => handlers.history());
    const codes = new Map(promotions.map(({ promotion, refusal }) => [promotion, refusal?.code]));
    assert.equal(codes.size, 2);
    assert.equal(codes.get(promotionIdSchema.parse(first)), 'PROMOTION_JOURNAL_INVALID');
    assert.equal(codes.get(promotionIdSchema.parse(second)), undefined);
  });
});
