import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { bundle, ENTRIES } from '../../../helpers/build/bundle.ts';
import { missingConfinement } from '../../../helpers/runtime/confined.ts';
import { everyKind } from '../../fakes/every-kind.ts';
import { hasStrace } from '../../fakes/killer.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import { Bench } from '../../faults/crash/bench.ts';
import type { Work } from '../../faults/crash/bench.ts';
import { cleanRun } from '../../faults/crash/case.ts';
import { watchChanges } from '../../faults/crash/trace.ts';
import { skipBecause } from '../../skip.ts';

/** How a bundle that is not minified spells the seam before every native call being taken. */
const TAKEN = /\binterpose\d*\(/;

describe('the numbering of calls at which a promotion is killed', function () {
  this.timeout(180_000);
  let bench: Bench;

  before(async () => {
    bench = await Bench.begin();
  });
  after(() => bench?.end());

  it('two applies of the same twelve entries have the same numbered calls', async () => {
    const { calls } = await cleanRun(bench, 'top');
    assert.deepEqual((await cleanRun(bench, 'top')).calls, calls);
    assert.ok(calls.length > 100, `${calls.length} calls`);
  });

  /** Numbered calls of some work, and those that strace saw meanwhile. */
  async function watched(scene: PromotionScene, work: Work): Promise<{ calls: string[]; seen: string[] }> {
    let seen: string[] = [];
    const calls = await bench.number(scene, work, async ({ pid }) => {
      await started(pid);
      const end = await watchChanges(pid);
      return async () => {
        seen = await end();
      };
    });
    return { calls, seen };
  }

  it('no call of an apply or of a recovery that changes something or syncs escapes the numbering, in the order that strace sees', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    const { scene } = everyKind('top');
    const applied = await watched(scene, 'apply');
    scene.remove();
    assert.deepEqual(applied.seen, applied.calls);
    const { scene: cut } = everyKind('top');
    const commit = applied.calls.findIndex((call) => call.endsWith('own journal.committed'));
    await bench.kill(cut, 'apply', { number: commit + 1, side: 'before' });
    const recovered = await watched(cut, 'recover');
    cut.remove();
    assert.ok(recovered.calls.length > 20, `${recovered.calls.length} calls`);
    assert.deepEqual(recovered.seen, recovered.calls);
  });

  it('the process that dies is confined as promote is, by the same launch', async () => {
    const { scene } = everyKind('top');
    let status = '';
    await bench.number(scene, 'apply', async ({ pid }) => {
      await started(pid);
      status = fs.readFileSync(`/proc/${pid}/status`, 'latin1');
      return () => Promise.resolve();
    });
    assert.equal(missingConfinement(status), undefined);
    if (scene.uid !== undefined) assert.match(status, new RegExp(`^Uid:(?:\\t${scene.uid}){4}$`, 'm'));
    scene.remove();
  });

  it('no program that ships takes the seam before native calls, and the one that dies does', async () => {
    const parent = fs.mkdtempSync(path.join(os.tmpdir(), 'shipped-'));
    const folder = path.join(parent, 'dist');
    const { absent } = await bundle(path.resolve(import.meta.dirname, '../../..'), folder, ENTRIES);
    assert.deepEqual(absent, []);
    const taking = ENTRIES.filter(({ name }) => TAKEN.test(fs.readFileSync(path.join(folder, `${name}.mjs`), 'utf8')));
    fs.rmSync(parent, { recursive: true });
    assert.deepEqual(taking, []);
    assert.match(fs.readFileSync(path.join(bench.victim.folder, 'promote.mjs'), 'utf8'), TAKEN);
  });
});

/** Waits until launch has become the role. */
async function started(pid: number): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!/promote\.mjs/.test(fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1'))) {
    if (Date.now() > deadline) throw new Error('launch did not become the role');
    await new Promise((resolve) => void setTimeout(resolve, 5));
  }
}
