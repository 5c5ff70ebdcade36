/*
 * The smallest simulation that still shows a violation: fewer machines, fewer kinds of faults, no longer than needed. Every trial is a
 * whole run of its own, so what is left is a story that can be told again by its options alone.
 */
import { simulate } from './simulate.ts';
import type { Simulated, SimulationOptions } from './simulate.ts';

/** Trials at most: beyond that what is left is small enough to read. */
const TRIALS = 40;
const HOUR_MS = 3_600_000;

/** Options that still break the same invariant, and what they came to. */
export interface Shrunk {
  readonly options: SimulationOptions;
  readonly simulated: Simulated;
  readonly trials: number;
}

/** Shrinks options whose run broke an invariant. `heard` hears of each trial. */
export function shrink(options: SimulationOptions, found: Simulated, heard: (trials: number) => void): Shrunk {
  const invariant = found.violations[0]?.invariant;
  let best: Shrunk = { options: cutTo(options, found.ms), simulated: found, trials: 0 };
  let trials = 0;
  const attempt = (smaller: SimulationOptions): boolean => {
    if (trials >= TRIALS) return false;
    trials += 1;
    heard(trials);
    const simulated = simulate(smaller);
    if (simulated.violations[0]?.invariant !== invariant) return false;
    best = { options: cutTo(smaller, simulated.ms), simulated, trials };
    return true;
  };
  // What is rare in a smaller world takes longer there.
  for (let executors = 1; executors < options.executors; executors *= 2) {
    const hours = (best.options.hours * options.executors) / executors;
    if (attempt({ ...best.options, executors, hours })) break;
  }
  for (const kind of options.faults)
    attempt({ ...best.options, faults: best.options.faults.filter((one) => one !== kind) });
  return { ...best, trials };
}

/** The same, over as soon as it was seen. */
function cutTo(options: SimulationOptions, ms: number): SimulationOptions {
  return { ...options, hours: Math.min(options.hours, (ms + 1) / HOUR_MS) };
}
