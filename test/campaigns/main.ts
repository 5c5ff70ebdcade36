/*
 * npm run campaign -- kills|cuts|racer|revocation|fuzz --minutes M --seed S [--rounds N] [--resume]
 *
 * Runs rounds until N are done or M minutes have passed, prints failures with the seed that tells them again, and writes the
 * figures into docs/campaigns.md. Ends with 1 when a round failed.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { run } from './campaign.ts';
import type { Campaign } from './campaign.ts';
import { cuts } from './cuts.ts';
import { writeFigures } from './figures.ts';
import { fuzz } from './fuzz.ts';
import { kills } from './kills.ts';
import { racer } from './racer.ts';
import { revocation } from './revocation.ts';

const TOP = path.resolve(import.meta.dirname, '..', '..');
const STATE = path.join(TOP, 'node_modules', '.cache', 'nessie-campaigns');
const campaigns: readonly Campaign[] = [kills, cuts, racer, revocation, fuzz];

function usage(why: string): never {
  const names = campaigns.map(({ name }) => name).join('|');
  console.error(`${why}\nnpm run campaign -- ${names} --minutes M --seed S [--rounds N] [--resume]`);
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
  },
});
const campaign = campaigns.find(({ name }) => name === positionals[0]);
if (!campaign) usage(`expected the name of a campaign, got ${positionals[0] ?? 'nothing'}`);
const wish = {
  seed: values.seed ?? randomBytes(4).toString('hex'),
  minutes: positive(values.minutes, 60, 'minutes'),
  rounds: positive(values.rounds, campaign.rounds, 'rounds'),
  resume: values.resume,
};
console.log(`campaign ${campaign.name}, seed ${wish.seed}, up to ${wish.rounds} rounds or ${wish.minutes} minutes`);
const standing = await run(campaign, wish, STATE);
for (const [what, count] of Object.entries(standing.counts).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  console.log(`${String(count).padStart(6)}  ${what}`);
console.log(`${standing.done} rounds, ${standing.failures.length} failures, seed ${standing.seed}`);
writeFigures(TOP, campaign, standing);
// Programs of a world may still be closing their last descriptors.
process.exit(standing.failures.length > 0 ? 1 : 0);
