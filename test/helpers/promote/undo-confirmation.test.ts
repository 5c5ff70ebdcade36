import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { promotionIdSchema } from '../../../helpers/protocol/ids.ts';
import { confirmedUndo, confirmUndo, promoted, undoHere } from '../../fakes/promote-here.ts';
import { asking } from '../../fakes/promotion-scene.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';

const UNCONFIRMED = { outcome: 'refused', code: 'PROMOTION_CONFIRMATION_REQUIRED' };
const DONE = { outcome: 'undone', kept: [] };

describe('the undo of a promotion is the owner’s alone', function () {
  this.timeout(180_000);
  let scene: PromotionScene;

  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
  });
  afterEach(() => scene.remove());

  it('a daemon that asks for it without what the owner confirmed is refused, and nothing is changed', async () => {
    const installation = await installRows('promote');
    const own = twelveEntries();
    try {
      const reply = await own.apply(installation);
      assert.ok(reply.outcome === 'promoted');
      const left = own.listing();
      const promotion = promotionIdSchema.parse(reply.history);
      const ask = async (confirmed: boolean): Promise<unknown> => {
        const running = own.start(installation);
        await running.client.request('promote.recover', { promotions: [] }, asking);
        const plan = await running.client.request('promote.undo-plan', { promotion, from: 0 }, asking);
        assert.ok(plan.outcome === 'possible', JSON.stringify(plan));
        if (confirmed) confirm(own, { undo: promotion, ...plan });
        const answer = await running.client.request('promote.undo', { promotion }, asking);
        running.client.close();
        await running.exited;
        return answer;
      };
      assert.deepEqual(await ask(false), UNCONFIRMED);
      assert.deepEqual(own.listing(), left);
      assert.deepEqual(await ask(true), DONE);
    } finally {
      own.remove();
      installation.remove();
    }
  });

  const HOUR_MS = 3_600_000;
  const altered: readonly (readonly [string, Record<string, unknown>])[] = [
    ['older than an hour', { at: Date.now() - HOUR_MS - 60_000 }],
    ['of a time to come', { at: Date.now() + 2 * HOUR_MS }],
    ['of another promotion', { undo: `prm_${'9'.repeat(32)}` }],
    ['of another journal', { journalDigest: '9'.repeat(64) }],
    ['of another root', { rootIdentity: '9'.repeat(64) }],
    ['with a field more', { run: `run_${'9'.repeat(32)}` }],
  ];
  for (const [sentence, changes] of altered) {
    it(`a confirmation ${sentence} counts for nothing`, async () => {
      const id = await promoted(scene);
      const left = scene.listing();
      await confirmUndo(scene, id, changes);
      assert.deepEqual(await undoHere(scene, id), UNCONFIRMED);
      assert.deepEqual(scene.listing(), left);
    });
  }

  it('a confirmation that others could have written counts for nothing', async () => {
    const id = await promoted(scene);
    fs.chmodSync(await confirmUndo(scene, id), 0o666);
    assert.deepEqual(await undoHere(scene, id), UNCONFIRMED);
  });

  it('a confirmation serves once: after an undo that found a change, a copy of it put back is used up', async () => {
    const id = await promoted(scene);
    const file = await confirmUndo(scene, id);
    const copy = fs.readFileSync(file);
    fs.chmodSync(scene.at('mode'), 0o700);
    assert.equal((await undoHere(scene, id)).outcome, 'refused');
    fs.chmodSync(scene.at('mode'), 0o755);
    fs.writeFileSync(file, copy);
    assert.deepEqual(await undoHere(scene, id), UNCONFIRMED);
    assert.deepEqual(await confirmedUndo(scene, id), DONE);
  });

  it('the approval of a promotion’s changes confirms no undo', async () => {
    const id = await promoted(scene);
    const file = await confirmUndo(scene, id);
    const { journalDigest, rootIdentity } = JSON.parse(fs.readFileSync(file, 'utf8')) as Record<string, string>;
    scene.confirm({ manifestDigest: journalDigest, rootIdentity });
    const written = path.join(scene.owner, 'confirmations', `${scene.manifest().digest}.json`);
    fs.renameSync(written, file);
    assert.deepEqual(await undoHere(scene, id), UNCONFIRMED);
  });
});

function confirm(scene: PromotionScene, { undo, journalDigest, rootIdentity }: Record<string, unknown>): void {
  const folder = path.join(scene.owner, 'confirmations');
  fs.mkdirSync(folder, { mode: 0o700 });
  const file = path.join(folder, `${String(journalDigest)}.json`);
  fs.writeFileSync(file, JSON.stringify({ version: 1, undo, journalDigest, rootIdentity, at: Date.now() }), {
    mode: 0o600,
  });
  scene.give(folder, file);
}
