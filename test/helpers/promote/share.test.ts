import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import type { Interposer } from '../../../helpers/runtime/libc.ts';
import { applyHere, confirmedUndo, liesIn, recoverHere } from '../../fakes/promote-here.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { asksToShare, refused, sharingDisk } from '../../fakes/shared-blocks.ts';

const bytesOf = (first: number): Buffer => Buffer.alloc(300_000, `${first} `);
const [OLD, NEW, OTHER] = [bytesOf(1), bytesOf(2), bytesOf(3)];
const DRAFT = {
  fresh: { file: NEW },
  changed: { file: NEW },
  mode: { mode: 0o755 },
  small: { file: 'small' },
} as const;

describe('copies that share blocks with their original', function () {
  this.timeout(60_000);
  let scene: PromotionScene;
  beforeEach(() => {
    scene = new PromotionScene({ asCaller: true });
    for (const name of ['changed', 'mode']) scene.put(name, OLD);
    scene.draftOf(DRAFT);
  });
  afterEach(() => scene.remove());

  /** Whether the history of the scene's one promotion holds both old files, whole. */
  const isKept = (): boolean => {
    const history = path.join(scene.own, 'history');
    const [id = ''] = fs.readdirSync(history);
    const old = fs.readdirSync(path.join(history, id)).filter((name) => /^\d+$/.test(name));
    return old.length === 2 && old.every((name) => fs.readFileSync(path.join(history, id, name)).equals(OLD));
  };
  const isPromoted = (): void => {
    assert.ok(fs.readFileSync(scene.at('fresh')).equals(NEW) && fs.readFileSync(scene.at('changed')).equals(NEW));
    assert.ok(fs.readFileSync(scene.at('mode')).equals(OLD) && isKept());
    assert.equal(fs.statSync(scene.at('mode')).mode & 0o777, 0o755);
  };

  it('large new content, a file whose mode alone changes and the old files of the history share; what is small is written', async () => {
    const shared: string[] = [];
    let writes = 0;
    const counting: Interposer = (name, args, make) => {
      if (name === 'pwrite64' && liesIn(scene.root, args[0])) writes += 1;
      return make();
    };
    const told = (from: number): undefined => {
      const file = fs.readlinkSync(`/proc/self/fd/${from}`);
      shared.push(file.slice(scene.folder.length + 1).replace(/STAGE|\.nessie-stage-\w+/, 'stage'));
    };
    assert.equal((await applyHere(scene, sharingDisk(told, counting))).outcome, 'promoted');
    isPromoted();
    assert.equal(writes, 2, 'the small file, and the piece that is tried');
    const staged = shared.filter((file) => !file.includes('/stage/'));
    assert.equal(staged.length, 3, shared.join(', '));
    assert.equal(shared.length, 5, shared.join(', '));
  });

  it('content that changed before it was shared is not what was approved, and a change after it is not in the copy', async () => {
    const before = scene.listing();
    const content = fs.readdirSync(scene.draft).filter((name) => name.startsWith('content-'));
    const alter = (bytes: Buffer): void =>
      content.forEach((name) => fs.writeFileSync(path.join(scene.draft, name), bytes));
    for (const bytes of [OTHER, Buffer.concat([NEW, NEW]), NEW.subarray(1)]) {
      const stale = await applyHere(
        scene,
        sharingDisk(() => {
          alter(bytes);
          return undefined;
        }),
      );
      assert.ok(stale.outcome === 'rolled-back' && stale.code === 'PROMOTION_REVIEW_STALE', JSON.stringify(stale));
      assert.deepEqual(scene.listing(), before);
      scene.draftOf(DRAFT);
    }
    scene.draftOf({ fresh: { file: NEW } });
    const reply = await applyHere(
      scene,
      sharingDisk(() => () => alter(OTHER)),
    );
    assert.equal(reply.outcome, 'promoted', JSON.stringify(reply));
    assert.ok(fs.readFileSync(scene.at('fresh')).equals(NEW));
  });

  it('a copy that the file system made otherwise is met before anything is at a path', async () => {
    const before = scene.listing();
    const wrong = sharingDisk((_from, to) => () => {
      const descriptor = fs.openSync(`/proc/self/fd/${to}`, 'r+');
      fs.writeSync(descriptor, 'x', 5);
      fs.closeSync(descriptor);
    });
    const reply = await applyHere(scene, wrong);
    assert.ok(reply.outcome === 'rolled-back', JSON.stringify(reply));
    assert.deepEqual(scene.listing(), before);
  });

  it('where a file cannot share it is copied, whatever the refusal left in the copy', async () => {
    for (const errno of ['EXDEV', 'EOPNOTSUPP', 'EINVAL', 'ENOTTY', 'EPERM', 'ETXTBSY'] as const) {
      scene.remove();
      scene = new PromotionScene({ asCaller: true });
      for (const name of ['changed', 'mode']) scene.put(name, OLD);
      scene.draftOf(DRAFT);
      const cut = sharingDisk((_from, to) => {
        const descriptor = fs.openSync(`/proc/self/fd/${to}`, 'r+');
        fs.writeSync(descriptor, Buffer.concat([OTHER, OTHER]));
        fs.closeSync(descriptor);
        return refused('ioctl', errno);
      });
      assert.equal((await applyHere(scene, cut)).outcome, 'promoted', errno);
      isPromoted();
    }
  });

  it('a disk that fails or is full while blocks are shared ends the promotion, and the old tree is there', async () => {
    const before = scene.listing();
    for (const errno of ['EIO', 'ENOSPC', 'EDQUOT', 'ENOMEM'] as const) {
      const reply = await applyHere(
        scene,
        sharingDisk(() => refused('ioctl', errno)),
      );
      assert.ok(reply.outcome === 'rolled-back' && reply.code === 'PROMOTION_IO_FAILURE', JSON.stringify(reply));
      assert.deepEqual(scene.listing(), before);
      assert.equal(recoverHere(scene).outcome, 'nothing-to-do');
    }
  });

  it('a file system that does not share blocks gets plain copies', async () => {
    let asked = 0;
    const plain: Interposer = (name, args, make) => {
      if (!asksToShare(name, args)) return make();
      asked += 1;
      return refused(name, 'EOPNOTSUPP');
    };
    assert.equal((await applyHere(scene, plain)).outcome, 'promoted');
    isPromoted();
    assert.ok(asked > 0);
  });

  it('an old file that the kernel copies to the history in part, or says that it has copied and has not, is whole there, and is given back', async () => {
    const before = scene.listing();
    const answers: readonly ((args: Parameters<Interposer>[1], make: () => number) => number)[] = [
      () => 0,
      () => refused('copy_file_range', 'EXDEV'),
      (_args, make) => make(),
      (args, make) => {
        // Half of the file, and no more.
        const done = Buffer.isBuffer(args[1]) ? Number(args[1].readBigInt64LE(0)) : 0;
        return done > 0 ? 0 : make() && 0;
      },
    ];
    for (const answer of answers) {
      let copies = 0;
      const reply = await applyHere(scene, (name, args, make) => {
        if (asksToShare(name, args)) return refused(name, 'EOPNOTSUPP');
        if (name !== 'copy_file_range') return make();
        copies += 1;
        return answer(args, make);
      });
      assert.ok(reply.outcome === 'promoted' && copies > 0, JSON.stringify(reply));
      assert.ok(isKept());
      assert.equal((await confirmedUndo(scene, reply.history)).outcome, 'undone');
      assert.deepEqual([...scene.listing().keys()], [...before.keys()]);
      assert.ok(fs.readFileSync(scene.at('changed')).equals(OLD));
      fs.rmSync(path.join(scene.own, 'history'), { recursive: true });
    }
  });

  it('where the replaced file has holes, new content without any is copied piece by piece and gets holes', async () => {
    const zeros = Buffer.alloc(8_388_608);
    scene.put('changed', 'begin');
    fs.truncateSync(scene.at('changed'), zeros.length);
    scene.draftOf({ changed: { file: zeros } });
    assert.equal((await applyHere(scene, sharingDisk())).outcome, 'promoted');
    const { size, blocks } = fs.statSync(scene.at('changed'));
    assert.ok(size === zeros.length && blocks * 512 < size / 2, `${blocks} blocks`);
  });
});
