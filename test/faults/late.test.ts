import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { cutResult, resultBytes } from './late.ts';
import type { CutVerdict } from './late.ts';
import { COUNTER } from './steps.ts';
import { World } from './world.ts';

/** Cuts of the suite; the campaign makes one at every byte. */
const CUTS = 16;

describe('a connection that is cut inside a result', function () {
  this.timeout(120_000);
  let world: World | undefined;

  before(async () => {
    world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, COUNTER), '') });
  });
  afterEach(() => world?.thawAll());
  after(() => world?.end());

  it('leaves a command acknowledged or unknown at each byte, and the old chain settles it once', async () => {
    assert.ok(world);
    const size = await resultBytes(world);
    const verdicts: CutVerdict[] = [];
    for (let cut = 0; cut < CUTS; cut += 1) {
      const bytes = Math.max(1, Math.round((cut * size) / (CUTS - 1)));
      verdicts.push(await cutResult(world, bytes));
    }
    const first = verdicts[0];
    assert.equal(first?.between, 'unknown', 'of a result of which one byte came nothing is known');
    assert.ok(verdicts.every(({ end }) => end === 'succeeded'));
  });
});
