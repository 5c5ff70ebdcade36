import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { hasStrace } from '../../fakes/killer.ts';
import { applyPlainly } from '../../fakes/plain-promote.ts';
import { PromotionScene, timeless } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';
import { skipBecause } from '../../skip.ts';

describe('a process of promote whose disk refuses', function () {
  this.timeout(180_000);
  let scene: PromotionScene | undefined;

  before(function () {
    if (!hasStrace()) skipBecause(this, 'strace');
  });
  afterEach(() => {
    scene?.remove();
    scene = undefined;
  });

  it('the sync of its commit ends without an answer, and the next one goes forward with what the journal says', async () => {
    const clean = twelveEntries({ asCaller: true });
    const { calls, applied } = await applyPlainly(clean, []);
    assert.equal(applied?.outcome, 'promoted');
    const promoted = timeless(clean.listing());
    clean.remove();
    const commit = calls.findLastIndex(({ name }, index) => {
      // Only the rename that sends the journal to the history comes after the one that commits.
      return name === 'renameat2' && calls.slice(index + 1).filter((call) => call.name === 'renameat2').length === 1;
    });
    const sync = calls[commit + 1];
    assert.equal(sync?.name, 'fsync');

    scene = twelveEntries({ asCaller: true });
    const run = await applyPlainly(scene, [`fsync:error=EIO:when=${sync.nth}`]);
    assert.equal(run.applied, undefined);
    scene.draftOf({ more: { file: 'more' } });
    const next = await applyPlainly(scene, []);
    assert.deepEqual([next.recovered.outcome, next.applied?.outcome], ['cleaned', 'promoted']);
    const now = timeless(scene.listing());
    assert.deepEqual(new Map([...now].filter(([name]) => name !== 'more')), promoted);
  });

  it('too little room, in bytes or in inodes, is refused before the first change', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'a small file system is mounted by root');
    for (const [options, missing] of [
      ['size=8m', /^tmpfs, where the workspace root lies, has \d+ bytes free/],
      ['size=64m,nr_inodes=70', /^tmpfs, where the workspace root lies, has \d+ inodes free/],
    ] as const) {
      const mount = fs.mkdtempSync(path.join(os.tmpdir(), 'small-'));
      if (spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', mount]).status !== 0) {
        skipBecause(this, 'a mount of tmpfs');
      }
      try {
        const small = new PromotionScene({ parent: mount, asCaller: true });
        small.put('file', 'old');
        small.draftOf({ file: { file: 'new' }, more: { file: 'more' } });
        const before = small.listing();
        const { applied } = await applyPlainly(small, []);
        assert.ok(applied?.outcome === 'refused' && applied.code === 'PROMOTION_IO_FAILURE', JSON.stringify(applied));
        assert.match(applied.detail ?? '', missing);
        assert.deepEqual(small.listing(), before);
      } finally {
        spawnSync('umount', ['-l', mount]);
        fs.rmdirSync(mount);
      }
    }
  });
});
