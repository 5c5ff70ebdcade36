import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import type { Interposer } from '../../../helpers/runtime/libc.ts';
import { FILE_SYSTEMS, fill, fillInodes, missingFor, mounted } from '../../fakes/file-systems.ts';
import type { Mounted } from '../../fakes/file-systems.ts';
import { applyHere, liesIn, recoverHere } from '../../fakes/promote-here.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { twelveChanges, twelveEntries } from '../../fakes/twelve-entries.ts';
import { skipBecause } from '../../skip.ts';

const LARGE = Buffer.alloc(1_048_576, 7);

/** Does something once, when new content lies in the stage folder and more is to come. */
function inMidStage(scene: PromotionScene, act: () => void): Interposer {
  let staged = 0;
  return (name, args, make) => {
    if (name === 'linkat' && liesIn(scene.root, args[2])) {
      staged += 1;
      // The first one that is linked is tried, and holds nothing.
      if (staged === 3) act();
    }
    return make();
  };
}

/** Where the content of a file lies on its disk, and whether another file lies there too, as filefrag tells. */
function extentsOf(file: string): { readonly at: string; readonly isShared: boolean } {
  const { stdout } = spawnSync('filefrag', ['-v', file], { encoding: 'utf8' });
  const lines = stdout.split('\n').filter((line) => /^\s*\d+:/.test(line));
  const at = lines.map((line) => /:\s*(\d+)\.\./.exec(line.replace(/^\s*\d+:\s*\d+\.\.\s*\d+/, ''))?.[1]).join();
  return { at, isShared: lines.length > 0 && lines.every((line) => /\bshared\b/.test(line)) };
}

for (const kind of FILE_SYSTEMS) {
  describe(`promotion on ${kind}`, function () {
    this.timeout(180_000);
    let installation: RealInstallation;
    let disk: Mounted | undefined;

    before(async function () {
      const missing = missingFor(kind);
      if (missing !== undefined) skipBecause(this, missing);
      installation = await installRows('promote');
    });
    after(() => installation?.remove());
    beforeEach(() => {
      disk = mounted(kind);
    });
    afterEach(() => {
      disk?.remove();
      disk = undefined;
    });

    const sceneOn = (asCaller: boolean): PromotionScene => twelveEntries({ parent: disk?.at ?? '', asCaller });

    it('the twelve changes arrive, and the old tree comes back from a promotion that stops', async () => {
      const scene = sceneOn(false);
      const before = scene.listing();
      scene.put('keep/one', 'edited meanwhile');
      const refused = await scene.apply(installation);
      assert.equal(refused.outcome === 'promoted' ? 'promoted' : refused.code, 'PROMOTION_CONFLICT');
      scene.put('keep/one', '1');
      fs.utimesSync(scene.at('keep'), 1_000_000_000, 1_000_000_000);
      assert.deepEqual([...scene.listing().keys()], [...before.keys()]);
      assert.equal((await scene.apply(installation)).outcome, 'promoted');
      const now = scene.listing();
      assert.deepEqual(
        [...now.keys()],
        ['.', 'changed', 'flip', 'flip/file', 'keep', 'keep/one', 'keep/three', 'made', 'made/\xff', 'mode'],
      );
      assert.equal(fs.readFileSync(scene.at('changed'), 'utf8'), 'new');
      assert.equal(now.get('mode')?.mode, '755');
      assert.equal((await scene.recover(installation)).outcome, 'nothing-to-do');
    });

    const exhausted: readonly (readonly [string, (at: string) => void, RegExp])[] = [
      ['its room', fill, new RegExp(`^no room is left on ${kind}, where the workspace root lies$`)],
      ...(kind === 'xfs' || kind === 'btrfs'
        ? // Their inodes are taken from the room.
          []
        : ([
            ['its inodes', fillInodes, new RegExp(`^no inode is left on ${kind}, where the workspace root lies$`)],
          ] as const)),
    ];
    for (const [what, exhaust, says] of exhausted) {
      it(`when ${what} is used up in mid-apply the old tree comes back and the cause is named`, async () => {
        const scene = sceneOn(true);
        scene.draftOf({
          changed: { file: LARGE },
          more: { file: LARGE },
          gone: 'removed',
          'keep/three': { file: LARGE },
        });
        const before = scene.listing();
        const at = disk?.at ?? '';
        const reply = await applyHere(
          scene,
          inMidStage(scene, () => exhaust(at)),
        );
        assert.ok(reply.outcome === 'rolled-back' && reply.code === 'PROMOTION_IO_FAILURE', JSON.stringify(reply));
        assert.match(reply.detail ?? '', says);
        assert.deepEqual(scene.listing(), before);
        assert.equal(recoverHere(scene).outcome, 'nothing-to-do');
        for (const name of ['filler', 'fillers']) fs.rmSync(path.join(at, name), { recursive: true, force: true });
        assert.equal((await applyHere(scene)).outcome, 'promoted', 'with room again it is applied');
      });
    }

    const shares = kind === 'xfs' || kind === 'btrfs';
    const promises = shares ? 'shares the blocks of the draft, and its old content those of the history' : 'is copied';
    it(`a large file ${promises}`, async () => {
      const scene = sceneOn(true);
      for (const name of ['changed', 'mode']) scene.put(name, LARGE);
      scene.draftOf({ changed: { file: Buffer.alloc(LARGE.length, 8) }, mode: { mode: 0o755 } });
      spawnSync('sync', ['-f', scene.root]);
      const old = ['changed', 'mode'].map((name) => extentsOf(scene.at(name).toString()).at);
      const reply = await applyHere(scene);
      assert.ok(reply.outcome === 'promoted', JSON.stringify(reply));
      const history = path.join(scene.own, 'history', reply.history);
      const kept = fs.readdirSync(history).filter((name) => /^\d+$/.test(name));
      for (const name of kept) assert.ok(fs.readFileSync(path.join(history, name)).equals(LARGE));
      assert.ok(fs.readFileSync(scene.at('changed')).every((byte) => byte === 8));
      if (kind === 'tmpfs') return;
      const found = ['changed', 'mode'].map((name) => extentsOf(scene.at(name).toString()).isShared);
      assert.deepEqual(found, [shares, shares]);
      const places = kept.map((name) => extentsOf(path.join(history, name)).at);
      assert.deepEqual(
        places.toSorted().map((at) => old.includes(at)),
        [shares, shares],
        `${places.join(' ')} of ${old.join(' ')}`,
      );
    });

    it('when it is mounted read-only it is refused before the first change, by name', async () => {
      const scene = sceneOn(true);
      const before = scene.listing();
      // The executor's own folder stays writable beside it.
      assert.equal(spawnSync('mount', ['--bind', scene.root, scene.root]).status, 0);
      assert.equal(spawnSync('mount', ['-o', 'remount,bind,ro', scene.root]).status, 0);
      try {
        const reply = await applyHere(scene);
        assert.ok(reply.outcome === 'refused' && reply.code === 'PROMOTION_UNSUPPORTED', JSON.stringify(reply));
        assert.equal(reply.detail, `${kind}, where the workspace root lies, is mounted read-only`);
        assert.deepEqual(scene.listing(), before);
      } finally {
        spawnSync('umount', [scene.root]);
      }
    });
  });
}

