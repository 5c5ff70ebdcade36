/*
 * Every case of the crash matrix, in order, and what has been played of it. The first level kills an apply before and after each
 * of its numbered calls; the second kills the recovery of each distinct state that the first level left, in the same way.
 */
import { DEPTHS } from '../../fakes/every-kind.ts';
import type { Depth } from '../../fakes/every-kind.ts';
import type { Bench } from './bench.ts';
import { cleanRun, nameOfCase, numberRecovery, playCase } from './case.ts';
import type { Case, Clean, Left } from './case.ts';
import type { Kill } from './order.ts';

/** A case that was not as promised: its name, the call that was killed at last, and what differed. */
export interface Failure {
  readonly name: string;
  readonly call: string;
  readonly message: string;
}

/** A distinct state that the first level leaves, the first kill that leaves it, and the calls of its recovery once they are numbered. */
export interface Leaving {
  readonly depth: Depth;
  readonly apply: Kill;
  readonly calls: readonly string[] | undefined;
}

/** What has been played; plain data, so that a stopped run goes on from a file. `played` is by name of case, `states` by key. */
export interface Progress {
  readonly played: Record<string, Left>;
  readonly states: Record<string, Leaving>;
  readonly failures: Failure[];
}

/** Nothing played yet. */
export function noProgress(): Progress {
  return { played: {}, states: {}, failures: [] };
}

/** Who runs a matrix: whether to go on, and what hears of each case. */
export interface Running {
  readonly jobs: number;
  readonly goesOn: () => boolean;
  readonly heard: (total: number) => void;
}

/** Both sides of every call of a list. */
export function killsOf(calls: readonly string[]): Kill[] {
  return calls.flatMap((_, index) => (['before', 'after'] as const).map((side): Kill => ({ number: index + 1, side })));
}

/** The matrix on one bench. */
export class Matrix {
  readonly progress: Progress;
  readonly cleans: ReadonlyMap<Depth, Clean>;
  readonly #bench: Bench;

  private constructor(bench: Bench, cleans: ReadonlyMap<Depth, Clean>, progress: Progress) {
    this.#bench = bench;
    this.cleans = cleans;
    this.progress = progress;
  }

  /** Numbers the applies that nobody kills. `progress` finds what was played before of a matrix with these calls. */
  static async begin(bench: Bench, progress: (calls: readonly string[]) => Progress = noProgress): Promise<Matrix> {
    const cleans = new Map<Depth, Clean>();
    for (const depth of DEPTHS) cleans.set(depth, await cleanRun(bench, depth));
    return new Matrix(bench, cleans, progress([...cleans.values()].flatMap(({ calls }) => calls)));
  }

  /** Cases of the first level. */
  first(): Case[] {
    return [...this.cleans].flatMap(([depth, { calls }]) =>
      killsOf(calls).map((apply): Case => ({ depth, apply, recovery: undefined })),
    );
  }

  /** Cases of the second level, as far as the recoveries are numbered. */
  second(): Case[] {
    return Object.values(this.progress.states).flatMap(({ depth, apply, calls }) =>
      killsOf(calls ?? []).map((recovery): Case => ({ depth, apply, recovery })),
    );
  }

  /** Plays the cases that were not played before. */
  async play(cases: readonly Case[], running: Running): Promise<void> {
    const open = cases.filter((played) => this.progress.played[nameOfCase(played)] === undefined);
    await eachOf(open, running, async (played) => {
      await this.#playOne(played);
      running.heard(cases.length);
    });
  }

  /** Numbers the recovery of every state that has no numbers yet. */
  async number(running: Running): Promise<void> {
    const states = Object.entries(this.progress.states).filter(([, { calls }]) => calls === undefined);
    await eachOf(states, running, async ([key, state]) => {
      await this.#numberOne(key, state);
      running.heard(states.length);
    });
  }

  async #numberOne(key: string, state: Leaving): Promise<void> {
    try {
      const again = await numberRecovery(this.#bench, state.depth, state.apply);
      if (again.key !== key) throw new Error('does not leave the same state twice');
      this.progress.states[key] = { ...state, calls: again.calls };
    } catch (error) {
      const name = nameOfCase({ ...state, recovery: undefined });
      this.progress.failures.push({ name, call: 'the numbering of its recovery', message: messageOf(error) });
    }
  }

  async #playOne(played: Case): Promise<void> {
    const clean = this.cleans.get(played.depth);
    if (clean === undefined) throw new TypeError(`no clean run at ${played.depth}`);
    const [key, state] = this.#stateOf(played);
    const name = nameOfCase(played);
    try {
      const left = await playCase(this.#bench, clean, played, key);
      this.progress.played[name] = left;
      if (played.recovery !== undefined) return;
      this.progress.states[left.key] ??= { depth: played.depth, apply: played.apply, calls: undefined };
    } catch (error) {
      const { number } = played.recovery ?? played.apply;
      const call = (played.recovery === undefined ? clean.calls : state?.calls)?.[number - 1] ?? 'an unknown call';
      this.progress.failures.push({ name, call, message: messageOf(error) });
    }
  }

  /** The state that the first of two kills must leave. */
  #stateOf({ depth, apply, recovery }: Case): [string | undefined, Leaving | undefined] {
    if (recovery === undefined) return [undefined, undefined];
    const left = this.progress.played[nameOfCase({ depth, apply, recovery: undefined })];
    return [left?.key, left === undefined ? undefined : this.progress.states[left.key]];
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Does some work for each item, a few at a time, in order, while it goes on. */
async function eachOf<Item>(
  items: readonly Item[],
  { jobs, goesOn }: Running,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const worker = async (): Promise<void> => {
    for (const item of rest) {
      if (!goesOn()) return;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

/** How often each kind of case was played, in words. */
export function countsOf({ played }: Progress): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [name, { standing, tree }] of Object.entries(played)) {
    const level = name.includes(',') ? 'recovery killed again' : 'apply killed';
    const journal = standing === 'none' ? 'no journal' : `journal ${standing}`;
    const what = `${level}, ${journal}: the ${tree} tree`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return counts;
}
