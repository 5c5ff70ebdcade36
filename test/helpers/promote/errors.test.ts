import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { recover } from '../../../helpers/promote/recover.ts';
import type { Recovered } from '../../../helpers/promote/recover.ts';
import { hasStrace } from '../../fakes/killer.ts';
import type { Call } from '../../fakes/killer.ts';
import { applyPlainly } from '../../fakes/plain-promote.ts';
import { PromotionScene, timeless } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';
import { skipBecause } from '../../skip.ts';

/** The owner's log is not what is looked at here. */
const log = (): void => undefined;

function recoverIn(scene: PromotionScene): Recovered {
  const [own, root] = [fs.openSync(scene.own, 'r'), fs.openSync(scene.root, 'r')];
  try {
    return recover({ own, root }, { bootId: 'this boot', now: Date.now(), log });
  } finally {
    fs.closeSync(own);
    fs.closeSync(root);
  }
}

describe('the disk refuses a call', function () {
  this.timeout(180_000);
  const seed = Date.now() % 1_000_000;
  let calls: readonly Call[] = [];
  let promoted: ReadonlyMap<string, unknown> = new Map();
  let scene: PromotionScene | undefined;

  before(async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    const clean = twelveEntries({ asCaller: true });
    const run = await applyPlainly(clean, []);
    assert.equal(run.applied?.outcome, 'promoted');
    calls = run.calls;
    promoted = timeless(clean.listing());
    clean.remove();
  });
  afterEach(() => {
    scene?.remove();
    scene = undefined;
  });

  /** Applies with one call refused; whatever is answered must be true, and the tree old or new after the next recovery. */
  async function refusing(inject: string): Promise<string> {
    scene = twelveEntries({ asCaller: true });
    const before = scene.listing();
    const { applied } = await applyPlainly(scene, [inject]);
    const outcome = applied?.outcome ?? 'ended';
    if (outcome === 'rolled-back') assert.deepEqual(scene.listing(), before, inject);
    if (outcome === 'promoted') assert.equal(fs.readFileSync(scene.at('changed'), 'utf8'), 'new', inject);
    const recovered = recoverIn(scene);
    assert.notEqual(recovered.outcome, 'needs-attention', inject);
    const now = scene.listing();
    const isNew = outcome === 'promoted' || (outcome === 'ended' && recovered.outcome === 'cleaned');
    if (isNew) assert.deepEqual(timeless(now), promoted, inject);
    else assert.deepEqual(now, before, inject);
    scene.remove();
    return outcome;
  }

  /** Place of the rename that commits: only the one that sends the journal to the history comes after it. */
  function commit(): number {
    const committing = calls.filter(({ name }) => name === 'renameat2').at(-2);
    assert.ok(committing);
    return calls.indexOf(committing);
  }

  it('an fsync that fails before the commit is never retried into success', async () => {
    const syncs = calls.filter(({ name }, index) => name === 'fsync' && index < commit());
    assert.ok(syncs.length > 20, `${syncs.length} syncs before the commit`);
    const step = Math.ceil(syncs.length / 5);
    for (const [index, { nth }] of syncs.entries()) {
      if ((index + seed) % step !== 0 && index !== syncs.length - 1) continue;
      const outcome = await refusing(`fsync:error=EIO:when=${nth}`);
      assert.ok(outcome === 'rolled-back' || outcome === 'refused', `fsync ${nth}: ${outcome}, seed ${seed}`);
    }
  });

  it('a commit whose own sync fails is answered by nobody, since the next recovery may go forward with it', async () => {
    const sync = calls[commit() + 1];
    assert.equal(sync?.name, 'fsync');
    assert.equal(await refusing(`fsync:error=EIO:when=${sync.nth}`), 'ended');
  });

  const refusals: readonly (readonly [string, string])[] = [
    ['a full disk while staging', 'pwrite64:error=ENOSPC:when=5'],
    ['a quota while the journal is written', 'pwrite64:error=EDQUOT:when=10'],
    ['no room for the history', 'pwrite64:error=ENOSPC:when=13'],
    ['a file system that turns read-only in mid-apply', 'renameat2:error=EROFS:when=10'],
    ['no memory', 'openat2:error=ENOMEM:when=60'],
    ['a walk that is raced for ever', 'openat2:error=EAGAIN:when=50+'],
    ['an exchange that the file system cannot do', 'renameat2:error=EINVAL:when=18'],
    ['an old file that cannot be unlinked', 'unlinkat:error=EIO:when=6'],
  ];
  for (const [sentence, inject] of refusals) {
    it(`${sentence}: what is answered is true, and the tree is old or new`, async () => {
      await refusing(inject);
    });
  }

  it('a restore that fails too leaves everything to the next recovery, and says so', async () => {
    scene = twelveEntries({ asCaller: true });
    const before = scene.listing();
    const { applied } = await applyPlainly(scene, ['renameat2:error=EIO:when=12+']);
    assert.deepEqual(applied, { outcome: 'refused', code: 'PROMOTION_RECOVERY_REQUIRED' });
    assert.deepEqual(recoverIn(scene), { outcome: 'rolled-back', conflicts: [] });
    assert.deepEqual(scene.listing(), before);
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
