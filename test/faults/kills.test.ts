import fs from 'node:fs';
import path from 'node:path';
import { judge } from './judge.ts';
import { COUNTER, STEPS } from './steps.ts';
import { PROCESSES, World } from './world.ts';

describe('a kill of each process at each step of a receipt', function () {
  this.timeout(120_000);
  let world: World;

  before(async () => {
    world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, COUNTER), '') });
  });
  afterEach(() => world.thawAll());
  after(() => world.end());

  for (const step of STEPS) {
    for (const name of PROCESSES) {
      it(`${name} killed at: ${step.name}`, async () => {
        const calls = await step.hold(world);
        await world.kill(name);
        await world.recover();
        await judge(world, calls);
      });
    }
  }
});
