import { eventName } from '../shape.ts';
import type { Json, TraceLine, TraceState } from './format.ts';
import { formatLine } from './format.ts';
import { gist, paired } from './pair.ts';
import type { Pair } from './pair.ts';
import { stateWords } from './tell.ts';

/**
 * Explains in words how the second trace differs from the first, one sentence each, in order; empty when they are equal, and only
 * then. What is true of the whole trace is said once, at the head: another version of a machine, an actor that is called otherwise.
 */
export function explain(first: readonly TraceLine[], second: readonly TraceLine[]): string[] {
  const names = renamed(first, second);
  const versions = new Map<string, string>();
  const renamedSecond = second.map((line) => ({ ...line, actor: names.get(line.actor) ?? line.actor }));
  const pairs = paired(first, renamedSecond);
  const moves = movedOf(pairs);
  const sentences = pairs.flatMap((pair) => {
    const [left, right] = pair;
    if (left !== undefined && right !== undefined) return changes(left, right, versions);
    return alone(left, right, moves);
  });
  const head = [
    ...[...names].map(
      ([is, was]) => `the actor ${was} of the first is called ${is} in the second, as far as can be told`,
    ),
    ...versions.values(),
  ];
  const found = [...head, ...sentences];
  const isEqual = first.length === second.length && first.every((line, index) => same(line, second[index]));
  if (found.length > 0 || isEqual) return found;
  return ['every actor does the same, but their lines are numbered or come in another order among each other'];
}

/** Actors of the second trace that the first has by another name, to that name: those of one machine that only one of the two has. */
function renamed(first: readonly TraceLine[], second: readonly TraceLine[]): Map<string, string> {
  const [before, now] = [actorsOf(first), actorsOf(second)];
  const names = new Map<string, string>();
  for (const machine of new Set(before.values())) {
    const gone = [...before].filter(([actor, of]) => of === machine && !now.has(actor));
    const come = [...now].filter(([actor, of]) => of === machine && !before.has(actor));
    if (gone.length !== come.length) continue;
    for (const [index, [actor]] of come.entries()) names.set(actor, gone[index]?.[0] ?? actor);
  }
  return names;
}

function actorsOf(lines: readonly TraceLine[]): Map<string, string> {
  return new Map(lines.map(({ actor, machine }) => [actor, machine]));
}

/** Lines that both traces have at places that cannot be paired in order: of the first to those of the second. */
function movedOf(pairs: readonly Pair[]): Map<TraceLine, TraceLine> {
  const come = new Map<string, TraceLine[]>();
  for (const [left, right] of pairs) {
    if (left !== undefined || right === undefined) continue;
    come.set(gist(right), [...(come.get(gist(right)) ?? []), right]);
  }
  const moves = new Map<TraceLine, TraceLine>();
  for (const [left, right] of pairs) {
    if (left === undefined || right !== undefined) continue;
    const other = come.get(gist(left))?.shift();
    if (other !== undefined) moves.set(left, other).set(other, left);
  }
  return moves;
}

/** A line without a partner: gone, come, or moved, which is said where the first has it. */
function alone(
  left: TraceLine | undefined,
  right: TraceLine | undefined,
  moves: ReadonlyMap<TraceLine, TraceLine>,
): string[] {
  if (left !== undefined) {
    const other = moves.get(left);
    if (other === undefined)
      return [`line ${left.seq + 1} of the first is missing: ${said(left)} led to ${shown(left.after)}`];
    const way = other.seq > left.seq ? 'later' : 'earlier';
    return [`line ${left.seq + 1} of the first comes ${way}, at line ${other.seq + 1} of the second: ${said(left)}`];
  }
  if (right === undefined || moves.has(right)) return [];
  return [`line ${right.seq + 1} of the second is new: ${said(right)} leads to ${shown(right.after)}`];
}

function changes(left: TraceLine, right: TraceLine, versions: Map<string, string>): string[] {
  if (gist(left) === gist(right)) return [];
  const where =
    left.seq === right.seq ? `line ${left.seq + 1}` : `line ${left.seq + 1} (${right.seq + 1} of the second)`;
  const found: string[] = [];
  if (left.machine !== right.machine) found.push(`it was of machine ${left.machine} and is of ${right.machine}`);
  else if (left.version !== right.version) {
    const sentence = `machine ${left.machine}: version ${left.version} became ${right.version}`;
    versions.set(sentence, sentence);
  }
  found.push(...values('its ', left.event.payload, right.event.payload));
  found.push(...states('it came in', 'comes in', left.before, right.before));
  found.push(...states('it led to', 'leads to', left.after, right.after));
  found.push(...asked(left.actions, right.actions));
  const isOnlyVersion = gist({ ...left, version: right.version }) === gist(right);
  if (found.length === 0 && !isOnlyVersion) found.push('its fields come in another order');
  return found.map((change) => `${where}, ${said(left)}: ${change}`);
}

/** Differences of two values by the path of a field. */
function values(path: string, was: Json | undefined, is: Json | undefined): string[] {
  if (JSON.stringify(was) === JSON.stringify(is)) return [];
  if (isObject(was) && isObject(is)) {
    const fields = new Set([...Object.keys(was), ...Object.keys(is)]);
    const begin = path === 'its ' ? path : `${path}.`;
    return [...fields].flatMap((field) => values(`${begin}${field}`, was[field], is[field]));
  }
  return [`${path} was ${JSON.stringify(was) ?? 'absent'} and is ${JSON.stringify(is) ?? 'absent'}`];
}

function states(was: string, is: string, left: TraceState | null, right: TraceState | null): string[] {
  return shown(left) === shown(right) ? [] : [`${was} ${shown(left)} and ${is} ${shown(right)}`];
}

function asked(left: readonly string[], right: readonly string[]): string[] {
  const gone = left.filter((action) => !right.includes(action));
  const come = right.filter((action) => !left.includes(action));
  if (gone.length + come.length === 0) {
    return left.join('\n') === right.join('\n')
      ? []
      : [`it asks for the same in another order or number: ${right.join(', ')}`];
  }
  return [
    ...(gone.length > 0 ? [`it no longer asks for ${gone.join(', ')}`] : []),
    ...(come.length > 0 ? [`it now asks for ${come.join(', ')}`] : []),
  ];
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function same(left: TraceLine, right: TraceLine | undefined): boolean {
  return right !== undefined && formatLine(left) === formatLine(right);
}

function said(line: TraceLine): string {
  return `${eventName(line.event.type)} at ${line.actor}`;
}

/** A state as a reader says it; whether it goes on is said where it does not. */
function shown(state: TraceState | null): string {
  if (state === null) return 'nothing';
  const status = { active: '', done: ' (its end)', error: ' (broken)' }[state.status];
  return `${stateWords(state.value)}${status}`;
}
