import type { AnyEventObject, AnyMachineSnapshot } from 'xstate';
import { traced } from '../registry.ts';
import { TraceError, parseTrace } from './format.ts';
import type { TraceLine } from './format.ts';
import { INIT, stateOf, take, takeInit } from './take.ts';
import type { Taken } from './take.ts';

/** Where a trace and the machines of this program part, and why. `line` counts from 1. */
export type Difference = { readonly line: number; readonly actor: string; readonly why: string };

/** Outcome of a replay: every state and action was reproduced, or the first difference of each actor. */
export type Replay =
  | { readonly ok: true; readonly lines: number; readonly actors: number }
  | { readonly ok: false; readonly differences: readonly Difference[] };

/**
 * Runs a trace through the machines of this program, each actor by itself, and compares every state and every action. A line that is
 * not one, a gap in `seq`, a machine that is not known and an event that the state could not take are differences. After its first
 * difference an actor is not followed further.
 */
export function replay(text: string): Replay {
  let lines: TraceLine[];
  try {
    lines = parseTrace(text);
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    return { ok: false, differences: [{ line: 0, actor: '', why: error.message }] };
  }
  const actors = new Map<string, AnyMachineSnapshot | 'parted'>();
  const differences: Difference[] = [];
  for (const [index, line] of lines.entries()) {
    const held = actors.get(line.actor);
    if (held === 'parted' && line.event.type !== INIT) continue;
    const outcome = replayLine(line, index, held === 'parted' ? undefined : held);
    actors.set(line.actor, typeof outcome === 'string' ? 'parted' : outcome.snapshot);
    if (typeof outcome === 'string') differences.push({ line: index + 1, actor: line.actor, why: outcome });
  }
  return differences.length === 0 ? { ok: true, lines: lines.length, actors: actors.size } : { ok: false, differences };
}

function replayLine(line: TraceLine, index: number, held: AnyMachineSnapshot | undefined): Taken | string {
  if (line.seq !== index) return `seq is ${line.seq} where ${index} comes next: lines were lost, added or reordered`;
  const machine = traced[line.machine]?.machine;
  if (machine === undefined) return `machine ${line.machine} is not one of ${Object.keys(traced).join(', ')}`;
  const { type, payload } = line.event;
  if (type !== INIT && held === undefined) return `${type} comes before ${INIT}`;
  if (held !== undefined && held.machine.id !== machine.id) return `the actor was of machine ${held.machine.id} before`;
  const aged =
    line.version === machine.version ? '' : ` (recorded by version ${line.version}, replayed by ${machine.version})`;
  if (held !== undefined && type !== INIT && !same(stateOf(held), line.before)) {
    return `the state before is ${shown(stateOf(held))}, the trace has ${shown(line.before)}${aged}`;
  }
  // A payload is what a trace may show of an event; the machines read nothing else of one, which the golden traces prove.
  const event = { ...payload, type } as AnyEventObject;
  const step = type === INIT || held === undefined ? takeInit(machine, payload['input']) : take(machine, held, event);
  if (!step.taken) return `${type} cannot be taken in ${shown(line.before)}${aged}`;
  const after = stateOf(step.snapshot);
  if (!same(after, line.after)) return `${type} leads to ${shown(after)}, the trace has ${shown(line.after)}${aged}`;
  if (!same(step.actions, line.actions)) {
    return `${type} asks for [${step.actions.join(', ')}], the trace has [${line.actions.join(', ')}]${aged}`;
  }
  return step;
}

function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

function shown(state: TraceLine['before']): string {
  if (state === null) return 'nothing';
  return typeof state.value === 'string' ? state.value : JSON.stringify(state.value);
}
