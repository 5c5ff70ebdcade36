/*
 * A promotion of a real world, held at an exact moment: who is killed then must leave the person's tree the old one or the
 * approved one, and nothing of ours in it.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../../daemon/demo/children.ts';
import { readLedger } from './records.ts';
import { PASSWORD } from './world.ts';
import type { World } from './world.ts';

const STEP_MS = 20_000;
const OUTCOME_MS = 4000;
const FILES = 40;

/** One promotion under way. */
export interface Promoting {
  readonly promotion: string;
  readonly names: readonly string[];
}

/** A moment of a promotion at which somebody is killed. */
export interface Moment {
  readonly name: string;
  hold(world: World): Promise<Promoting>;
}

/** Moments of a promotion, in their order. */
export const MOMENTS: readonly Moment[] = [
  {
    name: 'promote is started',
    async hold(world) {
      const promoting = await approve(world);
      await until('promote to run', STEP_MS, () => world.find('promote') !== undefined);
      await world.freeze('promote');
      return promoting;
    },
  },
  {
    name: 'its stage stands in the tree',
    async hold(world) {
      const promoting = await approve(world);
      await staged(world, promoting);
      if (world.find('promote') !== undefined) await world.freeze('promote');
      return promoting;
    },
  },
  {
    name: 'it is committed and nobody heard',
    async hold(world) {
      const promoting = await approve(world);
      await staged(world, promoting);
      await world.freeze('daemon');
      await until('the tree to be the new one', STEP_MS, () => present(world, promoting) === FILES && !isStaged(world));
      return promoting;
    },
  },
];

/** Waits until the machine is back, then holds tree, ledger and outcome against the invariants. */
export async function judgePromotion(world: World, promoting: Promoting): Promise<{ promoted: boolean }> {
  await until('nothing of ours in the tree', STEP_MS, () => !isStaged(world));
  const outcome = await until('an outcome', OUTCOME_MS, async () => {
    const found = await world.person.get<{ outcome: string | null }>(`/api/page/promotions/${promoting.promotion}`);
    return found.outcome ?? undefined;
  }).catch(() => 'open');
  const count = present(world, promoting);
  assert.ok(count === 0 || count === FILES, `${count} of ${FILES} files of one promotion are there`);
  if (outcome === 'promoted') assert.equal(count, FILES, 'called promoted, and the tree is the old one');
  if (['rolled-back', 'refused', 'failed', 'expired', 'cancelled'].includes(outcome))
    assert.equal(count, 0, `called ${outcome}, and the tree is the new one`);
  assert.equal((await world.status()).ledger.state, 'whole');
  readLedger(world.places.stateDir);
  return { promoted: count === FILES };
}

/** Drafts, reviews and approves new files; resolves when the approval was taken. */
async function approve(world: World): Promise<Promoting> {
  const id = randomBytes(6).toString('hex');
  const names = Array.from({ length: FILES }, (_, index) => `${id}-${index}.txt`);
  const agent = await world.anotherAgent();
  for (const name of names) {
    const written = await agent.call('file_write', { path: name, content: `${name}\n`.repeat(200) });
    assert.ok(!written.failed, written.text);
  }
  const before = new Set((await reviews(world)).map(({ review }) => review));
  const reviewed = await agent.call('workspace_review', {});
  assert.ok(!reviewed.failed, reviewed.text);
  const fresh = (await reviews(world)).find(({ review }) => !before.has(review));
  assert.ok(fresh, 'the review is there');
  const { promotion } = await world.person.post<{ promotion: string }>(`/api/page/reviews/${fresh.review}/promotion`);
  await world.person.post(`/api/page/promotions/${promotion}/approve`, { password: PASSWORD });
  return { promotion, names };
}

async function reviews(world: World): Promise<{ review: string }[]> {
  return (await world.person.get<{ reviews: { review: string }[] }>('/api/page/reviews')).reviews;
}

/** Waits for the stage, looking at every turn of the loop because it may stand for milliseconds only; a whole promotion ends the wait too. */
async function staged(world: World, promoting: Promoting): Promise<void> {
  const deadline = performance.now() + STEP_MS;
  while (!isStaged(world) && present(world, promoting) < FILES) {
    if (performance.now() > deadline) throw new Error('the promotion made no stage in time');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function isStaged(world: World): boolean {
  return fs.readdirSync(world.root).some((name) => name.startsWith('.nessie-stage-'));
}

function present(world: World, { names }: Promoting): number {
  return names.filter((name) => fs.existsSync(path.join(world.root, name))).length;
}
