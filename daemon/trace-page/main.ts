/*
 * A recorded trace, stepped through in a browser from one file: no network, no storage, nothing but this page. Bundled by
 * helpers/build/trace-page.ts, filled by daemon/cli/trace-view.ts.
 *
 * THREAT: a trace comes from a stranger and is opened by a person beside other pages of theirs. The policy of the page forbids every
 * script and style but its own two and every request; texts of the trace become text, never markup (test/daemon/cli/trace-view.test.ts).
 */
import { centre, light, showDiagram } from './drawing.ts';
import { counted, make, part } from './elements.ts';
import type { Facts, Kind } from './facts.ts';
import { showStep } from './step.ts';
import { makeTimeline } from './timeline.ts';

// The program that wrote this page wrote the facts too, by the same type.
const facts = JSON.parse(part('trace', HTMLScriptElement).text) as Facts;
const everything = facts.lines.map((_, index) => index);
const byActor = new Map<number, number[]>();
for (const [index, [actor]] of facts.lines.entries()) {
  const lines = byActor.get(actor);
  if (lines === undefined) byActor.set(actor, [index]);
  else lines.push(index);
}

const [at, actors] = [part('at', HTMLInputElement), part('actor', HTMLSelectElement)];
const [frame, list] = [part('drawing', HTMLElement), part('lines', HTMLElement)];
const ways = ['first', 'back', 'next', 'last'] as const;
type Step = (typeof ways)[number];

let order: readonly number[] = everything;
let chosen = 0;
const timeline = makeTimeline(list, facts, choose);

function choose(line: number): void {
  chosen = line;
  timeline.show(order, chosen);
  at.value = String(chosen + 1);
  const place = order.indexOf(chosen);
  part('first', HTMLButtonElement).disabled = place <= 0;
  part('back', HTMLButtonElement).disabled = place <= 0;
  part('next', HTMLButtonElement).disabled = place >= order.length - 1;
  part('last', HTMLButtonElement).disabled = place >= order.length - 1;
  showStep(facts, chosen);
  showPath();
}

function showPath(): void {
  const [actor = 0, last = 0] = facts.lines[chosen] ?? [];
  const kind = facts.kinds[last];
  if (kind === undefined) return;
  const known = facts.machines.find(({ id }) => id === kind.machine);
  part('drawing-title', HTMLElement).textContent = `Machine ${kind.machine}`;
  part('subject', HTMLElement).textContent =
    known?.subject ?? 'This program has no machine of that name, so there is no diagram.';
  const svg = showDiagram(frame, kind.machine);
  frame.hidden = svg === undefined;
  if (svg === undefined) return;
  light(svg, earlier(actor), kind);
  centre(frame, svg);
}

/** What an actor did before the chosen line, since it last began. */
function earlier(actor: number): Kind[] {
  const kinds: Kind[] = [];
  for (const index of byActor.get(actor) ?? []) {
    if (index >= chosen) break;
    const kind = facts.kinds[facts.lines[index]?.[1] ?? 0];
    if (kind === undefined) continue;
    if (kind.before === null) kinds.length = 0;
    kinds.push(kind);
  }
  return facts.kinds[facts.lines[chosen]?.[1] ?? 0]?.before === null ? [] : kinds;
}

function go(step: Step | 'far back' | 'far next'): void {
  const place = order.indexOf(chosen);
  const end = order.length - 1;
  const goal = {
    first: 0,
    back: place - 1,
    next: place + 1,
    last: end,
    'far back': place - 10,
    'far next': place + 10,
  };
  const line = order[Math.min(end, Math.max(0, goal[step]))];
  if (line !== undefined && line !== chosen) choose(line);
}

const KEYS: { readonly [key: string]: Parameters<typeof go>[0] } = {
  ArrowLeft: 'back',
  ArrowRight: 'next',
  Home: 'first',
  End: 'last',
};
const LIST_KEYS: typeof KEYS = { ArrowUp: 'back', ArrowDown: 'next', PageUp: 'far back', PageDown: 'far next' };

addEventListener('keydown', (event) => {
  const { target, key } = event;
  // These keys have a meaning of their own in a field, and in the diagram they scroll it.
  const isOwn = target === at || target === actors || target === frame;
  if (isOwn || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const step = KEYS[key] ?? (target === list ? LIST_KEYS[key] : undefined);
  if (step === undefined) return;
  event.preventDefault();
  go(step);
});

for (const way of ways) part(way, HTMLButtonElement).addEventListener('click', () => go(way));
at.max = String(facts.lines.length);
at.addEventListener('change', () => {
  const wanted = Math.round(Number(at.value)) - 1;
  const near = order.findLast((line) => line <= wanted) ?? order[0];
  choose(near ?? 0);
});
actors.append(make('option', { value: '' }, facts.actors.length === 1 ? 'the only one' : `all ${facts.actors.length}`));
for (const [index, { name, machine }] of facts.actors.entries()) {
  actors.append(make('option', { value: String(index) }, name === machine ? name : `${name} (${machine})`));
}
actors.addEventListener('change', () => {
  order = actors.value === '' ? everything : (byActor.get(Number(actors.value)) ?? everything);
  choose(order.findLast((line) => line <= chosen) ?? order[0] ?? 0);
});
part('fit', HTMLButtonElement).addEventListener('click', ({ currentTarget }) => {
  const isFitted = frame.classList.toggle('fitted');
  if (currentTarget instanceof HTMLElement) currentTarget.setAttribute('aria-pressed', String(isFitted));
  showPath();
});
const counts = `${counted(facts.lines.length, 'line')} of ${counted(facts.actors.length, 'actor')}.`;
const [first] = facts.differences;
part('summary', HTMLElement).textContent =
  first === undefined
    ? `${counts} Replayed by this program: every state and every action is the same.`
    : `${counts} Replayed by this program: it does otherwise in ${counted(facts.differences.length, 'place')}, first at line ${first.line}.`;
choose(0);