describe('promotion on overlayfs', function () {
  this.timeout(60_000);

  it('files that still lie in the lower layer are changed, and a folder of it that cannot move leaves the old tree', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'file systems are mounted by root');
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'overlay-'));
    const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => path.join(folder, name));
    for (const name of ['lower', 'upper', 'work', 'merged']) fs.mkdirSync(path.join(folder, name));
    const overlay = (below: string): void => {
      const options = `lowerdir=${below},upperdir=${upper},workdir=${work}`;
      const made = spawnSync('mount', ['-t', 'overlay', '-o', options, 'overlay', merged ?? '']);
      if (made.status !== 0) skipBecause(this, 'a mount of overlayfs');
    };
    overlay(lower ?? '');
    try {
      const scene = twelveEntries({ parent: merged ?? '', asCaller: true });
      // What was written becomes the lower layer of a fresh overlay.
      spawnSync('umount', [merged ?? '']);
      fs.renameSync(upper ?? '', path.join(folder, 'below'));
      for (const name of ['upper', 'work']) fs.rmSync(path.join(folder, name), { recursive: true, force: true });
      for (const name of ['upper', 'work']) fs.mkdirSync(path.join(folder, name));
      overlay(path.join(folder, 'below'));
      // The root itself comes up now: an overlay gives it another time of birth then, and so another identity.
      fs.chmodSync(scene.root, 0o755);
      scene.pin();
      scene.draftOf(twelveChanges);
      const before = scene.listing();
      const reply = await applyHere(scene);
      assert.ok(reply.outcome === 'rolled-back' && reply.path === 'old', JSON.stringify(reply));
      assert.equal(reply.detail, 'renameat2 failed: EXDEV on overlayfs');
      assert.deepEqual(timeless(scene.listing()), timeless(before));
      scene.draftOf({
        changed: { file: 'new', mode: 0o640 },
        mode: { mode: 0o755 },
        gone: 'removed',
        'keep/one': { file: 'one' },
        'keep/more': { file: 'more' },
      });
      const applied = await applyHere(scene);
      assert.equal(applied.outcome, 'promoted', JSON.stringify(applied));
      assert.equal(fs.readFileSync(scene.at('changed'), 'utf8'), 'new');
    } finally {
      spawnSync('umount', [merged ?? '']);
      fs.rmSync(folder, { recursive: true, force: true });
    }
  });
});
