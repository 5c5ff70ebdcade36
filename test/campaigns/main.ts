/*
 * npm run campaign -- kills|cuts|racer|revocation|fuzz|disk|large|promoters|errors --minutes M --seed S [--rounds N] [--resume]
 *
 * Runs rounds until N are done or M minutes have passed, prints failures with the seed that tells them again, and writes the
 * figures into docs/campaigns.md. Ends with 1 when a round failed.
 *
 * npm run campaign -- crash [--minutes M] [--resume] [--jobs N] [--state FILE]
 *
 * npm run campaign -- mutants [--only NUMBER|TEXT] [--minutes M] [--resume]
 *
 * npm run campaign -- simulate [--minutes M] [--seed S] [--resume]
 *
 * npm run campaign -- rule-mutants [--seed S]
 *
 * The crash matrix and the mutants are given lists of cases without a seed; they run until all are played.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { run } from './campaign.ts';
import type { Campaign, Standing } from './campaign.ts';
import { runCrash } from './crash.ts';
import { cuts } from './cuts.ts';
import { disk } from './disk.ts';
import { errors } from './errors.ts';
import { writeFigures } from './figures.ts';
import { fuzz } from './fuzz.ts';
import { kills } from './kills.ts';
import { large } from './large.ts';
import { promoters } from './promoters.ts';
import { runMutants } from './mutants.ts';
import { racer } from './racer.ts';
import { revocation } from './revocation.ts';
import { runRuleMutants } from './rule-mutants.ts';
import { runSimulate } from './simulate.ts';

const TOP = path.resolve(import.meta.dirname, '..', '..');
const STATE = path.join(TOP, 'node_modules', '.cache', 'nessie-campaigns');
const campaigns: readonly Campaign[] = [kills, cuts, racer, revocation, fuzz, disk, large, promoters, errors];

function usage(why: string): never {
  const names = campaigns.map(({ name }) => name).join('|');
  console.error(`${why}\nnpm run campaign -- ${names} --minutes M --seed S [--rounds N] [--resume]`);
  console.error('npm run campaign -- crash [--minutes M] [--resume] [--jobs N] [--state FILE]');
  console.error('npm run campaign -- mutants [--only NUMBER|TEXT] [--minutes M] [--resume]');
  console.error('npm run campaign -- simulate [--minutes M] [--seed S] [--resume]');
  console.error('npm run campaign -- rule-mutants [--seed S]');
  process.exit(64);
}

function positive(text: string | undefined, otherwise: number, what: string): number {
  const number = text === undefined ? otherwise : Number(text);
  return number > 0 ? number : usage(`--${what}: expected a number above 0, got ${text}`);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    rounds: { type: 'string' },
    resume: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    state: { type: 'string' },
    only: { type: 'string' },
  },
});

/** Prints what a campaign came to, keeps its figures and ends. */
function finish(campaign: Pick<Campaign, 'name' | 'figures'>, standing: Standing): never {
  for (const [what, count] of Object.entries(standing.counts).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`${String(count).padStart(6)}  ${what}`);
  const seeded = standing.seed === '' ? '' : `, seed ${standing.seed}`;
  console.log(`${standing.done} rounds, ${standing.failures.length} failures${seeded}`);
  writeFigures(TOP, campaign, standing);
  // Programs of a world may still be closing their last descriptors.
  process.exit(standing.failures.length > 0 ? 1 : 0);
}

if (positionals[0] === 'crash') {
  const { standing, figures } = await runCrash({
    minutes: positive(values.minutes, Number.POSITIVE_INFINITY, 'minutes'),
    jobs: Math.ceil(positive(values.jobs, 2, 'jobs')),
    resume: values.resume,
    file: path.resolve(values.state ?? path.join(STATE, 'crash.json')),
  });
  for (const { message } of standing.failures) console.log(`FAILED ${message}`);
  console.log(figures.split('\n', 1)[0]);
  finish({ name: 'crash', figures: () => figures }, standing);
}

if (positionals[0] === 'mutants') {
  const { standing, figures } = await runMutants({
    only: values.only,
    minutes: positive(values.minutes, Number.POSITIVE_INFINITY, 'minutes'),
    resume: values.resume || values.only !== undefined,
    file: path.join(STATE, 'mutants.json'),
  });
  for (const { round, message } of standing.failures) console.log(`SURVIVED ${round}  ${message}`);
  if (figures === undefined) process.exit(standing.failures.length > 0 ? 1 : 0);
  finish({ name: 'mutants', figures: () => figures }, standing);
}

if (positionals[0] === 'simulate') {
  const { standing, figures } = runSimulate({
    seed: values.seed ?? '1',
    minutes: positive(values.minutes, Number.POSITIVE_INFINITY, 'minutes'),
    resume: values.resume,
    file: path.join(STATE, 'simulate.json'),
    top: TOP,
  });
  finish({ name: 'simulate', figures: () => figures }, standing);
}

if (positionals[0] === 'rule-mutants') {
  const { standing, figures } = runRuleMutants(values.seed ?? '1');
  finish({ name: 'rule-mutants', figures: () => figures }, standing);
}

const campaign = campaigns.find(({ name }) => name === positionals[0]);
if (!campaign) usage(`expected the name of a campaign, got ${positionals[0] ?? 'nothing'}`);
const wish = {
  seed: values.seed ?? randomBytes(4).toString('hex'),
  minutes: positive(values.minutes, 60, 'minutes'),
  rounds: positive(values.rounds, campaign.rounds, 'rounds'),
  resume: values.resume,
};
console.log(`campaign ${campaign.name}, seed ${wish.seed}, up to ${wish.rounds} rounds or ${wish.minutes} minutes`);
finish(campaign, await run(campaign, wish, STATE));
