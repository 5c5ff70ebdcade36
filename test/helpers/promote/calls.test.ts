import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';

import { PromoteRefused } from '../../../helpers/promote/handlers.ts';
import { CommitUncertain } from '../../../helpers/promote/journal.ts';
import type { PromoteReply } from '../../../helpers/promote/protocol.ts';
import { NativeError, syscall } from '../../../helpers/runtime/libc.ts';
import type { Argument, Interposer } from '../../../helpers/runtime/libc.ts';
import { hasStrace } from '../../fakes/killer.ts';
import { applyPlainly } from '../../fakes/plain-promote.ts';
import { applyHere, recoverHere } from '../../fakes/promote-here.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import { asksToShare, refused } from '../../fakes/shared-blocks.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';
import { skipBecause } from '../../skip.ts';

describe('a call that does less than it was asked, or nothing', function () {
  this.timeout(120_000);
  const seed = Date.now() % 1_000_000;
  let scene: PromotionScene;
  let promoted: ReadonlyMap<string, unknown>;

  before(async () => {
    const clean = twelveEntries({ asCaller: true });
    assert.equal((await applyHere(clean)).outcome, 'promoted');
    promoted = timeless(clean.listing());
    clean.remove();
  });
  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
  });
  afterEach(() => scene.remove());

  /** Writes with every write cut to some bytes. */
  function cutTo(bytes: (asked: number) => number): Interposer {
    let isOwnCall = false;
    return (name, args, make) => {
      const [descriptor = 0, memory, , offset = 0] = args;
      if (isOwnCall || name !== 'pwrite64' || !Buffer.isBuffer(memory)) return make();
      const count = bytes(memory.length);
      if (count === 0) return 0;
      isOwnCall = true;
      try {
        return syscall('pwrite64', descriptor, memory.subarray(0, count), count, offset);
      } finally {
        isOwnCall = false;
      }
    };
  }

  it('S-161 short writes are gone on with to the end, and a write of nothing ends the apply: no file is cut', async () => {
    const large = Buffer.from(Array.from({ length: 600_000 }, (_, index) => index % 251));
    for (const bytes of [() => 1, (asked: number) => Math.ceil(asked / 2), (asked: number) => Math.min(asked, 4096)]) {
      scene.remove();
      scene = twelveEntries({ asCaller: true });
      const isByteByByte = bytes(1000) === 1;
      if (!isByteByByte) scene.draftOf({ changed: { file: large, mode: 0o640 }, more: { file: large } });
      assert.equal((await applyHere(scene, cutTo(bytes))).outcome, 'promoted');
      if (isByteByByte) assert.deepEqual(timeless(scene.listing()), promoted);
      else for (const name of ['changed', 'more']) assert.ok(fs.readFileSync(scene.at(name)).equals(large));
      assert.equal(recoverHere(scene).outcome, 'nothing-to-do', 'the journal of short writes is whole');
    }
    for (let nth = 1, hit = true; hit; nth += 1) {
      scene.remove();
      scene = twelveEntries({ asCaller: true });
      const before = scene.listing();
      let writes = 0;
      const zero = cutTo((asked) => {
        writes += 1;
        return writes === nth ? 0 : asked;
      });
      const reply = await applyHere(scene, zero);
      hit = writes >= nth;
      await assertOldOrNew(before, reply, `write ${nth} of nothing`);
    }
  });

  /** The tree is the old one to the last time, or the new one, and the answer says which. */
  async function assertOldOrNew(
    before: ReturnType<PromotionScene['listing']>,
    reply: PromoteReply<'promote.apply'> | undefined,
    what: string,
  ): Promise<void> {
    const recovered = recoverHere(scene).outcome;
    assert.notEqual(recovered, 'needs-attention', what);
    const isNew = reply === undefined ? recovered === 'cleaned' : reply.outcome === 'promoted';
    if (isNew) assert.deepEqual(timeless(scene.listing()), promoted, what);
    else assert.deepEqual(scene.listing(), before, what);
  }

  const answers: readonly (readonly [string, keyof typeof constants.errno])[] = [
    ['pwrite64', 'EDQUOT'],
    ['pwrite64', 'ENOSPC'],
    ['renameat2', 'EROFS'],
    ['openat2', 'EMFILE'],
    ['openat2', 'ENOMEM'],
    ['openat2', 'EINTR'],
    ['openat2', 'EAGAIN'],
    ['linkat', 'EDQUOT'],
    ['mkdirat', 'ENOMEM'],
    ['fcntl', 'EINTR'],
    ['getdents64', 'EIO'],
    ['statx', 'EIO'],
  ];

  /** Refuses the nth call of a name, once or for ever, and counts them. */
  function refusing(call: string, errno: keyof typeof constants.errno, nth: number, forEver: boolean) {
    const seen = { count: 0, refused: 0 };
    const between: Interposer = (name: string, _args: readonly Argument[], make) => {
      if (name !== call) return make();
      seen.count += 1;
      if (seen.count !== nth && !(forEver && seen.count > nth)) return make();
      seen.refused += 1;
      throw new NativeError(call, constants.errno[errno]);
    };
    return { seen, between };
  }

  describe('S-160 an error that any call answers: restored or refused, and tried again only so often', () => {
    for (const [call, errno] of answers) {
      it(`${errno} from ${call}, wherever it comes: the tree is old or new, and the answer true`, async () => {
        const clean = refusing(call, errno, 0, false);
        await applyHere(scene, clean.between);
        const { count } = clean.seen;
        assert.ok(count > 0);
        const step = Math.max(1, Math.ceil(count / 12));
        for (let nth = 1 + (seed % step); nth <= count; nth += step) {
          scene.remove();
          scene = twelveEntries({ asCaller: true });
          const before = scene.listing();
          const { between } = refusing(call, errno, nth, false);
          const what = `${errno} from ${call} ${nth} of ${count}, seed ${seed}`;
          const reply = await applyHere(scene, between).catch((error: unknown) => {
            // A pin that cannot be read is a refusal of its own, which names the call.
            const kinds = [NativeError, CommitUncertain, PromoteRefused];
            assert.ok(
              kinds.some((kind) => error instanceof kind),
              what,
            );
            return undefined;
          });
          await assertOldOrNew(before, reply, what);
        }
      });
    }

    it('a walk that the kernel cannot decide is tried again, and not for ever', async () => {
      const before = scene.listing();
      const clean = refusing('openat2', 'EAGAIN', 0, false);
      await applyHere(scene, clean.between);
      scene.remove();
      scene = twelveEntries({ asCaller: true });
      const fresh = scene.listing();
      assert.equal(before.size, fresh.size);
      const { between, seen } = refusing('openat2', 'EAGAIN', Math.floor(clean.seen.count / 2), true);
      const reply = await applyHere(scene, between).catch(() => undefined);
      assert.ok(seen.refused > 2 && seen.refused < 2000, `${seen.refused} tries`);
      await assertOldOrNew(fresh, reply, 'EAGAIN for ever');
    });

    it('a disk that does not even say what it is keeps nobody from the way back, and the first cause is told', async () => {
      const before = scene.listing();
      let writes = 0;
      const reply = await applyHere(scene, (name, _args, make) => {
        if (name === 'pwrite64') writes += 1;
        const isRefused = (name === 'pwrite64' && writes === 6) || (name === 'fstatfs' && writes >= 6);
        if (isRefused) throw new NativeError(name, constants.errno.EIO);
        return make();
      });
      assert.equal(reply.outcome, 'rolled-back');
      assert.equal(reply.outcome === 'rolled-back' && reply.detail, 'pwrite64 failed: EIO');
      assert.deepEqual(scene.listing(), before);
    });

    it('an original that cannot be read is named as the disk’s fault, and nothing is changed', async function () {
      if (!hasStrace()) skipBecause(this, 'strace');
      scene.remove();
      let isOriginal = false;
      for (let nth = 7; nth < 20 && !isOriginal; nth += 1) {
        scene = twelveEntries({ asCaller: true });
        const before = scene.listing();
        const { applied } = await applyPlainly(scene, [`pread64:error=EIO:when=${nth}`], ['pread64']);
        assert.notEqual(recoverHere(scene).outcome, 'needs-attention');
        if (applied?.outcome !== 'promoted') assert.deepEqual(scene.listing(), before, `read ${nth}`);
        isOriginal = applied?.outcome === 'refused' && applied.code === 'PROMOTION_IO_FAILURE' && 'path' in applied;
        if (isOriginal && applied?.outcome === 'refused')
          assert.match(applied.detail ?? '', /^(?:pread64|read) failed: EIO on /);
        if (!isOriginal) scene.remove();
      }
      assert.ok(isOriginal, 'no read of an original was met');
    });
  });

  it('S-173 modes are the reviewed ones under every umask', async () => {
    const found = [];
    for (const umask of [0o000, 0o022, 0o077]) {
      scene.remove();
      scene = twelveEntries({ asCaller: true });
      const old = process.umask(umask);
      try {
        assert.equal((await applyHere(scene)).outcome, 'promoted');
      } finally {
        process.umask(old);
      }
      found.push(timeless(scene.listing()));
    }
    for (const listing of found) assert.deepEqual(listing, promoted);
    assert.equal(scene.listing().get('made')?.mode, '700');
    assert.equal(scene.listing().get('made/\xff')?.mode, '755');
  });

  it('S-177 where blocks cannot be shared new content is copied, and a stage folder on another mount is never written to', async function () {
    const large = Buffer.alloc(300_000, 'large');
    scene.draftOf({ changed: { file: large } });
    let asked = 0;
    const plain = await applyHere(scene, (name, args, make) => {
      if (!asksToShare(name, args)) return make();
      asked += 1;
      return refused(name, 'EOPNOTSUPP');
    });
    assert.ok(plain.outcome === 'promoted' && asked > 0);
    assert.ok(fs.readFileSync(scene.at('changed')).equals(large));
    if (process.getuid?.() !== 0) skipBecause(this, 'a mount is made by root');
    scene.remove();
    scene = twelveEntries({ asCaller: true });
    const before = scene.listing();
    let stage: string | undefined;
    const mounting: Interposer = (name, _args, make) => {
      const result = make();
      if (name === 'mkdirat' && stage === undefined) {
        const made = fs.readdirSync(scene.root).find((entry) => entry.startsWith('.nessie-stage-'));
        if (made !== undefined) {
          stage = path.join(scene.root, made);
          assert.equal(spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', stage]).status, 0);
        }
      }
      return result;
    };
    const reply = await applyHere(scene, mounting);
    assert.ok(stage !== undefined);
    assert.deepEqual(fs.readdirSync(stage), []);
    assert.equal(spawnSync('umount', [stage]).status, 0);
    assert.notEqual(reply.outcome, 'promoted');
    assert.equal(recoverHere(scene).outcome, 'rolled-back');
    assert.deepEqual(scene.listing(), before);
  });
});
