/*
 * Programs that race promotions until 100,000 swaps and 10,000 replacements fell into them, with persons who edit between: what one
 * race must leave stands in test/fakes/promotion-races.ts and test/fakes/drawn-edits.ts. The seed draws which race comes, and all of
 * the edits at drawn calls; the moments at which programs meet are the machine's.
 */
import { drawEdits, editedScene, playEdits } from '../fakes/drawn-edits.ts';
import { editRace, moveRace, readRace, swapRace, waitRace } from '../fakes/promotion-races.ts';
import type { EditPlan, Swapped } from '../fakes/promotion-races.ts';
import { Racer } from '../fakes/racing.ts';
import { installRows, uidOf } from '../fakes/real-row.ts';
import type { RealInstallation } from '../fakes/real-row.ts';
import { applyWatched } from '../fakes/watched-apply.ts';
import type { Campaign, Draw } from './campaign.ts';

/** What makes the campaign whole: swaps of a folder and a link, replacements under a reader. */
const SWAPS = 100_000;
const REPLACEMENTS = 10_000;
/** Replacements of one race of a reader, and drawn promotions in this process of one round. */
const READ = 500;
const DRAWN = 100;

interface World {
  readonly installation: RealInstallation;
  readonly swapper: Racer;
  readonly person: Racer;
  readonly reader: Racer;
  /** Native calls of an apply that nobody disturbs. */
  readonly calls: number;
}

/** `npm run campaign -- promoters`. */
export const promoters: Campaign = {
  name: 'promoters',
  rounds: 2000,
  async begin() {
    const world = await worldOf();
    let round = 0;
    return {
      round: (draw) => {
        round += 1;
        return race(world, draw, round);
      },
      async end() {
        for (const racer of [world.swapper, world.person, world.reader]) await racer.end();
        world.installation.remove();
      },
    };
  },
  isWhole: (counts) => {
    const sums = sumsOf(counts);
    return (sums.get('swaps') ?? 0) >= SWAPS && (sums.get('replacements') ?? 0) >= REPLACEMENTS;
  },
  figures: (counts) => {
    const sums = [...sumsOf(counts)].toSorted(([one], [other]) => one.localeCompare(other));
    const ends = [...endsOf(counts)].toSorted(([one], [other]) => one.localeCompare(other));
    const table = (what: string, rows: readonly (readonly [string, number])[]): string[] => [
      `| ${what} | how often |`,
      '|---|---|',
      ...rows.map(([name, count]) => `| ${name} | ${count} |`),
      '',
    ];
    return [...table('during promotions', sums), ...table('promotion', ends)].join('\n');
  },
};

async function worldOf(): Promise<World> {
  const scene = editedScene();
  const { calls } = await applyWatched(scene);
  scene.remove();
  const installation = await installRows('promote');
  const uid = uidOf(20);
  const [swapper, person, reader] = await Promise.all([
    Racer.start('swapper', uid),
    Racer.start('person', uid),
    Racer.start('reader', uid),
  ]);
  return { installation, swapper, person, reader, calls };
}

/** One race; what it was and came to, and after it, in brackets, how much of what fell into it. */
async function race(world: World, draw: Draw, round: number): Promise<string> {
  const { installation, swapper, person, reader, calls } = world;
  switch (draw.below(10)) {
    case 0:
    case 1:
    case 2:
      return swapped(
        'swapped by exchange',
        'swaps',
        await swapRace(installation, swapper, 'exchange', draw.below(100)),
      );
    case 3:
      return swapped('swapped by renames', 'swaps', await swapRace(installation, swapper, 'renames', draw.below(1000)));
    case 4:
      return swapped('moved out', 'moves out', await moveRace(installation, swapper, draw.below(2000)));
    case 5:
    case 6:
      return edited(world, draw, round);
    case 7: {
      const { outcome, done } = await waitRace(installation, person, round);
      return `an open waits: ${outcome} [${done} edits that waited]`;
    }
    case 8: {
      for (let drawn = 0; drawn < DRAWN; drawn += 1) await playEdits(drawEdits((limit) => draw.below(limit), calls));
      return `edits at drawn calls [${DRAWN} promotions with edits at drawn calls]`;
    }
    default: {
      const { outcome, replaced, reads } = await readRace(installation, reader, READ);
      return `read: ${outcome} [${replaced} replacements] [${hundreds(reads)} reads]`;
    }
  }
}

async function edited({ installation, person }: World, draw: Draw, round: number): Promise<string> {
  const from = draw.from(['staging', 'placing'] as const);
  const plan: EditPlan = {
    way: draw.from(['rename', 'open'] as const),
    from,
    restUs: draw.below(from === 'staging' ? 40_000 : 2000),
    size: draw.from([300, 1000, 100_000]),
    edits: 1 + draw.below(6),
  };
  const { outcome, done, kept } = await editRace(installation, person, round, plan);
  return `edited by ${plan.way}: ${outcome} [${done} edits] [${kept} edits kept as a copy]`;
}

function swapped(what: string, unit: string, { outcome, swaps }: Swapped): string {
  return `${what}: ${outcome} [${hundreds(swaps)} ${unit}]`;
}

/** Rounded down, so that few rounds have a line of their own. */
function hundreds(count: number): number {
  return Math.floor(count / 100) * 100;
}

/** What fell into promotions, by unit. */
function sumsOf(counts: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const [outcome, times] of counts)
    for (const [, count = '0', unit = ''] of outcome.matchAll(/\[(\d+) ([^\]]+)\]/g))
      sums.set(unit, (sums.get(unit) ?? 0) + Number(count) * times);
  return sums;
}

/** How promotions ended, without figures. */
function endsOf(counts: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const ends = new Map<string, number>();
  for (const [outcome, times] of counts) {
    const end = outcome.replace(/ \[.*$/, '');
    ends.set(end, (ends.get(end) ?? 0) + times);
  }
  return ends;
}
