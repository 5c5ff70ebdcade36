/*
 * The timeline: one row a line, one lane an actor. Only the rows that can be seen, and a few around them, are in the document, so
 * that a trace of twenty thousand lines scrolls like one of twenty.
 */
import { eventName } from '../../machines/shape.ts';
import { stateWords } from '../../machines/trace/tell.ts';
import { draw, make } from './elements.ts';
import type { ActorFacts, Facts } from './facts.ts';

/** Height of a row in pixels, as the style says. */
const ROW = 28;
const AROUND = 12;
const LANE = 13;
/** Lanes that have room; further actors share the last one. */
const LANES = 10;

/** What the rest of the page asks of a timeline. */
export type Timeline = {
  /** Shows these lines, in this order, with one of them chosen and in sight. */
  readonly show: (order: readonly number[], chosen: number) => void;
};

/** Makes the timeline in its list; `choose` is told which line a person picked. */
export function makeTimeline(list: HTMLElement, facts: Facts, choose: (line: number) => void): Timeline {
  const lanes = actorsByLane(facts.actors);
  const wrong = new Set(facts.differences.map(({ line }) => line - 1));
  const space = make('div', { role: 'presentation' });
  list.append(space);
  let order: readonly number[] = [];
  let chosen = 0;

  const rowOf = (place: number): HTMLElement => {
    const index = order[place] ?? 0;
    const row = make('div', {
      class: 'row',
      role: 'option',
      id: `line-${index}`,
      'aria-selected': String(index === chosen),
      'aria-posinset': String(place + 1),
      'aria-setsize': String(order.length),
    });
    row.style.top = `${place * ROW}px`;
    row.append(...cellsOf(facts, index, wrong.has(index), lanes));
    row.addEventListener('click', () => choose(index));
    return row;
  };
  const fill = (): void => {
    const from = Math.max(0, Math.floor(list.scrollTop / ROW) - AROUND);
    const to = Math.min(order.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + AROUND);
    const rows: HTMLElement[] = [];
    for (let place = from; place < to; place += 1) rows.push(rowOf(place));
    space.replaceChildren(...rows);
  };
  list.addEventListener('scroll', fill, { passive: true });
  addEventListener('resize', fill);
  return {
    show: (wanted, line) => {
      [order, chosen] = [wanted, line];
      space.style.height = `${order.length * ROW}px`;
      reveal(list, order.indexOf(line) * ROW);
      fill();
      list.setAttribute('aria-activedescendant', `line-${line}`);
    },
  };
}

/** Scrolls a list so far that a row is in sight with some rows around it. */
function reveal(list: HTMLElement, top: number): void {
  const margin = Math.min(3 * ROW, list.clientHeight / 3);
  if (top < list.scrollTop + margin) list.scrollTop = Math.max(0, top - margin);
  const bottom = top + ROW + margin;
  if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}

function cellsOf(facts: Facts, index: number, isWrong: boolean, lanes: readonly ActorFacts[][]): Node[] {
  const [at = 0, place = 0] = facts.lines[index] ?? [];
  const [actor, kind] = [facts.actors[at], facts.kinds[place]];
  if (actor === undefined || kind === undefined) return [];
  const { type, before, after } = kind;
  const isMoved = before === null || stateWords(before.value) !== stateWords(after.value);
  const where = isMoved ? `→ ${stateWords(after.value)}${after.status === 'active' ? '' : ' (end)'}` : '· stays';
  return [
    make('span', { class: 'number' }, String(index + 1)),
    lanesOf(index, actor, lanes),
    ...(isWrong ? [make('span', { class: 'mark' }, '≠ differs')] : []),
    make('span', {}, type === 'xstate.init' ? 'begins' : eventName(type)),
    make('span', { class: 'where' }, facts.actors.length > 1 ? `${where} · ${actor.name}` : where),
  ];
}

/** Every lane in which an actor stands at a line, and a mark in the lane of its own actor. */
function lanesOf(index: number, own: ActorFacts, lanes: readonly ActorFacts[][]): SVGElement {
  const svg = draw('svg', { width: lanes.length * LANE, height: ROW, 'aria-hidden': 'true' });
  for (const [lane, actors] of lanes.entries()) {
    const x = lane * LANE + LANE / 2;
    const standing = actors.find(({ first, last }) => first <= index && index <= last);
    if (standing === undefined) continue;
    const isShared = lane === LANES - 1;
    const y1 = standing.first === index && !isShared ? ROW / 2 : 0;
    const y2 = standing.last === index && !isShared ? ROW / 2 : ROW;
    svg.append(draw('line', { class: 'lane', x1: x, x2: x, y1, y2 }));
  }
  svg.append(draw('circle', { class: 'dot own', cx: laneOf(own) * LANE + LANE / 2, cy: ROW / 2, r: 4.5 }));
  return svg;
}

const laneOf = ({ lane }: ActorFacts): number => Math.min(lane, LANES - 1);

function actorsByLane(actors: readonly ActorFacts[]): ActorFacts[][] {
  const lanes: ActorFacts[][] = [];
  for (const actor of actors) (lanes[laneOf(actor)] ??= []).push(actor);
  return lanes;
}
