/*
 * A machine walked by hand: where it is, what holds and what may be asked for there, which events it could take now and where each
 * would lead; one is taken, or the last one is taken back. A walk is a value: every step makes a new one. What was taken is a trace
 * at every moment, so a walk can be saved and replayed like a recording.
 */
import type { AnyEventObject, AnyStateNode, StateValue } from 'xstate';
import { traced } from '../registry.ts';
import { below, eventName, metaOf, nameOf, namesIn } from '../shape.ts';
import { formatLine } from './format.ts';
import type { Json, TraceLine } from './format.ts';
import { emptyRecording, recordEvent } from './record.ts';
import type { Recording } from './record.ts';
import type { Digester } from './redact.ts';
import { SAMPLES } from './samples.ts';
import { INIT, take } from './take.ts';
import { stateWords } from './tell.ts';

/** A machine and the steps that were taken with it, oldest first; it begins with its first step. */
export type Walk = { readonly machine: string; readonly steps: readonly WalkStep[] };

type WalkStep = { readonly line: TraceLine; readonly after: Recording };

/** An event that could be taken now, and what would come of it. */
export type Choice = {
  readonly event: AnyEventObject;
  /** The event as a person says it. */
  readonly said: string;
  readonly payload: { readonly [field: string]: Json };
  /** Names of the states that it would lead to, as one text. */
  readonly leads: string;
  readonly outcome: 'begins' | 'moves' | 'stays' | 'is refused' | 'ends';
};

/** Where a walk is. Before its first step there is no state. */
export type Place = {
  readonly value: StateValue | null;
  readonly status: 'not begun' | 'active' | 'done' | 'error';
  readonly states: readonly { readonly name: string; readonly holds: string; readonly permits: readonly string[] }[];
};

/** An event that the state cannot take; nothing changed. */
export type Untaken = { readonly ok: false; readonly why: string };

/** A walk of one machine that has not begun. Throws for a machine that this program does not have. */
export function walkOf(machine: string): Walk {
  if (!Object.hasOwn(traced, machine)) throw new RangeError(`there are the machines ${Object.keys(traced).join(', ')}`);
  return { machine, steps: [] };
}

/** Where a walk is, what holds there and what may be asked for. */
export function placeOf(walk: Walk): Place {
  const last = walk.steps.at(-1);
  if (last === undefined) return { value: null, status: 'not begun', states: [] };
  const { value, status } = last.line.after;
  const states = activeIn(walk).map((node) => ({ name: nameOf(node), ...metaOf(node) }));
  return { value, status, states };
}

/**
 * Every event that could be taken now, with a payload of the golden traces: one choice for each thing that can come of it, be
 * it a state, a refusal or other data. Events of inner states come first, as they are tried first.
 */
export function choicesOf(walk: Walk): Choice[] {
  const samples = SAMPLES[walk.machine] ?? {};
  const choices = new Map<string, Choice>();
  for (const type of typesOf(walk)) {
    for (const payload of samples[type] ?? []) {
      const event = { ...payload, type };
      const next = stepped(walk, event, (text) => text);
      if (next === undefined) continue;
      const { after, actions } = next.line;
      const outcome = outcomeOf(next.line);
      const data: unknown = next.after.actors.get(walk.machine)?.snapshot.context;
      const key = JSON.stringify([type, after, outcome, actions, data]);
      if (choices.has(key)) continue;
      choices.set(key, {
        event,
        said: type === INIT ? 'begins' : eventName(type),
        payload,
        leads: stateWords(after.value),
        outcome,
      });
    }
  }
  return [...choices.values()];
}

/** Takes one event. `digest` is SHA-256 of a text in UTF-8, 64 hexadecimal digits, for what a trace may show by its digest alone. */
export function takeStep(
  walk: Walk,
  event: AnyEventObject,
  digest: Digester,
): { readonly ok: true; readonly walk: Walk } | Untaken {
  const step = stepped(walk, event, digest);
  if (step !== undefined) return { ok: true, walk: { ...walk, steps: [...walk.steps, step] } };
  const { status, value } = placeOf(walk);
  if (value === null) return { ok: false, why: `${event.type} comes before the beginning, which is ${INIT}` };
  const where = stateWords(value);
  return {
    ok: false,
    why:
      status === 'active'
        ? `${event.type} cannot be taken in ${where}`
        : `${where} is the end: nothing is taken after it`,
  };
}

/** The walk without its last step; one that has not begun stays as it is. */
export function undoStep(walk: Walk): Walk {
  return { ...walk, steps: walk.steps.slice(0, -1) };
}

/** Lines of what was taken, as a trace. */
export function traceOfWalk(walk: Walk): string {
  return walk.steps.map(({ line }) => formatLine(line)).join('');
}

/** The step that an event would be, or undefined where it cannot be taken. */
function stepped({ machine, steps }: Walk, event: AnyEventObject, digest: Digester): WalkStep | undefined {
  const recording = steps.at(-1)?.after ?? emptyRecording;
  const held = recording.actors.get(machine)?.snapshot;
  const logic = traced[machine]?.machine;
  if (logic === undefined || (event.type === INIT) !== (steps.length === 0)) return undefined;
  if (event.type !== INIT && (held === undefined || !take(logic, held, event).taken)) return undefined;
  const { line, recording: after } = recordEvent(recording, { machine, actor: machine, event }, digest);
  return line === undefined ? undefined : { line, after };
}

/** Types of every event that could come to the states of a walk, inner states first; only an actor that runs can be done or break. */
function typesOf(walk: Walk): readonly string[] {
  if (walk.steps.length === 0) return [INIT];
  if (placeOf(walk).status !== 'active') return [];
  const known = Object.keys(SAMPLES[walk.machine] ?? {});
  const root = traced[walk.machine]?.machine.root;
  const nodes = [...activeIn(walk).toReversed(), ...(root === undefined ? [] : [root])];
  const types = nodes.flatMap((node) => [...node.transitions.keys()]);
  const family = (type: string): string[] => known.filter((one) => one.startsWith(type.slice(0, -1)));
  const found = [...new Set(types.flatMap((type) => (type.endsWith('.*') ? family(type) : [type])))];
  const running = Object.keys(walk.steps.at(-1)?.after.actors.get(walk.machine)?.snapshot.children ?? {});
  return found.filter((type) => {
    const actor = /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(type)?.[1];
    return actor === undefined || running.includes(actor);
  });
}

function activeIn({ machine, steps }: Walk): AnyStateNode[] {
  const root = traced[machine]?.machine.root;
  const last = steps.at(-1);
  if (root === undefined || last === undefined) return [];
  const names = new Set(namesIn(last.line.after.value));
  return below(root).filter((node) => names.has(nameOf(node)));
}

function outcomeOf({ before, after, actions }: TraceLine): Choice['outcome'] {
  if (before === null) return 'begins';
  if (actions.includes('refuse')) return 'is refused';
  if (after.status !== 'active') return 'ends';
  return JSON.stringify(before.value) === JSON.stringify(after.value) ? 'stays' : 'moves';
}
