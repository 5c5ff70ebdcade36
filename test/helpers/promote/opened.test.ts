import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import type { Argument } from '../../../helpers/runtime/libc.ts';
import { applyAt, codeOf, stageOf } from '../../fakes/moments.ts';
import type { Listing, PromotionScene } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';

/** Names in the stage folder of the new content of `changed` and of `keep/three`, by the order of the steps. */
const STAGED = '10';
const STAGED_NEW = '8';

describe('somebody opens a file for writing', () => {
  let scene: PromotionScene;
  let before: Listing;

  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
    before = scene.listing();
  });
  afterEach(() => scene.remove());

  /** Opens what a rename has just brought into the stage folder, and would wait for its lease. */
  const open = (slot: string) => (): void => {
    const flags = fs.constants.O_WRONLY | fs.constants.O_NONBLOCK;
    assert.throws(() => fs.openSync(path.join(stageOf(scene), slot), flags), { code: 'EAGAIN' });
  };

  it('before it is replaced: it is in use', async () => {
    const opened: number[] = [];
    const act = (): void => void opened.push(fs.openSync(scene.at('changed'), 'a'));
    const reply = (await applyAt(scene, [{ name: 'three', nth: 1, act }])).reply;
    for (const descriptor of opened) fs.closeSync(descriptor);
    assert.equal(codeOf(reply), 'PROMOTION_IN_USE');
    assert.deepEqual(scene.listing(), before);
  });

  it('in the moment in which it is replaced: it is in use, and is at its path again', async () => {
    const reply = (await applyAt(scene, [{ name: 'changed', nth: 1, side: 'after', act: open(STAGED) }])).reply;
    assert.equal(codeOf(reply), 'PROMOTION_IN_USE');
    assert.deepEqual(scene.listing(), before);
  });

  for (const [name, file, slot, content] of [
    ['changed', 'changed', STAGED, 'new'],
    ['three', 'keep/three', STAGED_NEW, '3'],
  ] as const) {
    it(`in the moment in which \`${file}\` is taken back: it stays, and is told`, async () => {
      const reply = (await applyAt(scene, [{ name, nth: 2, side: 'after', act: open(slot) }], { failing: true })).reply;
      assert.deepEqual('kept' in reply && reply.kept, [file]);
      assert.equal(fs.readFileSync(scene.at(file), 'utf8'), content);
    });
  }

  it('an old file that somebody opens for writing while it is looked at for the last time waits, and loses nothing', async () => {
    let isLeased = false;
    let isAsked = false;
    const watch = (name: string, args: readonly Argument[]): void => {
      if (isAsked || !fs.existsSync(path.join(scene.own, 'journal.committed'))) return;
      const file = name === 'fcntl' || name === 'pread64' ? fs.readlinkSync(`/proc/self/fd/${Number(args[0])}`) : '';
      if (!/\.nessie-stage-\w+\/10$/.test(file)) return;
      if (name === 'fcntl') isLeased = true;
      if (name !== 'pread64' || !isLeased) return;
      isAsked = true;
      const flags = fs.constants.O_WRONLY | fs.constants.O_NONBLOCK;
      assert.throws(() => fs.openSync(file, flags), { code: 'EAGAIN' });
    };
    const { reply } = await applyAt(scene, [], { watch });
    assert.ok(isAsked && codeOf(reply) === 'promoted');
    assert.equal(fs.readFileSync(path.join(stageOf(scene), STAGED), 'utf8'), 'old');
    assert.equal(fs.readFileSync(scene.at('changed'), 'utf8'), 'new');
  });
});
