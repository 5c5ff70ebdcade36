/*
 * The crash matrix whole: the first level, then the recovery of each distinct state that it leaves, killed before and after each of
 * its numbered calls and recovered again. Cases have names instead of rounds; what was played stands in a file after each second,
 * and a run that finds one of the same calls goes on from there.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { Bench } from '../faults/crash/bench.ts';
import { countsOf, Matrix, noProgress } from '../faults/crash/matrix.ts';
import type { Progress, Running } from '../faults/crash/matrix.ts';
import type { Standing } from './campaign.ts';
import { countTable } from './figures.ts';
import { ProgressLine } from './progress.ts';

/** How much of it, and where it is kept. */
export interface CrashWish {
  readonly minutes: number;
  readonly jobs: number;
  readonly resume: boolean;
  readonly file: string;
}

/** What the file holds: the progress, the calls that it was made with, and the seconds that it took so far. */
interface Kept {
  readonly calls: string;
  readonly seconds: number;
  readonly progress: Progress;
}

const SAVE_MS = 1000;
/** A first kill whose recovery has nothing to change leaves no case of the second level. */
const LEVELS = ['first level', 'recoveries numbered', 'second level'] as const;

class Store {
  readonly #file: string;
  readonly #began = performance.now();
  #calls = '';
  #earlier = 0;
  #savedAt = 0;

  constructor(file: string) {
    this.#file = file;
  }

  get seconds(): number {
    return this.#earlier + (performance.now() - this.#began) / 1000;
  }

  /** The progress in the file where it belongs to these calls and is wanted. What failed is played again. */
  read(calls: readonly string[], resume: boolean): Progress {
    this.#calls = createHash('sha256').update(JSON.stringify(calls)).digest('hex');
    if (!resume || !fs.existsSync(this.#file)) return noProgress();
    // Written by this class alone.
    const kept = JSON.parse(fs.readFileSync(this.#file, 'utf8')) as Kept;
    if (kept.calls !== this.#calls) {
      console.log('the promotion has other calls than the run that was stopped: it begins anew');
      return noProgress();
    }
    this.#earlier = kept.seconds;
    return { ...kept.progress, failures: [] };
  }

  save(progress: Progress, isLast = false): void {
    if (!isLast && performance.now() - this.#savedAt < SAVE_MS) return;
    this.#savedAt = performance.now();
    const kept: Kept = { calls: this.#calls, seconds: this.seconds, progress };
    fs.mkdirSync(path.dirname(this.#file), { recursive: true });
    fs.writeFileSync(`${this.#file}.next`, JSON.stringify(kept));
    fs.renameSync(`${this.#file}.next`, this.#file);
  }
}

/** Plays what is not played yet, within the minutes; what it comes to is the standing of a campaign without a seed, and a text. */
export async function runCrash(wish: CrashWish): Promise<{ readonly standing: Standing; readonly figures: string }> {
  const store = new Store(wish.file);
  const deadline = performance.now() + wish.minutes * 60_000;
  const bench = await Bench.begin();
  const line = new ProgressLine();
  try {
    const matrix = await Matrix.begin(bench, (calls) => store.read(calls, wish.resume));
    const running = (level: (typeof LEVELS)[number]): Running => ({
      jobs: wish.jobs,
      goesOn: () => performance.now() < deadline,
      heard(total) {
        store.save(matrix.progress);
        line.tell(`${level}: ${doneOf(matrix, level)} of ${total}, ${matrix.progress.failures.length} failures`);
      },
    });
    await matrix.play(matrix.first(), running('first level'));
    await matrix.number(running('recoveries numbered'));
    await matrix.play(matrix.second(), running('second level'));
    store.save(matrix.progress, true);
    return { standing: standingOf(matrix.progress, store.seconds), figures: figuresOf(matrix) };
  } finally {
    line.end();
    bench.end();
  }
}

const isSecond = (name: string): boolean => name.includes(',');

function doneOf({ progress }: Matrix, level: (typeof LEVELS)[number]): number {
  if (level === 'recoveries numbered') return Object.values(progress.states).filter(({ calls }) => calls).length;
  const names = [...Object.keys(progress.played), ...progress.failures.map(({ name }) => name)];
  return names.filter((name) => isSecond(name) === (level === 'second level')).length;
}

function standingOf(progress: Progress, seconds: number): Standing {
  return {
    seed: '',
    done: Object.keys(progress.played).length + progress.failures.length,
    seconds,
    counts: Object.fromEntries(countsOf(progress)),
    failures: progress.failures.map(({ name, call, message }, index) => ({
      round: index + 1,
      message: `${name} (${call}): ${message}`.slice(0, 400),
    })),
  };
}

function figuresOf(matrix: Matrix): string {
  const { progress } = matrix;
  const applies = [...matrix.cleans].map(
    ([depth, { calls }]) => `${calls.length} with its entries ${depth === 'top' ? 'at the top' : 'below a folder'}`,
  );
  const states = Object.values(progress.states);
  const recoveries = states.reduce((sum, { calls }) => sum + (calls?.length ?? 0), 0);
  const [first, second] = [matrix.first().length, matrix.second().length];
  const sentence = [
    `Numbered calls of an apply of twelve entries: ${applies.join(', ')}.`,
    `First level: ${doneOf(matrix, 'first level')} of ${first} cases.`,
    `It leaves ${states.length} distinct states; their recoveries have ${recoveries} numbered calls together.`,
    `Second level: ${doneOf(matrix, 'second level')} of ${second} cases.`,
  ].join(' ');
  const counts = [...countsOf(progress)].toSorted(([one], [other]) => one.localeCompare(other));
  return [sentence, '', ...countTable(counts)].join('\n').trimEnd();
}
