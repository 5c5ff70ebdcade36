/*
 * npm run campaign -- simulate [--minutes M] [--seed S] [--resume]
 *
 * One world after another, each from its own seed: how many machines, at which pace, under which faults. It goes on until at least five
 * million deciding events and an hour without a (state, event, fault) that was not met before, or until its minutes have passed. What it
 * did is kept after each world; what it met is written for docs/machines/coverage.md.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { namedTransitions, silenced } from '../../helpers/build/passes.ts';
import { keyOf, SIMULATED } from '../../helpers/build/coverage.ts';
import { traced } from '../../machines/registry.ts';
import { namesIn } from '../../machines/shape.ts';
import { faultKinds } from '../../machines/trace/simulate/faults.ts';
import { simulate } from '../../machines/trace/simulate/simulate.ts';
import { dense, ordinary } from '../../machines/trace/simulate/society.ts';
import { Draw } from './campaign.ts';
import type { Standing } from './campaign.ts';

/** What is wanted, and where what was done is kept. */
export interface SimulateWish {
  readonly seed: string;
  readonly minutes: number;
  readonly resume: boolean;
  readonly file: string;
  readonly top: string;
}

interface Kept {
  readonly seed: string;
  worlds: number;
  events: number;
  hours: number;
  seconds: number;
  /** Seconds at which something was met for the first time, last. */
  newAt: number;
  readonly faults: Record<string, number>;
  readonly met: Record<string, number>;
  readonly failures: { readonly round: number; readonly message: string }[];
}

/** Deciding events of one world. */
const WORLD_EVENTS = 40_000;
/** What makes the campaign whole. */
const WHOLE = { events: 5_000_000, quietSeconds: 3600 };

/** Runs worlds until the wish is met. */
export function runSimulate(wish: SimulateWish): { readonly standing: Standing; readonly figures: string } {
  const kept = read(wish);
  const deadline = performance.now() + wish.minutes * 60_000;
  while (performance.now() < deadline && !isWhole(kept)) {
    world(kept, kept.worlds + 1);
    fs.mkdirSync(path.dirname(wish.file), { recursive: true });
    fs.writeFileSync(wish.file, JSON.stringify(kept));
    if (kept.worlds % 10 === 0)
      console.log(
        `${kept.worlds} worlds, ${kept.events} events, ${Object.keys(kept.met).length} meetings, ${Math.round(kept.seconds)} s`,
      );
  }
  fs.writeFileSync(path.join(wish.top, SIMULATED), `${JSON.stringify(covered(kept.met), null, 1)}\n`);
  const { seed, worlds, seconds, faults, failures } = kept;
  return { standing: { seed, done: worlds, seconds, counts: faults, failures }, figures: figuresOf(kept) };
}

function read({ seed, resume, file }: SimulateWish): Kept {
  if (resume && fs.existsSync(file)) {
    // Written by this file alone.
    const kept = JSON.parse(fs.readFileSync(file, 'utf8')) as Kept;
    if (kept.seed === seed) return kept;
  }
  return { seed, worlds: 0, events: 0, hours: 0, seconds: 0, newAt: 0, faults: {}, met: {}, failures: [] };
}

function isWhole({ events, seconds, newAt }: Kept): boolean {
  return events >= WHOLE.events && seconds - newAt >= WHOLE.quietSeconds;
}

function world(kept: Kept, round: number): void {
  const draw = new Draw(`${kept.seed}:simulate:${round}`);
  const isDense = draw.below(5) > 0;
  const faults = draw.below(3) > 0 ? faultKinds : faultKinds.filter(() => draw.below(2) === 0);
  const executors = 1 + draw.below(12);
  const controlPlanes = 1 + draw.below(3);
  const began = performance.now();
  const { events, ms, violations, met, ...rest } = simulate({
    seed: `${kept.seed}:${round}`,
    executors,
    controlPlanes,
    faults,
    hours: 2000,
    events: WORLD_EVENTS,
    pace: isDense ? dense : ordinary,
    digest: (text) => createHash('sha256').update(text).digest('hex'),
  });
  kept.worlds = round;
  kept.events += events;
  kept.hours += ms / 3_600_000;
  kept.seconds += (performance.now() - began) / 1000;
  for (const [kind, count] of Object.entries(rest.faults)) kept.faults[kind] = (kept.faults[kind] ?? 0) + count;
  for (const [meeting, count] of met) {
    if (kept.met[meeting] === undefined) kept.newAt = kept.seconds;
    kept.met[meeting] = (kept.met[meeting] ?? 0) + count;
  }
  for (const { invariant, says } of violations.slice(0, 1)) {
    const again = `--seed ${kept.seed}:${round} --executors ${executors} --control-planes ${controlPlanes} --hours 2000 --faults ${faults.join(',')} --pace ${isDense ? 'dense' : 'ordinary'}`;
    kept.failures.push({ round, message: `${invariant}: ${says} (simulate ${again})` });
    console.log(`world ${round}: ${invariant}: ${says}\n  simulate ${again}`);
  }
}

function figuresOf({ worlds, events, hours, seconds, newAt, met, faults }: Kept): string {
  const machines = new Set(Object.keys(met).map((meeting) => meeting.split(' ', 1)[0]));
  return [
    `${worlds} worlds, ${events} deciding events, ${Math.round(hours)} h of their time, ${Math.round((events / seconds) * 60)} events a minute.`,
    `${Object.keys(met).length} different (state, event, fault) of ${machines.size} machines; the last new one after ${Math.round(newAt)} s of ${Math.round(seconds)}.`,
    '',
    '| fault | how often |',
    '|---|---|',
    ...Object.entries(faults)
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(([kind, count]) => `| ${kind} | ${count} |`),
  ].join('\n');
}

/** Meetings by the names of docs/machines/coverage.md: each state, and each event under the state that takes it. */
function covered(met: Readonly<Record<string, number>>): Record<string, Record<string, number>> {
  const found: Record<string, Record<string, number>> = {};
  const known = new Map(
    Object.entries(traced).map(([id, { machine }]) => {
      return [id, new Set([...namedTransitions(silenced(machine)).values()].map((name) => keyOf(id, name)))];
    }),
  );
  for (const [meeting, count] of Object.entries(met)) {
    const [machine = '', state = '', event = ''] = meeting.split(' ');
    if (state === '') continue;
    // A state stands in a meeting as JSON of its value.
    const names = namesIn(JSON.parse(state) as string);
    const counts = (found[machine] ??= {});
    for (const name of names) counts[name] = (counts[name] ?? 0) + count;
    const key = [...names.toReversed(), 'any']
      .flatMap((name) => [`${name} ${event}`, `${name} ${event.replace(/actor\.command$/, 'actor.*')}`])
      .find((one) => known.get(machine)?.has(one));
    if (key !== undefined) counts[key] = (counts[key] ?? 0) + count;
  }
  return found;
}
