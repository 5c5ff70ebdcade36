/*
 * One simulation from its options to its report: worlds run at the pace of people and agents, with the faults that are wanted, and are
 * watched until their time has passed or something did not hold.
 */
import type { Digester } from '../redact.ts';
import { haveFaults, stormy } from './faults.ts';
import type { FaultKind } from './faults.ts';
import type { Rules } from './rules.ts';
import { Desk, ordinary } from './society.ts';
import type { Pace } from './society.ts';
import type { Hear } from './tracer.ts';
import type { Violation } from './watch.ts';
import { calm, World } from './world.ts';

/** What to simulate. */
export interface SimulationOptions {
  readonly seed: string;
  readonly executors: number;
  readonly controlPlanes?: number;
  readonly hours: number;
  readonly faults: readonly FaultKind[];
  readonly pace?: Pace;
  readonly rules?: Rules;
  readonly digest: Digester;
  /** Takes each line of the trace. */
  readonly hear?: Hear;
  /** Ends the simulation after this many deciding events. */
  readonly events?: number;
  /** Hears now and then how far it is; false ends it. */
  readonly progress?: (at: { readonly ms: number; readonly events: number }) => boolean;
}

/** What came of it. */
export interface Simulated {
  /** Events after which a state or a store was another one. */
  readonly events: number;
  /** ms of the world's own time. */
  readonly ms: number;
  readonly violations: readonly Violation[];
  /** How often each kind of fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** How often each event met each state under which fault, by `machine state event fault`. */
  readonly met: ReadonlyMap<string, number>;
}

const HOUR_MS = 3_600_000;
/** How much of the world's time passes between two words of progress, in ms. */
const PROGRESS_MS = 60_000;

/** Runs one world to its end. */
export function simulate(options: SimulationOptions): Simulated {
  const { seed, executors, controlPlanes = 1, hours, faults: wanted, digest, hear, rules, pace = ordinary } = options;
  const world = new World({
    seed,
    controlPlanes,
    digest,
    weather: wanted.includes('weather') ? stormy : calm,
    ...(hear ? { hear } : {}),
    ...(rules ? { rules } : {}),
  });
  const desks = Array.from({ length: executors }, (_, index) => new Desk(world, index, pace));
  const faults: Record<string, number> = {};
  const heard = (kind: FaultKind): void => {
    faults[kind] = (faults[kind] ?? 0) + 1;
    world.setting.tracer.wentWrong(kind);
  };
  haveFaults(world, desks, wanted, { trouble: pace.trouble, heard });
  const { tracer } = world.setting;
  const end = hours * HOUR_MS;
  for (let until = Math.min(end, PROGRESS_MS); ; until = Math.min(end, until + PROGRESS_MS)) {
    const held = world.runUntil(until);
    const goesOn = options.progress?.({ ms: world.now, events: tracer.deciding }) ?? true;
    if (!held || !goesOn || until >= end || tracer.deciding >= (options.events ?? Number.POSITIVE_INFINITY)) break;
  }
  return { events: tracer.deciding, ms: world.now, violations: world.violations, faults, met: tracer.met };
}
