import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../../daemon/demo/children.ts';
import { isAtRest, judge } from './judge.ts';
import { judgePromotion, MOMENTS } from './promotions.ts';
import { COUNTER, STEPS } from './steps.ts';
import type { UnderWay } from './steps.ts';
import { PROCESSES, World } from './world.ts';

/** How long a round waits for an ending that only the command's own lifetime may bring, in ms. */
const PATIENCE_MS = 4000;

describe('N-117 S-212 R61 R94 a kill of each process at each step of a receipt', function () {
  this.timeout(120_000);
  let world: World | undefined;
  /** Commands that end by their lifetime alone; later kills may not change what becomes of them. */
  const slow: UnderWay[] = [];

  before(async () => {
    world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, COUNTER), '') });
  });
  afterEach(() => world?.thawAll());
  after(() => world?.end());

  for (const step of STEPS) {
    for (const name of PROCESSES) {
      it(`${name} killed at: ${step.name}`, async () => {
        assert.ok(world);
        const real = world;
        const calls = await step.hold(real);
        await real.kill(name);
        await real.recover();
        const rest = until('rest', PATIENCE_MS, async () => {
          for (const call of calls) if (!(await isAtRest(real, call))) return false;
          return true;
        });
        const atRest = await rest.catch(() => false);
        if (atRest) await judge(real, calls);
        else slow.push(...calls);
      });
    }
  }

  for (const moment of MOMENTS) {
    it(`promote killed when ${moment.name}`, async () => {
      assert.ok(world);
      const promoting = await moment.hold(world);
      if (world.find('promote') !== undefined) await world.kill('promote');
      await world.recover();
      await judgePromotion(world, promoting);
    });
  }

  it('and what nobody could answer for is unknown once its lifetime has passed, with its effect at most once', async () => {
    assert.ok(world);
    await judge(world, slow);
  });
});
