import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import type { PromoteReply } from '../../../helpers/promote/protocol.ts';
import { applyAt, codeOf as code, contentsOf, stageOf } from '../../fakes/moments.ts';
import type { Moment } from '../../fakes/moments.ts';
import type { Listing, PromotionScene } from '../../fakes/promotion-scene.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';

describe('others come between the last look and the rename', () => {
  let scene: PromotionScene;
  let before: Listing;
  /** Syncs with the path and removals with the name, in order. */
  let done: readonly string[];

  beforeEach(() => {
    done = [];
    scene = twelveEntries({ asCaller: true });
    before = scene.listing();
  });
  afterEach(() => scene.remove());

  const at = (name: string): string => path.join(scene.root, name);
  const read = (name: string): string => fs.readFileSync(at(name), 'utf8');

  /** Moves another file over a name, as an editor saves. */
  function save(name: string, content: string): void {
    fs.writeFileSync(path.join(scene.folder, 'saved'), content);
    fs.renameSync(path.join(scene.folder, 'saved'), at(name));
  }

  const stage = (): string => stageOf(scene);

  /** Applies; `failing` refuses the commit, so that all is taken back. */
  async function apply(moments: readonly Moment[], failing = false): Promise<PromoteReply<'promote.apply'>> {
    const applied = await applyAt(scene, moments, { failing });
    done = applied.done;
    return applied.reply;
  }

  /** The tree of before, but for these names. */
  function assertOldBut(...names: readonly string[]): void {
    const but = (listing: Listing): unknown =>
      new Map([...timeless(listing)].filter(([name]) => !names.includes(name) && !name.startsWith('.nessie-stage-')));
    assert.deepEqual(but(scene.listing()), but(before));
  }

  /** Name in the stage folder of the new content of `changed`, by the order of the steps. */
  const STAGED = '10';
  /** And of `three`. */
  const STAGED_NEW = '8';

  describe('of what was staged', () => {
    it('other content in the staged file is not placed', async () => {
      const act = (): void => fs.writeFileSync(path.join(stage(), STAGED), 'bad');
      assert.equal(code(await apply([{ name: 'three', nth: 1, act }])), 'PROMOTION_REVIEW_STALE');
      assertOldBut();
    });

    it('another file with the same content is not placed', async () => {
      const act = (): void => {
        fs.writeFileSync(path.join(scene.folder, 'twin'), 'new', { mode: 0o640 });
        fs.renameSync(path.join(scene.folder, 'twin'), path.join(stage(), STAGED));
      };
      assert.equal(code(await apply([{ name: 'three', nth: 1, act }])), 'PROMOTION_REVIEW_STALE');
      assertOldBut();
    });
  });

  describe('forward', () => {
    for (const [name, sentence] of [
      ['changed', 'a file that is saved anew before it is changed'],
      ['gone', 'a file that is saved anew before it is removed'],
    ] as const) {
      it(`${sentence} stays as it was saved`, async () => {
        const reply = await apply([{ name, nth: 1, act: () => save(name, 'saved') }]);
        assert.equal(code(reply), 'PROMOTION_CONFLICT');
        assert.deepEqual('kept' in reply && reply.kept, []);
        assert.equal(read(name), 'saved');
        assertOldBut(name);
      });
    }

    for (const name of ['changed', 'gone']) {
      it(`what is saved again while a first save of \`${name}\` is put back is left alone`, async () => {
        await apply([
          { name, nth: 1, act: () => save(name, 'first') },
          { name, nth: 2, act: () => save(name, 'second') },
        ]);
        const kept = contentsOf(scene.folder);
        assert.ok(kept.includes('first') && kept.includes('second'), 'one of two saved files is lost');
      });
    }

    for (const [sentence, act] of [
      ['a file that gets a second name', () => fs.linkSync(at('changed'), path.join(scene.folder, 'second'))],
      ['a file that gets another mode', () => fs.chmodSync(at('changed'), 0o600)],
      ['a file that gets other content in its place', () => fs.writeFileSync(at('changed'), 'bye')],
    ] as const) {
      it(`${sentence} after the first look is not replaced`, async () => {
        const inode = fs.statSync(at('changed')).ino;
        const reply = await apply([{ name: 'three', nth: 1, act }]);
        assert.equal(code(reply), 'PROMOTION_CONFLICT');
        assert.equal(fs.statSync(at('changed')).ino, inode);
        assertOldBut('changed');
      });
    }

    it('a folder that gets another mode after the first look is not removed', async () => {
      const reply = await apply([{ name: 'inside', nth: 1, act: () => fs.chmodSync(at('old'), 0o711) }]);
      assert.equal(code(reply), 'PROMOTION_CONFLICT');
      assertOldBut('old');
    });

    it('what is saved after a first save was met is left alone', async () => {
      await apply([
        { name: 'changed', nth: 1, act: () => save('changed', 'first') },
        { name: 'changed', nth: 1, side: 'after', act: () => save('changed', 'second') },
      ]);
      assert.equal(read('changed'), 'second');
      assert.ok(contentsOf(scene.folder).includes('first'));
    });

    it('a new file that is saved anew as soon as it is placed stays as it was saved', async () => {
      const act = (): void => save('keep/three', 'saved');
      await apply([{ name: 'three', nth: 1, side: 'after', act }]);
      assert.equal(read('keep/three'), 'saved');
      assertOldBut('keep/three');
    });

    it('what was put into the stage folder in the last moment is no success', async () => {
      const act = (): void => {
        fs.writeFileSync(path.join(scene.folder, 'twin'), 'bad');
        fs.renameSync(path.join(scene.folder, 'twin'), path.join(stage(), STAGED_NEW));
      };
      const reply = await apply([{ name: 'three', nth: 1, act }]);
      assert.equal(code(reply), 'PROMOTION_UNSAFE_PATH');
    });

    it('an empty folder that somebody makes where one is put back stays theirs', async () => {
      await apply([
        { name: 'old', nth: 1, act: () => fs.writeFileSync(at('old/more'), 'more') },
        { name: 'old', nth: 1, side: 'after', act: () => fs.mkdirSync(at('old'), 0o711) },
      ]);
      assert.equal(fs.statSync(at('old')).mode & 0o777, 0o711);
      assert.ok(contentsOf(scene.folder).includes('more'));
    });

    for (const name of ['one', 'two', 'three']) {
      it(`a folder that is moved out of the root before \`${name}\` is placed in it gets nothing and loses nothing`, async () => {
        const outside = path.join(scene.folder, 'outside');
        const reply = await apply([{ name, nth: 1, act: () => fs.renameSync(at('keep'), outside) }]);
        assert.notEqual(code(reply), 'promoted');
        // What was placed before the folder went is out of reach; this name is not.
        const found = fs.existsSync(path.join(outside, name)) ? fs.readFileSync(path.join(outside, name), 'utf8') : '';
        assert.equal(found, { one: '1', two: '2' }[name] ?? '');
      });
    }

    it('a folder that somebody took away for another before a file in it is changed gets nothing', async () => {
      const outside = path.join(scene.folder, 'outside');
      const act = (): void => {
        fs.renameSync(at('keep'), outside);
        fs.mkdirSync(at('keep'));
      };
      assert.notEqual(code(await apply([{ name: 'one', nth: 1, act }])), 'promoted');
      assert.equal(fs.readFileSync(path.join(outside, 'one'), 'utf8'), '1');
    });

    it('a folder that is moved out of the root before a folder in it is removed keeps it', async () => {
      scene.folderAt('keep/inner');
      scene.draftOf({ 'keep/inner': 'removed' });
      const outside = path.join(scene.folder, 'outside');
      const reply = await apply([{ name: 'inner', nth: 1, act: () => fs.renameSync(at('keep'), outside) }]);
      assert.notEqual(code(reply), 'promoted');
      assert.ok(fs.existsSync(path.join(outside, 'inner')));
    });

    it('a folder that gets a file before it is removed stays, with the file', async () => {
      const reply = await apply([{ name: 'old', nth: 1, act: () => fs.writeFileSync(at('old/more'), 'more') }]);
      assert.equal(code(reply), 'PROMOTION_CONFLICT');
      assert.equal(read('old/more'), 'more');
      assertOldBut('old/more');
    });

    it('another folder in the place of one that is to go stays', async () => {
      const inode = { theirs: 0 };
      const act = (): void => {
        fs.rmdirSync(at('old'));
        fs.mkdirSync(path.join(scene.folder, 'filler'));
        fs.mkdirSync(at('old'));
        inode.theirs = fs.statSync(at('old')).ino;
      };
      const reply = await apply([{ name: 'old', nth: 1, act }]);
      assert.equal(code(reply), 'PROMOTION_CONFLICT');
      assert.equal(fs.statSync(at('old')).ino, inode.theirs);
    });

    it('a new name that somebody takes first stays theirs', async () => {
      const reply = await apply([{ name: 'three', nth: 1, act: () => save('keep/three', 'theirs') }]);
      assert.equal(code(reply), 'PROMOTION_CONFLICT');
      assert.equal(read('keep/three'), 'theirs');
      assertOldBut('keep/three');
    });
  });

  describe('on the way back', () => {
    it('a changed file that is saved anew stays as it was saved, and its old content is kept', async () => {
      await apply([{ name: 'changed', nth: 2, act: () => save('changed', 'saved') }], true);
      assert.equal(read('changed'), 'saved');
      assertOldBut('changed');
      assert.ok(contentsOf(scene.own).includes('old'));
      // The copy and its name are on the disk before the file goes that it was made of.
      const copied = done.findIndex((call) => call.startsWith('fsync own/kept/') && call.endsWith(`/${STAGED}`));
      const named = done.findIndex((call, index) => index > copied && /^fsync own\/kept\/[^/]+$/.test(call));
      assert.ok(copied > 0 && named > copied && done.indexOf(`unlinkat ${STAGED}`) > named, done.join('; '));
    });

    it('a changed file that gets another mode stays, and its old content is kept', async () => {
      await apply([{ name: 'mode', nth: 1, side: 'after', act: () => fs.chmodSync(at('changed'), 0o600) }], true);
      assert.equal(read('changed'), 'new');
      assert.equal(fs.statSync(at('changed')).mode & 0o777, 0o600);
      assertOldBut('changed');
      assert.ok(contentsOf(scene.own).includes('old'));
    });

    it('a new file that is saved anew stays as it was saved', async () => {
      await apply([{ name: 'three', nth: 2, act: () => save('keep/three', 'saved') }], true);
      assert.equal(read('keep/three'), 'saved');
      assertOldBut('keep/three');
    });

    it('a name that was free again and that somebody takes stays theirs, and the old content is kept', async () => {
      await apply([{ name: 'gone', nth: 2, act: () => save('gone', 'theirs') }], true);
      assert.equal(read('gone'), 'theirs');
      assertOldBut('gone');
      assert.ok(contentsOf(scene.own).includes('bye'));
    });

    for (const [name, file] of [
      ['changed', 'changed'],
      ['three', 'keep/three'],
    ] as const) {
      it(`what is saved after a first save of \`${file}\` was met is left alone, and the first is kept`, async () => {
        await apply(
          [
            { name, nth: 2, act: () => save(file, 'first') },
            { name, nth: 2, side: 'after', act: () => save(file, 'second') },
          ],
          true,
        );
        assert.equal(read(file), 'second');
        assert.ok(contentsOf(scene.folder).includes('first'));
      });
    }

    for (const name of ['one', 'two', 'three']) {
      it(`a folder that is moved out of the root before \`${name}\` is taken back in it gets nothing`, async () => {
        const outside = path.join(scene.folder, 'outside');
        await apply([{ name, nth: 2, act: () => fs.renameSync(at('keep'), outside) }], true);
        const found = fs.existsSync(path.join(outside, name)) ? fs.readFileSync(path.join(outside, name), 'utf8') : '';
        assert.equal(found, { one: 'one', two: '' }[name] ?? '');
      });
    }

    it('the time of a folder in which somebody makes a file meanwhile is left as that file made it', async () => {
      const act = (): void => {
        const later = performance.now() + 60;
        while (performance.now() < later);
        for (const name of ['keep/theirs', 'theirs']) fs.writeFileSync(at(name), 'theirs');
      };
      await apply([{ name: 'inside', nth: 2, side: 'after', act }], true);
      for (const name of ['keep', '.']) assert.ok(fs.statSync(at(name)).mtimeMs > 1_000_000_000_000, name);
      assert.equal(fs.statSync(at('old')).mtimeMs, 1_000_000_000_000);
    });

    for (const [name, content] of [
      ['gone', 'bye'],
      ['changed', 'old'],
    ] as const) {
      it(`what somebody puts over the old \`${name}\` in the stage folder does not come to its path, and is kept`, async () => {
        const act = (): void => {
          const files = fs.readdirSync(stage()).map((slot) => path.join(stage(), slot));
          const old = files.find((file) => fs.statSync(file).isFile() && fs.readFileSync(file, 'utf8') === content);
          assert.ok(old !== undefined);
          fs.writeFileSync(path.join(scene.folder, 'twin'), 'theirs');
          fs.renameSync(path.join(scene.folder, 'twin'), old);
        };
        const reply = await apply([{ name: 'mode', nth: 2, act }], true);
        assert.deepEqual('kept' in reply && reply.kept, [name]);
        assert.ok(!fs.existsSync(at(name)) || read(name) === 'new');
        assert.ok(contentsOf(scene.own).includes('theirs'));
      });
    }

    it('a new file whose folder somebody took away for another is told', async () => {
      const act = (): void => {
        fs.renameSync(at('keep'), path.join(scene.folder, 'outside'));
        fs.mkdirSync(at('keep'));
      };
      const reply = await apply([{ name: 'mode', nth: 1, act }], true);
      const kept = 'kept' in reply ? reply.kept : [];
      assert.ok(kept.includes('keep/three'), String(kept));
    });

    it('another folder in the place of a new one that is taken back stays', async () => {
      const inode = { theirs: 0 };
      const act = (): void => {
        fs.renameSync(at('made'), path.join(scene.folder, 'outside'));
        fs.mkdirSync(at('made'));
        inode.theirs = fs.statSync(at('made')).ino;
      };
      await apply([{ name: 'made', nth: 2, act }], true);
      assert.equal(fs.statSync(at('made')).ino, inode.theirs);
    });

    it('an old file that somebody removed from the stage folder is told', async () => {
      const act = (): void => fs.unlinkSync(path.join(stage(), STAGED));
      const reply = await apply([{ name: 'mode', nth: 2, act }], true);
      assert.deepEqual('kept' in reply && reply.kept, ['changed']);
      assert.equal(read('changed'), 'new');
    });

    it('what was placed in a new folder that somebody took away for another is told', async () => {
      const act = (): void => {
        fs.renameSync(at('made'), path.join(scene.folder, 'outside'));
        fs.mkdirSync(at('made'));
      };
      const reply = await apply([{ name: 'mode', nth: 1, act }], true);
      const kept = 'kept' in reply ? reply.kept : [];
      assert.ok(kept.includes('made') && kept.some((name) => name.startsWith('made/')), String(kept));
    });

    it('another folder that somebody puts at the path of one keeps its time', async () => {
      const act = (): void => {
        fs.renameSync(at('keep'), path.join(scene.folder, 'outside'));
        fs.mkdirSync(at('keep'));
        fs.utimesSync(at('keep'), 500_000_000, 500_000_000);
      };
      await apply([{ name: 'inside', nth: 2, side: 'after', act }], true);
      assert.equal(fs.statSync(at('keep')).mtimeMs, 500_000_000_000);
    });

    it('a new folder that gets a file before it is taken back stays, with the file', async () => {
      await apply([{ name: 'made', nth: 2, act: () => fs.writeFileSync(at('made/more'), 'more') }], true);
      assert.equal(read('made/more'), 'more');
      assertOldBut('made', 'made/more');
    });
  });
});
