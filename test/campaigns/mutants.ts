/*
 * npm run campaign -- mutants [--only NUMBER|TEXT] [--minutes M] [--resume]
 *
 * Every mutant of the promotion protocol (test/faults/mutants/list.ts), one after the other, with the test that killed it. What was played
 * stands in a file by the mutant's name and the file that it changes; --resume goes on from there and plays survivors again at
 * the end.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { EQUIVALENT } from '../faults/mutants/equivalents.ts';
import { allMutants } from '../faults/mutants/list.ts';
import type { Mutant } from '../faults/mutants/mutant.ts';
import { Copy, testsFor } from '../faults/mutants/play.ts';
import type { Verdict } from '../faults/mutants/play.ts';
import { readSource } from '../faults/mutants/source.ts';
import type { Standing } from './campaign.ts';
import { countTable } from './figures.ts';

/** Which mutants, and where what became of them is kept. */
export interface MutantsWish {
  readonly only: string | undefined;
  readonly minutes: number;
  readonly resume: boolean;
  readonly file: string;
}

/** What the file holds: verdicts by the mutant's key. */
type Kept = Record<string, Verdict>;

function keyOf(mutant: Mutant): string {
  return createHash('sha256')
    .update(`${mutant.id}\0${mutant.replacement}\0${readSource(mutant.file)}`)
    .digest('hex');
}

function chosen(all: readonly Mutant[], only: string | undefined): readonly Mutant[] {
  if (only === undefined) return all;
  return all.filter(({ id }, index) => String(index + 1) === only || id.includes(only));
}

/** Plays mutants within the minutes; what it comes to is the standing of a campaign without a seed, and a text. */
export async function runMutants(
  wish: MutantsWish,
): Promise<{ readonly standing: Standing; readonly figures: string | undefined }> {
  // Written by this function alone.
  const kept = wish.resume && fs.existsSync(wish.file) ? (JSON.parse(fs.readFileSync(wish.file, 'utf8')) as Kept) : {};
  const all = allMutants();
  const mutants = chosen(all, wish.only);
  const deadline = performance.now() + wish.minutes * 60_000;
  const copy = new Copy();
  const play = async (mutant: Mutant, pace: Pace): Promise<void> => {
    const key = keyOf(mutant);
    const verdict = verdictOf(pace, await copy.play(mutant, testsFor(mutant)[pace]), kept[key]);
    kept[key] = verdict;
    const what = verdict.outcome === 'killed' ? `killed by ${verdict.by}` : verdict.outcome.toUpperCase();
    console.log(`${all.indexOf(mutant) + 1}  ${mutant.id}\n     ${what}, ${verdict.seconds} s`);
    fs.mkdirSync(path.dirname(wish.file), { recursive: true });
    fs.writeFileSync(wish.file, JSON.stringify(kept));
  };
  const isOld = (mutant: Mutant): boolean => kept[keyOf(mutant)]?.outcome === 'survived';
  const [old, fresh] = [mutants.filter(isOld), mutants.filter((mutant) => !isOld(mutant))];
  try {
    for (const group of [fresh, old]) {
      // What quick tests kill is known before the first slow one runs.
      for (const pace of ['quick', 'slow'] as const) {
        const due = group.filter((one) => EQUIVALENT[one.id] === undefined && isDue(kept[keyOf(one)], pace));
        for (const mutant of due) if (performance.now() < deadline) await play(mutant, pace);
      }
    }
  } finally {
    copy.remove();
  }
  return {
    standing: standingOf(mutants, kept),
    figures: wish.only === undefined ? figuresOf(mutants, kept) : undefined,
  };
}

type Pace = 'quick' | 'slow';

/** A survivor of an earlier run is played from the start. */
function isDue(kept: Verdict | undefined, pace: Pace): boolean {
  if (pace === 'slow') return kept?.outcome === 'passed';
  return kept === undefined || kept.outcome === 'survived';
}

/** What a run of quick or slow tests and the one before it come to. */
function verdictOf(pace: Pace, played: Verdict, earlier: Verdict | undefined): Verdict {
  if (pace === 'quick') return played.outcome === 'survived' ? { ...played, outcome: 'passed' } : played;
  return { ...played, seconds: Math.round((played.seconds + (earlier?.seconds ?? 0)) * 10) / 10 };
}

function standingOf(mutants: readonly Mutant[], kept: Kept): Standing {
  const counts: Record<string, number> = {};
  const failures: { round: number; message: string }[] = [];
  let seconds = 0;
  for (const [index, mutant] of mutants.entries()) {
    const verdict = kept[keyOf(mutant)];
    seconds += verdict?.seconds ?? 0;
    const isEquivalent = EQUIVALENT[mutant.id] !== undefined;
    const outcome = isEquivalent ? 'equivalent' : (verdict?.outcome ?? 'not played');
    counts[`${mutant.kind}, ${outcome}`] = (counts[`${mutant.kind}, ${outcome}`] ?? 0) + 1;
    if (!isEquivalent && verdict?.outcome === 'survived') failures.push({ round: index + 1, message: mutant.id });
  }
  return { seed: '', done: mutants.length, seconds, counts, failures };
}

function figuresOf(mutants: readonly Mutant[], kept: Kept): string {
  const { counts } = standingOf(mutants, kept);
  const equivalent = mutants.flatMap(({ id }) => (EQUIVALENT[id] === undefined ? [] : [`- ${id} - ${EQUIVALENT[id]}`]));
  return [
    ...countTable(Object.entries(counts).toSorted(([one], [other]) => one.localeCompare(other))),
    'Equivalent:',
    '',
    ...equivalent,
  ].join('\n');
}
