/*
 * `simulate`: runs a world of machines and control planes by the rules that ship, with the faults that are wanted, and says whether every
 * invariant held. The same options give the same trace, byte for byte, whose digest is printed.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { faultKinds } from '../../machines/trace/simulate/faults.ts';
import type { FaultKind } from '../../machines/trace/simulate/faults.ts';
import { shrink } from '../../machines/trace/simulate/shrink.ts';
import { simulate } from '../../machines/trace/simulate/simulate.ts';
import type { Simulated, SimulationOptions } from '../../machines/trace/simulate/simulate.ts';
import { paces } from '../../machines/trace/simulate/society.ts';
import { textOf } from '../../machines/trace/simulate/tracer.ts';
import type { TraceLine } from '../../machines/trace/format.ts';
import { CliFailure } from './failure.ts';
import { columns, counted, say, styled, visible } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** Options as the command line gives them. */
export interface SimulateWish {
  readonly seed: string;
  readonly executors: string;
  readonly controlPlanes: string;
  readonly hours: string;
  readonly faults: string;
  readonly pace: string;
  readonly trace?: string;
  readonly json: boolean;
}

/** Lines that are kept to be shown beside a violation. */
const KEPT = 40;
/** How often progress is shown, in ms. */
const SHOWN_MS = 1000;

/** Runs one simulation. Throws CliFailure: difference where an invariant did not hold, usage for what cannot be run. */
export function runSimulation(terminal: Terminal, wish: SimulateWish): void {
  const options = optionsOf(wish);
  const digest = createHash('sha256');
  const file = wish.trace === undefined ? undefined : openNew(wish.trace);
  const began = performance.now();
  const simulated = simulate({
    ...options,
    hear: (line) => {
      const text = textOf(line);
      digest.update(text);
      if (file !== undefined) fs.writeSync(file, text);
    },
    progress: progressOn(terminal, options),
  });
  const seconds = (performance.now() - began) / 1000;
  if (file !== undefined) fs.closeSync(file);
  const { events, violations } = simulated;
  const eventsPerMinute = Math.round((events / seconds) * 60);
  const traceDigest = digest.digest('hex');
  if (!wish.json) showSummary(terminal, simulated, { eventsPerMinute, traceDigest, seconds });
  if (violations.length > 0) showViolation(terminal, options, simulated, wish);
  const line = { events, eventsPerMinute, violations: violations.length, seed: options.seed, traceDigest };
  if (wish.json) terminal.out.write(`${JSON.stringify(line)}\n`);
  if (violations.length > 0)
    throw new CliFailure('difference', `${counted(violations.length, 'invariant')} did not hold`);
}

function optionsOf(wish: SimulateWish): SimulationOptions {
  const pace = paces[wish.pace];
  if (!pace)
    throw new CliFailure('usage', `--pace: expected ${Object.keys(paces).join(' or ')}, got ${visible(wish.pace)}`);
  return {
    seed: wish.seed,
    executors: numberOf(wish.executors, '--executors', 1, 10_000),
    controlPlanes: numberOf(wish.controlPlanes, '--control-planes', 1, 16),
    hours: numberOf(wish.hours, '--hours', 0.01, 100_000),
    faults: faultsOf(wish.faults),
    pace,
    digest: (text) => createHash('sha256').update(text, 'utf8').digest('hex'),
  };
}

function numberOf(text: string, option: string, least: number, most: number): number {
  const number = Number(text);
  if (!(number >= least && number <= most))
    throw new CliFailure('usage', `${option}: expected a number from ${least} to ${most}, got ${visible(text)}`);
  return least === 1 ? Math.floor(number) : number;
}

function faultsOf(text: string): readonly FaultKind[] {
  if (text === 'all') return faultKinds;
  if (text === 'none') return [];
  return text.split(',').map((name) => {
    const kind = faultKinds.find((one) => one === name);
    if (kind) return kind;
    throw new CliFailure(
      'usage',
      `--faults: expected all, none or some of ${faultKinds.join(',')}; got ${visible(name)}`,
    );
  });
}

