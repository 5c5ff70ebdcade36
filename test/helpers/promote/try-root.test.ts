import assert from 'node:assert/strict';
import fs from 'node:fs';

import { interpose } from '../../../helpers/runtime/libc.ts';
import type { Interposer } from '../../../helpers/runtime/libc.ts';
import { Ended } from '../../faults/errors/faulty-disk.ts';
import { promoteHere, recoverHere } from '../../fakes/promote-here.ts';
import { refused, sharingDisk } from '../../fakes/shared-blocks.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import type { Tried } from '../../../helpers/protocol/file-system.ts';

describe('a look at what the file system of the root has', function () {
  this.timeout(60_000);
  let scene: PromotionScene;
  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
  });
  afterEach(() => scene.remove());

  const tried = (between?: Interposer): Promise<Tried> =>
    promoteHere(scene, async (handlers) => {
      interpose(between);
      try {
        return await handlers.fileSystem();
      } finally {
        interpose(undefined);
      }
    });
  const left = (): string[] => fs.readdirSync(scene.own).filter((name) => name.startsWith('journal'));

  it('tells each thing as it was found, and leaves the root with its time and no journal', async () => {
    const before = scene.listing();
    const found = await tried(sharingDisk());
    assert.ok(found.outcome === 'found' && found.exchange && found.noReplace && found.reflink, JSON.stringify(found));
    assert.match(found.fileSystem, /^[a-z0-9]+$/);
    const without = await tried((name, _args, make) => (name === 'linkat' ? refused(name, 'EPERM') : make()));
    assert.ok(without.outcome === 'found' && !without.unnamed);
    assert.deepEqual(scene.listing(), before);
    assert.deepEqual(left(), []);
  });

  it('ended before any of its calls, it leaves what the next recovery settles; refused any, it says so', async () => {
    const before = scene.listing();
    let cases = 0;
    for (let nth = 1, calls = 0; ; nth += 1) {
      calls = 0;
      await tried((name, _args, make, number) => {
        if (number !== undefined && (calls += 1) >= nth) throw new Ended(name);
        return make();
      }).catch((error: unknown) => assert.ok(error instanceof Ended));
      const { outcome } = recoverHere(scene);
      assert.ok(['nothing-to-do', 'rolled-back'].includes(outcome), `${nth}: ${outcome}`);
      assert.deepEqual(scene.listing(), before, `${nth}`);
      assert.deepEqual(left(), []);
      if (calls < nth) break;
      cases += 1;
    }
    assert.ok(cases > 20, `${cases} calls`);
    const full = await tried((name, _args, make) => (name === 'mkdirat' ? refused(name, 'ENOSPC') : make()));
    assert.deepEqual(full, { outcome: 'refused', code: 'PROMOTION_IO_FAILURE' });
    assert.deepEqual(scene.listing(), before);
  });
});
