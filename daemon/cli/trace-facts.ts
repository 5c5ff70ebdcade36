/*
 * A trace as the facts of its page: what the page shows of each line, which transitions it took, a lane for each actor, and where
 * the machines of this program do otherwise.
 */
import { traced } from '../../machines/registry.ts';
import { below, metaOf, nameOf, permitsOf, SUBJECTS } from '../../machines/shape.ts';
import type { Json, TraceLine } from '../../machines/trace/format.ts';
import type { Replay } from '../../machines/trace/replay.ts';
import { waysOf } from '../../machines/trace/ways.ts';
import type { ActorFacts, Facts, Kind, LineFacts, MachineFacts } from '../trace-page/facts.ts';
import { visible } from './terminal.ts';

/** Facts of a trace that was read and replayed. */
export function factsOf(lines: readonly TraceLine[], replay: Replay): Facts {
  const { actors, lanes, placeOf } = actorsOf(lines);
  const kinds = new Map<string, { readonly kind: Kind; readonly place: number }>();
  const placed = lines.map((line): LineFacts => {
    const { machine, version, event, before, after, actions } = line;
    const key = JSON.stringify([machine, version, event.type, before, after, actions]);
    const known = kinds.get(key) ?? { kind: kindOf(line), place: kinds.size };
    kinds.set(key, known);
    return [placeOf(line), known.place, shown(event.payload)];
  });
  return {
    machines: [...new Set(lines.map(({ machine }) => machine))].flatMap(machineOf),
    actors,
    kinds: [...kinds.values()].map(({ kind }) => kind),
    lines: placed,
    lanes,
    differences: replay.ok ? [] : replay.differences.map(({ line, why }) => ({ line, why: visible(why) })),
  };
}

function kindOf(line: TraceLine): Kind {
  const { machine, version, event, before, after, actions } = line;
  return shown({ machine, version, type: event.type, before, after, actions, ways: waysOf(line) });
}

function machineOf(id: string): MachineFacts[] {
  const machine = Object.hasOwn(traced, id) ? traced[id]?.machine : undefined;
  if (machine === undefined) return [];
  const states = below(machine.root).map((node) => {
    return { name: nameOf(node), holds: metaOf(node).holds, permits: permitsOf(node) };
  });
  return [{ id, subject: SUBJECTS[id] ?? '', states }];
}

const keyOf = ({ machine, actor }: TraceLine): string => JSON.stringify([machine, actor]);

/** Actors in the order of their first lines. Each has the lowest lane that is free from its first line to its last. */
function actorsOf(lines: readonly TraceLine[]): {
  actors: ActorFacts[];
  lanes: number;
  placeOf: (line: TraceLine) => number;
} {
  const spans = new Map<string, { line: TraceLine; first: number; last: number; place: number }>();
  for (const [index, line] of lines.entries()) {
    const span = spans.get(keyOf(line));
    if (span === undefined) spans.set(keyOf(line), { line, first: index, last: index, place: spans.size });
    else span.last = index;
  }
  const busyUntil: number[] = [];
  const actors = [...spans.values()].map(({ line, first, last }) => {
    const free = busyUntil.findIndex((until) => until < first);
    const lane = free === -1 ? busyUntil.length : free;
    busyUntil[lane] = last;
    return { name: visible(line.actor), machine: visible(line.machine), lane, first, last };
  });
  return { actors, lanes: busyUntil.length, placeOf: (line) => spans.get(keyOf(line))?.place ?? 0 };
}

/** A value with every text in it written out, names of fields too. */
function shown<Value>(value: Value): Value {
  // Texts become texts and everything keeps its shape, so the type of the value is the type of the answer.
  return plain(value as Json) as Value;
}

function plain(value: Json): Json {
  if (typeof value === 'string') return visible(value);
  if (typeof value !== 'object' || value === null) return value;
  if (isList(value)) return value.map(plain);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [visible(key), plain(inner)]));
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
