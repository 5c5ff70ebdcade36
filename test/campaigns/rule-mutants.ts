/*
 * npm run campaign -- rule-mutants [--seed S]
 *
 * Every rule that is left out (test/machines/simulate/mutants.ts) in worlds of five seeds: after how many deciding events it is noticed.
 * One that is noticed in no world has survived.
 */
import { faultKinds } from '../../machines/trace/simulate/faults.ts';
import { shippedRules } from '../../machines/trace/simulate/rules.ts';
import { simulate } from '../../machines/trace/simulate/simulate.ts';
import { dense } from '../../machines/trace/simulate/society.ts';
import { mutants } from '../machines/simulate/mutants.ts';
import type { Standing } from './campaign.ts';

const WORLDS = 5;
/** Deciding events after which a world has not noticed it. */
const LIMIT = 200_000;

interface Row {
  readonly name: string;
  /** Events before it was noticed, in each world that noticed it. */
  readonly noticed: readonly number[];
  readonly says: string;
}

/** Plays every one of them. */
export function runRuleMutants(seed: string): { readonly standing: Standing; readonly figures: string } {
  const began = performance.now();
  const rows = Object.entries(mutants).map(([name, rules]) => play(name, rules, seed));
  const survived = rows.filter(({ noticed }) => noticed.length === 0);
  const failures = survived.map(({ name }, index) => ({ round: index + 1, message: `survived: ${name}` }));
  const seconds = (performance.now() - began) / 1000;
  return { standing: { seed, done: rows.length, seconds, counts: {}, failures }, figures: figuresOf(rows) };
}

function play(name: string, rules: (typeof mutants)[string], seed: string): Row {
  const noticed: number[] = [];
  let says = '';
  for (let world = 1; world <= WORLDS; world += 1) {
    const { violations } = simulate({
      seed: `${seed}:${world}`,
      executors: 5,
      hours: 2000,
      events: LIMIT,
      faults: faultKinds,
      pace: dense,
      rules: { ...shippedRules, ...rules },
      digest: () => '',
    });
    const [first] = violations;
    if (!first) continue;
    noticed.push(first.after);
    says ||= `${first.invariant}: ${first.says.replaceAll(/-\d+/g, '')}`;
  }
  console.log(`${String(noticed.length)} of ${WORLDS}  ${name}`);
  return { name, noticed, says };
}

function figuresOf(rows: readonly Row[]): string {
  const all = rows.flatMap(({ noticed }) => noticed);
  return [
    `Median of all: ${median(all)} deciding events; a world gives up after ${LIMIT}.`,
    '',
    '| left out | noticed in | median events | as |',
    '|---|---|---|---|',
    ...rows.map(
      ({ name, noticed, says }) => `| ${name} | ${noticed.length} of ${WORLDS} | ${median(noticed)} | ${says} |`,
    ),
  ].join('\n');
}

function median(numbers: readonly number[]): string {
  const sorted = numbers.toSorted((one, other) => one - other);
  return String(sorted[sorted.length >> 1] ?? '-');
}
