/*
 * A trace as Mermaid text: the path of each actor through its states, every arrow with the numbers of its lines. A state diagram and
 * not a sequence: a trace says what each actor took and in which order, and never who sent it, which a sequence would make up.
 */
import { eventName } from '../shape.ts';
import type { TraceLine } from './format.ts';
import { INIT } from './take.ts';
import { stateWords } from './tell.ts';

/** Most lines that one arrow names; the others are counted. */
const NAMED = 6;

type Arrow = { readonly from: string; readonly to: string; readonly events: Map<string, number[]> };
type Path = { readonly actor: string; readonly states: string[]; readonly arrows: Map<string, Arrow>; end: string };

/** Mermaid `stateDiagram-v2` of a trace: one state for each actor, with those in it that the actor came to. */
export function toMermaid(lines: readonly TraceLine[]): string {
  const paths = new Map<string, Path>();
  for (const line of lines) {
    const key = JSON.stringify([line.machine, line.actor]);
    const path = paths.get(key) ?? { actor: nameOf(line), states: [], arrows: new Map<string, Arrow>(), end: '' };
    paths.set(key, path);
    follow(path, line);
  }
  return ['stateDiagram-v2', ...[...paths.values()].flatMap(drawn), ''].join('\n');
}

function nameOf({ actor, machine }: TraceLine): string {
  return actor === machine ? actor : `${actor} (${machine})`;
}

function follow(path: Path, { seq, event, before, after }: TraceLine): void {
  const [from, to] = [event.type === INIT || before === null ? '' : stateWords(before.value), stateWords(after.value)];
  for (const state of [from, to]) if (state !== '' && !path.states.includes(state)) path.states.push(state);
  const said = from === '' ? '' : eventName(event.type);
  // Mermaid draws every arrow between the same two states over the others, so they share one.
  const key = JSON.stringify([from, to]);
  const arrow = path.arrows.get(key) ?? { from, to, events: new Map<string, number[]>() };
  path.arrows.set(key, arrow);
  arrow.events.set(said, [...(arrow.events.get(said) ?? []), seq + 1]);
  path.end = after.status === 'active' ? '' : to;
}

function drawn({ actor, states, arrows, end }: Path, index: number): string[] {
  const idOf = (state: string): string => (state === '' ? '[*]' : `a${index}s${states.indexOf(state)}`);
  return [
    `  state "${plain(actor)}" as a${index} {`,
    ...states.map((state) => `    state "${plain(state)}" as ${idOf(state)}`),
    ...[...arrows.values()].map((arrow) => `    ${idOf(arrow.from)} --> ${idOf(arrow.to)}: ${labelOf(arrow)}`),
    ...(end === '' ? [] : [`    ${idOf(end)} --> [*]`]),
    '  }',
  ];
}

function labelOf({ events }: Arrow): string {
  const said = [...events].map(([event, lines]) => {
    const named = lines.slice(0, NAMED).join(', ');
    const more = lines.length > NAMED ? ` and ${lines.length - NAMED} more` : '';
    return `${named}${more}${event === '' ? '' : ` ${plain(event)}`}`;
  });
  return said.join('<br/>');
}

/** Text that Mermaid takes as text: whatever could be its syntax becomes a code of a character. */
function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9 .()-]/gu, (character) => `#${character.codePointAt(0) ?? 0};`);
}
