/*
 * Which golden trace reaches each state and takes each transition of a machine, found by running the traces of test/traces/ through
 * the machines; and how often the last simulation did, where one was run.
 */
import fs from 'node:fs';
import path from 'node:path';

import type { AnyEventObject, AnyStateMachine } from 'xstate';
import * as z from 'zod';

import { traced } from '../../machines/registry.ts';
import { below, nameOf } from '../../machines/shape.ts';
import { parseTrace } from '../../machines/trace/format.ts';
import { namedTransitions, silenced, steps } from './passes.ts';

const TOP = path.resolve(import.meta.dirname, '../..');

/** States (by id) and transitions (`daemon.online on control.fenced #0`) that no golden trace reaches, each with its reason. */
export const UNREACHED: { readonly [name: string]: string } = {};

/** File that the simulation writes; absent where it was not run. */
export const SIMULATED = 'docs/simulated.json';

/** Golden traces by name of the state (its id) or transition that they pass, shortest trace first. */
export type Coverage = {
  readonly traces: number;
  readonly states: ReadonlyMap<string, readonly string[]>;
  readonly transitions: ReadonlyMap<string, readonly string[]>;
};

/** What the golden traces of one machine reach. */
export function coverageOf(machine: AnyStateMachine, top: string = TOP): Coverage {
  const folder = path.join(top, 'test/traces', machine.id);
  const traces = fs
    .readdirSync(folder)
    .toSorted()
    .map((file) => {
      const lines = parseTrace(fs.readFileSync(path.join(folder, file), 'utf8'));
      const events = lines.map(({ event: { type, payload } }): AnyEventObject => ({ ...payload, type }));
      return { name: file.replace(/\.jsonl$/, ''), events };
    });
  const states = new Map<string, string[]>();
  const transitions = new Map<string, string[]>();
  const live = silenced(machine);
  const names = namedTransitions(live);
  for (const { name, events } of traces.toSorted((one, other) => one.events.length - other.events.length)) {
    const [begin, ...rest] = events;
    const passed = steps(live, begin?.['input'], rest);
    for (const state of new Set(passed.flatMap((step) => step.states))) note(states, state, name);
    const taken = passed.flatMap((step) => step.transitions.map((transition) => names.get(transition) ?? ''));
    for (const transition of new Set(taken)) note(transitions, transition, name);
  }
  return { traces: traces.length, states, transitions };
}

function note(found: Map<string, string[]>, key: string, name: string): void {
  const known = found.get(key);
  if (known === undefined) found.set(key, [name]);
  else known.push(name);
}

const simulatedSchema = z.record(z.string(), z.record(z.string(), z.number().int().nonnegative()));

/** How often the last simulation reached a state (`online.heard`) or an event in it (`online.heard control.answered`), by machine. */
export type Simulated = z.infer<typeof simulatedSchema>;

/**
 * What the simulation wrote into docs/simulated.json, undefined where it was not run. Keys of a machine: a state's path, or that and
 * an event's type after a blank; events that every state takes stand under `any`, those that follow at once are called `always`. Throws
 * for anything else, and for a machine, state or event that is not there.
 */
export function simulated(top: string = TOP): Simulated | undefined {
  const file = path.join(top, SIMULATED);
  if (!fs.existsSync(file)) return undefined;
  const found = simulatedSchema.parse(JSON.parse(fs.readFileSync(file, 'utf8')));
  for (const [id, counts] of Object.entries(found)) {
    const machine = traced[id]?.machine;
    if (machine === undefined) throw new RangeError(`${SIMULATED} names the machine ${id}, which is not there`);
    const known = new Set([
      ...below(machine.root).map(nameOf),
      ...[...namedTransitions(machine).values()].map((name) => keyOf(id, name)),
    ]);
    const wrong = Object.keys(counts).find((key) => !known.has(key));
    if (wrong !== undefined) throw new RangeError(`${SIMULATED} counts ${wrong} of ${id}, which is not there`);
  }
  return found;
}

/** Key of a transition in docs/simulated.json, of its name. */
export function keyOf(machine: string, transition: string): string {
  const [state = '', event = ''] = transition.replace(/ #\d+$/, '').split(' on ');
  return `${state === machine ? 'any' : state.slice(machine.length + 1)} ${event}`;
}