function progressOn({ error }: Terminal, { hours }: SimulationOptions): NonNullable<SimulationOptions['progress']> {
  let shown = performance.now();
  return ({ ms, events }) => {
    const now = performance.now();
    if (!error.isTTY || now - shown < SHOWN_MS) return true;
    shown = now;
    const share = Math.min(100, Math.round((ms / 36_000 / hours) * 1));
    error.write(`\r${share} %, ${counted(events, 'event')}\u001b[K`);
    return true;
  };
}

function showSummary(
  terminal: Terminal,
  { events, ms, violations, faults }: Simulated,
  run: { readonly eventsPerMinute: number; readonly traceDigest: string; readonly seconds: number },
): void {
  if (terminal.error.isTTY) terminal.error.write('\r\u001b[K');
  const rows = [
    ['simulated', `${(ms / 3_600_000).toFixed(2)} h in ${run.seconds.toFixed(1)} s`],
    ['deciding events', `${events}, ${run.eventsPerMinute} a minute`],
    ['trace digest', run.traceDigest],
    ...Object.entries(faults)
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(([kind, count]) => [`fault ${kind}`, String(count)]),
  ];
  for (const line of columns(rows)) say(terminal, line);
  if (violations.length === 0) say(terminal, styled(terminal, 'green', 'every invariant held'));
}

/** A shorter story that shows it: options, the newest lines of the trace, where each actor of them stands, and the command. */
function showViolation(terminal: Terminal, options: SimulationOptions, found: Simulated, wish: SimulateWish): void {
  const write = (line: string): void => void terminal.error.write(`${line}\n`);
  const lines: TraceLine[] = [];
  const shrunk = shrink(options, found, (trials) => {
    if (terminal.error.isTTY) terminal.error.write(`\rlooking for a shorter story, trial ${trials}\u001b[K`);
  });
  if (terminal.error.isTTY) terminal.error.write('\r\u001b[K');
  const { violations } = simulate({ ...shrunk.options, hear: (line) => void lines.push(line) });
  const [first] = violations;
  if (!first) return;
  write(
    `invariant ${first.invariant}: ${first.says}, ${(first.at / 1000).toFixed(3)} s after the start, event ${first.after}`,
  );
  const about = lines.filter(({ actor, event }) => isAbout(first.says, actor, JSON.stringify(event)));
  const shown = (about.length > 0 ? about : lines).slice(-KEPT);
  for (const { seq, actor, event, before, after } of shown)
    write(
      `  ${seq} ${actor} ${event.type}: ${before === null ? 'begins' : JSON.stringify(before.value)} -> ${JSON.stringify(after.value)}`,
    );
  const states = new Map(shown.map(({ actor, after }) => [actor, JSON.stringify(after.value)]));
  for (const [actor, state] of states) write(`  ${actor} is in ${state}`);
  write(`seed ${shrunk.options.seed}, after ${shrunk.trials} trials; again by:`);
  write(`  nessie-executor ${commandOf(shrunk.options, wish.pace)}`);
}

/** Whether a line tells of one of the ids that a violation names. */
function isAbout(says: string, actor: string, event: string): boolean {
  const ids = says.match(/\b(?:command|executor|run|promotion)-\d+\b/g) ?? [];
  return ids.some((id) => actor.endsWith(id) || event.includes(`"${id}"`));
}

function commandOf({ seed, executors, controlPlanes, hours, faults }: SimulationOptions, pace: string): string {
  const kinds = faults.length === faultKinds.length ? 'all' : faults.join(',') || 'none';
  return `simulate --seed ${seed} --executors ${executors} --control-planes ${controlPlanes} --hours ${hours} --faults ${kinds} --pace ${pace}`;
}

function openNew(file: string): number {
  try {
    return fs.openSync(file, 'wx', 0o600);
  } catch (cause) {
    throw new CliFailure('refused', 'the file is there already or cannot be made; name a new one', { cause });
  }
}
