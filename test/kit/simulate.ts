/* Simulation for a test: a whole world from a seed, or one story, with the trace of it as text. */
import { createHash } from 'node:crypto';

import { faultKinds } from '../../machines/trace/simulate/faults.ts';
import type { FaultKind } from '../../machines/trace/simulate/faults.ts';
import { tell } from '../../machines/trace/simulate/scenario.ts';
import type { Scenario, Told } from '../../machines/trace/simulate/scenario.ts';
import { simulate } from '../../machines/trace/simulate/simulate.ts';
import type { Simulated } from '../../machines/trace/simulate/simulate.ts';
import { paces } from '../../machines/trace/simulate/society.ts';
import { textOf } from '../../machines/trace/simulate/tracer.ts';

/** A world that a test wants. */
export type WorldWish = {
  /** What decides every chance. */
  readonly seed: string;
  /** Machines; 5 where it is left out. */
  readonly executors?: number;
  /** Processes of the control plane; 1 where it is left out. */
  readonly controlPlanes?: number;
  /** Time that passes in the world. */
  readonly hours: number;
  /** Kinds of faults; all where it is left out. */
  readonly faults?: readonly FaultKind[];
  /** `ordinary`, or `dense` for what a year brings within hours. */
  readonly pace?: 'ordinary' | 'dense';
};

/** What came of it. */
export type SimulatedWorld = Simulated & {
  /** SHA-256 of the trace, 64 hexadecimal digits. */
  readonly traceDigest: string;
};

/** Runs a world by the machines and rules of this version; `hear` takes each line of its trace. */
export function simulateWorld(wish: WorldWish, hear?: (line: string) => void): SimulatedWorld {
  const digest = createHash('sha256');
  const { seed, hours, executors = 5, controlPlanes = 1, faults = faultKinds, pace = 'ordinary' } = wish;
  const chosen = paces[pace];
  if (!chosen) throw new RangeError(`pace: expected ordinary or dense, got ${pace}`);
  const simulated = simulate({
    seed,
    hours,
    executors,
    controlPlanes,
    faults,
    pace: chosen,
    digest: sha256,
    hear: (line) => {
      const text = textOf(line);
      digest.update(text);
      hear?.(text);
    },
  });
  return { ...simulated, traceDigest: digest.digest('hex') };
}

/** Tells one story; what of it did not come as written stands in `unmet`. `hear` takes each line of its trace. */
export function tellStory(story: Scenario, hear?: (line: string) => void): Told {
  return tell(story, { digest: sha256, hear: (line) => hear?.(textOf(line)) });
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
