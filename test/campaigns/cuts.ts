/* A real connection cut at every byte of a result. */
import fs from 'node:fs';
import path from 'node:path';
import { cutResult, resultBytes } from '../faults/late.ts';
import { COUNTER } from '../faults/steps.ts';
import { World } from '../faults/world.ts';
import type { Campaign } from './campaign.ts';

/** `npm run campaign -- cuts`: one round a byte; a result with its receipts is about 1,500 bytes. */
export const cuts: Campaign = {
  name: 'cuts',
  rounds: 2000,
  async begin() {
    const world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, COUNTER), '') });
    const size = await resultBytes(world);
    let last = 0;
    return {
      async round(draw) {
        last += 1;
        // Every byte in order first, then any.
        const bytes = last <= size ? last : 1 + draw.below(size);
        const { between } = await cutResult(world, bytes);
        return `${between} after the cut, settled once by the old chain`;
      },
      end: () => world.end(),
    };
  },
};
