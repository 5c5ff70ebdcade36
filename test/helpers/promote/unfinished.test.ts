import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { replaceOwn } from '../../../helpers/promote/own-folder.ts';
import { recover } from '../../../helpers/promote/recover.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';

const ID = `prm_${'7'.repeat(32)}`;
const log = (): void => undefined;

describe('a write in the own folder of promote that was cut', () => {
  let scene: PromotionScene;
  let descriptors: { readonly own: number; readonly root: number };

  beforeEach(() => {
    scene = new PromotionScene({ asCaller: true });
    descriptors = { own: fs.openSync(scene.own, 'r'), root: fs.openSync(scene.root, 'r') };
  });
  afterEach(() => {
    for (const descriptor of Object.values(descriptors)) fs.closeSync(descriptor);
    scene.remove();
  });

  const put = (...names: string[]): void => {
    const file = path.join(scene.own, ...names);
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    fs.writeFileSync(file, 'half', { mode: 0o600 });
  };
  const recovered = () => recover(descriptors, { bootId: 'this boot', now: Date.now(), log });

  it('of the mark is gone after the next recovery', () => {
    put('mark.next');
    assert.equal(recovered().outcome, 'nothing-to-do');
    assert.deepEqual(fs.readdirSync(scene.own), []);
  });

  it('of the note beside a journal that has moved on keeps no later recovery from ending', () => {
    for (const place of ['waiting', 'attention']) {
      put(place, ID, 'kept.next');
      assert.deepEqual(recovered(), { outcome: 'nothing-to-do', conflicts: [] });
      assert.deepEqual(fs.readdirSync(path.join(scene.own, place)), []);
    }
  });

  it('is replaced by the next one', () => {
    put('mark.next');
    replaceOwn(descriptors.own, 'mark', Buffer.from('whole'));
    assert.deepEqual(fs.readdirSync(scene.own), ['mark']);
    assert.equal(fs.readFileSync(path.join(scene.own, 'mark'), 'utf8'), 'whole');
  });
});
