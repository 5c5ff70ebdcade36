/*
 * Any process killed at any step, again and again in one world: at the steps of test/faults, and at moments that nobody chose.
 */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { judge } from '../faults/judge.ts';
import { judgePromotion, MOMENTS } from '../faults/promotions.ts';
import { append, COUNTER, STEPS } from '../faults/steps.ts';
import type { UnderWay } from '../faults/steps.ts';
import { PROCESSES, World } from '../faults/world.ts';
import type { Campaign, Draw } from './campaign.ts';

/** Longest wait before a kill at no chosen step, in ms: about how long one command takes on a loaded machine. */
const UNCHOSEN_MS = 120;

/** Approvals of one world: a control plane takes 20 passwords of one person in ten minutes and no more. */
const APPROVALS = 15;

/** `npm run campaign -- kills`. */
export const kills: Campaign = {
  name: 'kills',
  rounds: 200,
  async begin() {
    let world = await newWorld();
    let approvals = 0;
    return {
      async round(draw) {
        const kind = draw.below(10);
        if (kind >= 2) return kind < 7 ? atStep(world, draw) : unchosen(world, draw);
        approvals += 1;
        if (approvals > APPROVALS) {
          approvals = 1;
          await world.end();
          world = await newWorld();
        }
        return duringPromotion(world, draw);
      },
      end: () => world.end(),
    };
  },
};

function newWorld(): Promise<World> {
  return World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, COUNTER), '') });
}

async function atStep(world: World, draw: Draw): Promise<string> {
  const step = draw.from(STEPS);
  const name = draw.from(PROCESSES);
  const calls = await step.hold(world);
  await world.kill(name);
  await world.recover();
  await judge(world, calls);
  return `${name} at: ${step.name}`;
}

async function unchosen(world: World, draw: Draw): Promise<string> {
  const name = draw.from(PROCESSES);
  const calls: UnderWay[] = [];
  for (let call = draw.below(4); call >= 0; call -= 1) calls.push(await append(world, world.agent));
  await wait(draw.below(UNCHOSEN_MS));
  await world.kill(name);
  await world.recover();
  await judge(world, calls);
  return `${name} at no chosen step`;
}

async function duringPromotion(world: World, draw: Draw): Promise<string> {
  const moment = draw.from(MOMENTS);
  const name = draw.from([...PROCESSES, 'promote', 'promote'] as const);
  const promoting = await moment.hold(world);
  if (world.find(name) !== undefined) await world.kill(name);
  await world.recover();
  await judgePromotion(world, promoting);
  return `${name} when ${moment.name}`;
}
