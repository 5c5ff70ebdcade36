/* The panel of one line: in words, what holds after it, and everything that it says. */
import { eventName, namesIn } from '../../machines/shape.ts';
import { stateWords, tell } from '../../machines/trace/tell.ts';
import { make, part } from './elements.ts';
import type { ActorFacts, Facts, Kind, LineFacts } from './facts.ts';

/** Shows the line at a place of the trace. */
export function showStep(facts: Facts, index: number): void {
  const line = facts.lines[index];
  const actor = facts.actors[line?.[0] ?? 0];
  const kind = facts.kinds[line?.[1] ?? 0];
  if (line === undefined || actor === undefined || kind === undefined) return;
  part('step-title', HTMLElement).textContent = `Line ${index + 1} of ${facts.lines.length}: ${actor.name}`;
  const { before, after, actions, type } = kind;
  part('told', HTMLElement).textContent = tell({ event: { type, payload: line[2] }, before, after, actions });
  showDifference(facts, index);
  part('states', HTMLElement).replaceChildren(
    ...listed([
      ['Before', stateOf(before)],
      ['After', stateOf(after)],
    ]),
  );
  part('holds', HTMLElement).replaceChildren(...holdsOf(facts, kind));
  part('facts', HTMLElement).replaceChildren(...rowsOf(line, actor, kind));
}

function showDifference({ differences }: Facts, index: number): void {
  const place = part('difference', HTMLElement);
  const found = differences.find(({ line }) => line === index + 1);
  place.hidden = found === undefined;
  place.textContent = found === undefined ? '' : `The machines of this program do otherwise here: ${found.why}.`;
}

function holdsOf({ machines }: Facts, { machine, after }: Kind): Node[] {
  const known = machines.find(({ id }) => id === machine);
  if (known === undefined) return [make('p', {}, 'This program has no machine of that name.')];
  return namesIn(after.value).flatMap((name) => {
    const state = known.states.find((one) => one.name === name);
    const permits = state?.permits.join(', ') ?? '';
    const said = state?.holds ?? 'This program’s machine has no such state.';
    return [
      make(
        'div',
        {},
        make('h3', {}, name),
        make('p', {}, said),
        ...(state === undefined
          ? []
          : [make('p', { class: 'quiet' }, `May be asked for: ${permits === '' ? 'nothing' : permits}`)]),
      ),
    ];
  });
}

function rowsOf([, , payload]: LineFacts, actor: ActorFacts, kind: Kind): Node[] {
  return listed([
    ['Actor', make('code', {}, actor.name)],
    ['Machine', make('code', {}, `${kind.machine}, version ${kind.version}`)],
    ['Event', make('code', {}, kind.type)],
    ['As said', make('span', {}, eventName(kind.type))],
    ['Payload', make('pre', {}, JSON.stringify(payload, undefined, 2))],
    ['Actions', make('pre', {}, kind.actions.length === 0 ? 'none' : kind.actions.join('\n'))],
  ]);
}

function stateOf(at: Kind['after'] | null): HTMLElement {
  if (at === null) return make('span', {}, 'nothing: it begins');
  const status = { active: '', done: ' (its end)', error: ' (broken)' }[at.status];
  return make('code', {}, stateWords(at.value) + status);
}

function listed(rows: readonly (readonly [string, HTMLElement])[]): Node[] {
  return rows.flatMap(([name, value]) => [make('dt', {}, name), make('dd', {}, value)]);
}
