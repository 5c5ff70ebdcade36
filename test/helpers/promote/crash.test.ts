import assert from 'node:assert/strict';

import { attach, hasStrace } from '../../fakes/killer.ts';
import type { Call } from '../../fakes/killer.ts';
import { asking, timeless } from '../../fakes/promotion-scene.ts';
import type { Listing, PromotionScene, Running } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';
import { skipBecause } from '../../skip.ts';

/** Kills of the apply and of the recovery that are tried here; the whole matrix is a campaign. */
const APPLY_KILLS = 14;
const RECOVERY_KILLS = 6;

/** A small generator of numbers below one, so that a seed gives the same sample everywhere (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One of each kind of call first, then others, in the order of the calls. */
function sample(calls: readonly Call[], count: number, next: () => number): Call[] {
  const shuffled = calls.map((call) => ({ call, key: next() })).toSorted((one, two) => one.key - two.key);
  const kinds = new Map(shuffled.map(({ call }) => [call.name, call]));
  const chosen = new Set([...kinds.values(), ...shuffled.map(({ call }) => call)].slice(0, count));
  return calls.filter((call) => chosen.has(call));
}

async function killedAt(scene: PromotionScene, running: Running, call: Call): Promise<void> {
  const tracer = await attach(running.pid, [`${call.name}:signal=KILL:when=${call.nth}`]);
  const approval = scene.approve();
  await running.client.request('promote.apply', { approval }, asking).catch(() => undefined);
  running.client.close();
  await running.exited;
  await tracer.detach();
}

describe('promote is killed', function () {
  this.timeout(180_000);
  const seed = Number(process.env['NESSIE_TEST_SEED'] ?? Date.now() % 1_000_000);
  let installation: RealInstallation;
  let calls: readonly Call[];
  let promoted: ReadonlyMap<string, unknown>;

  before(async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    installation = await installRows('promote');
    const scene = twelveEntries();
    const running = await settled(scene);
    const tracer = await attach(running.pid);
    const reply = await running.client.request('promote.apply', { approval: scene.approve() }, asking);
    assert.equal(reply.outcome, 'promoted');
    running.client.close();
    await running.exited;
    await tracer.detach();
    calls = tracer.calls();
    promoted = timeless(scene.listing());
    scene.remove();
  });
  after(() => installation?.remove());

  async function settled(scene: PromotionScene): Promise<Running> {
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    return running;
  }

  /** The tree is the old one with every time, or the new one; nothing of ours is left. */
  function assertWhole(now: Listing, before: Listing, message: string): void {
    try {
      assert.deepEqual(timeless(now), promoted);
    } catch {
      // not the new one, so it must be the old one
      assert.deepEqual(now, before, message);
    }
  }

  it('killed at calls of an apply of twelve entries, the tree is the old or the new one after recovery', async () => {
    const chosen = sample(calls, APPLY_KILLS, random(seed));
    assert.ok(calls.length > 100, `${calls.length} calls`);
    for (const call of chosen) {
      const scene = twelveEntries();
      const before = scene.listing();
      await killedAt(scene, await settled(scene), call);
      const recovered = await scene.recover(installation);
      const message = `${call.name} ${call.nth}, seed ${seed}`;
      assert.notEqual(recovered.outcome, 'needs-attention', message);
      assertWhole(scene.listing(), before, message);
      assert.equal((await scene.recover(installation)).outcome, 'nothing-to-do');
      scene.remove();
    }
  });

  it('killed again in the recovery of what the first kill left, the tree is the old or the new one after the next', async () => {
    const next = random(seed + 1);
    const renames = calls.filter(({ name }) => name === 'renameat2' || name === 'unlinkat');
    for (let round = 0; round < RECOVERY_KILLS; round += 1) {
      const scene = twelveEntries();
      const before = scene.listing();
      const first = renames[Math.floor(next() * renames.length)];
      assert.ok(first);
      await killedAt(scene, await settled(scene), first);
      const name = ['renameat2', 'unlinkat', 'fsync', 'utimensat'][Math.floor(next() * 4)];
      const nth = 1 + Math.floor(next() * (name === 'utimensat' ? 3 : 9));
      const second = scene.start(installation);
      const tracer = await attach(second.pid, [`${name}:signal=KILL:when=${nth}`]);
      await second.client.request('promote.recover', { promotions: [] }, asking).catch(() => undefined);
      second.client.close();
      await second.exited;
      await tracer.detach();
      const message = `${first.name} ${first.nth}, then ${name} ${nth}, seed ${seed}`;
      const recovered = await scene.recover(installation);
      assert.notEqual(recovered.outcome, 'needs-attention', message);
      assertWhole(scene.listing(), before, message);
      assert.equal((await scene.recover(installation)).outcome, 'nothing-to-do');
      scene.remove();
    }
  });
});
