import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { contentName } from '../../../helpers/files/draft.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { skipBecause } from '../../skip.ts';

describe('what is no plain file', function () {
  this.timeout(180_000);
  let installation: RealInstallation;
  let scene: PromotionScene;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  beforeEach(() => {
    scene = new PromotionScene();
    scene.put('file', 'old');
    scene.draftOf({ file: { file: 'new' }, other: { file: 'other' } });
  });
  afterEach(() => scene.remove());

  it('N-151 a link, a second name, a special file and a mount are refused, in the root and in the draft', async function () {
    if (spawnSync('unshare', ['-m', 'true']).status !== 0) skipBecause(this, 'a mount needs CAP_SYS_ADMIN');
    const content = path.join(scene.draft, String(contentName(1)));
    const places = { root: String(scene.at('file')), draft: content };
    const bytes = { root: 'old', draft: 'new' };
    const elsewhere = path.join(scene.folder, 'elsewhere');
    const makers: Readonly<Record<string, (at: string, text: string) => void>> = {
      'a symbolic link': (at, text) => {
        fs.writeFileSync(elsewhere, text);
        fs.symlinkSync(elsewhere, at);
      },
      'a hard link': (at, text) => {
        fs.writeFileSync(elsewhere, text);
        scene.give(elsewhere);
        fs.linkSync(elsewhere, at);
      },
      'a FIFO': (at) => void spawnSync('mkfifo', [at]),
      'a mount': (at, text) => {
        fs.writeFileSync(elsewhere, text);
        fs.writeFileSync(at, text);
        scene.give(elsewhere, at);
        assert.equal(spawnSync('mount', ['--bind', elsewhere, at]).status, 0);
      },
    };
    for (const where of ['root', 'draft'] as const) {
      for (const [what, make] of Object.entries(makers)) {
        const at = places[where];
        const approval = scene.approve();
        fs.unlinkSync(at);
        make(at, bytes[where]);
        if (what !== 'a mount') scene.give(at);
        const before = scene.listing();
        try {
          const reply = await scene.apply(installation, { approval });
          assert.notEqual(reply.outcome, 'promoted', `${what} in the ${where}`);
          assert.deepEqual(scene.listing(), before, `${what} in the ${where}: nothing was changed`);
        } finally {
          if (what === 'a mount') spawnSync('umount', [at]);
        }
        fs.rmSync(at);
        fs.rmSync(elsewhere, { force: true });
        fs.writeFileSync(at, bytes[where], { mode: where === 'root' ? 0o644 : 0o600 });
        scene.give(at);
      }
    }
    assert.equal((await scene.apply(installation)).outcome, 'promoted', 'plain files in both places are taken');
  });
});
