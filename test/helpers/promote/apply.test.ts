import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { PromotionScene, timeless } from '../../fakes/promotion-scene.ts';

describe('an approved draft is applied', function () {
  this.timeout(60_000);
  let installation: RealInstallation;
  let scene: PromotionScene;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  beforeEach(() => {
    scene = new PromotionScene();
  });
  afterEach(() => scene.remove());

  it('creates, changes and deletes files and folders, and leaves nothing of its own', async () => {
    scene.put('changed', 'old', 0o640);
    scene.put('gone', 'bye');
    scene.folderAt('old');
    scene.put('old/inside', 'x');
    scene.draftOf({
      changed: { file: 'new', mode: 0o640 },
      gone: 'removed',
      old: 'removed',
      'old/inside': 'removed',
      made: { folder: 0o755 },
      'made/deep': { folder: 0o700 },
      'made/deep/file': { file: 'hello', mode: 0o755 },
      empty: { file: '' },
    });
    const reply = await scene.apply(installation);
    assert.equal(reply.outcome, 'promoted', JSON.stringify(reply));
    assert.deepEqual(
      [...timeless(scene.listing())].map(([name, { kind, mode }]) => `${name} ${kind} ${mode}`),
      [
        '. folder 755',
        'changed file 640',
        'empty file 644',
        'made folder 755',
        'made/deep folder 700',
        'made/deep/file file 755',
      ],
    );
    assert.equal(fs.readFileSync(scene.at('changed'), 'utf8'), 'new');
    assert.equal(fs.readFileSync(scene.at('made/deep/file'), 'utf8'), 'hello');
    const history = path.join(scene.own, 'history', reply.outcome === 'promoted' ? reply.history : '');
    assert.ok(fs.readdirSync(history).includes('journal'));
  });
});
