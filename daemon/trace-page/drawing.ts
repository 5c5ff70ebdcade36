/*
 * Lights a path in the diagram of a machine: where the actor is, where it was, and the way of the last step. Diagrams are part of the
 * page; they carry `data-state`, `data-label` and `data-way` (helpers/build/diagram/svg.ts).
 */
import { namesIn } from '../../machines/shape.ts';
import type { Way } from '../../machines/trace/ways.ts';
import type { Kind } from './facts.ts';

const MARKS = ['now', 'been', 'way', 'past'];

/** Shows the diagram of one machine, if the page has it, and says whether it does. */
export function showDiagram(frame: HTMLElement, machine: string): SVGElement | undefined {
  let shown: SVGElement | undefined;
  for (const svg of frame.querySelectorAll<SVGElement>('svg')) {
    const isWanted = svg.dataset['machine'] === machine;
    svg.style.display = isWanted ? '' : 'none';
    if (isWanted) shown = svg;
  }
  return shown;
}

/** Lights the path of an actor: `before` are its earlier lines, `last` is the one that is looked at. */
export function light(svg: SVGElement, before: readonly Kind[], last: Kind): void {
  for (const element of svg.querySelectorAll(MARKS.map((mark) => `.${mark}`).join(',')))
    element.classList.remove(...MARKS);
  const past = new Set<Kind>(before);
  for (const kind of past) {
    for (const state of namesIn(kind.after.value)) mark(svg, 'been', 'data-state', state);
    for (const way of kind.ways) markWay(svg, 'past', way);
  }
  for (const way of last.ways) {
    mark(svg, 'been', 'data-state', way.from);
    markWay(svg, 'way', way);
  }
  const now = namesIn(last.after.value);
  for (const state of now) mark(svg, 'now', 'data-state', state);
  if (last.before === null) for (const state of [now[0], last.ways[0]?.from]) markStart(svg, state);
}

/** Scrolls a frame so that the innermost of the states that stand is in its middle. */
export function centre(frame: HTMLElement, svg: SVGElement): void {
  const now = [...svg.querySelectorAll('.now')].at(-1);
  if (now === undefined) return;
  const [inner, outer] = [now.getBoundingClientRect(), frame.getBoundingClientRect()];
  frame.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
  frame.scrollTop += inner.top + inner.height / 2 - (outer.top + outer.height / 2);
}

function mark(svg: SVGElement, name: string, attribute: string, value: string): void {
  for (const element of svg.querySelectorAll(`[${attribute}]`)) {
    if (element.getAttribute(attribute) === value) element.classList.add(name);
  }
}

/** Marks a label that tells the event, with its lines from the one state and to the other. */
function markWay(svg: SVGElement, name: string, { from, event, to }: Way): void {
  const type = event === '' ? 'always' : event;
  for (const label of svg.querySelectorAll<SVGElement>('.m-label')) {
    if (label.dataset['events']?.split(' ').includes(type) !== true) continue;
    const number = label.dataset['label'];
    const lines = [...svg.querySelectorAll<SVGElement>('[data-way]')].filter(
      ({ dataset }) => dataset['label'] === number,
    );
    const into = lines.filter(({ dataset }) => dataset['way'] === 'in');
    const source = into.filter(({ dataset }) => dataset['of'] === from);
    const target = lines.filter(({ dataset }) => dataset['way'] === 'out' && dataset['of'] === to);
    const isFrom = from === '' ? into.length === 0 : source.length > 0;
    if (isFrom && target.length > 0) for (const element of [label, ...source, ...target]) element.classList.add(name);
  }
}

function markStart(svg: SVGElement, state: string | undefined): void {
  for (const line of svg.querySelectorAll<SVGElement>('[data-way="start"]')) {
    if (line.dataset['of'] === state) line.classList.add('way');
  }
}
