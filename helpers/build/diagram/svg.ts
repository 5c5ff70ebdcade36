/*
 * A laid out diagram as SVG. Colours are custom properties: light or dark as the reader's system says, or those that a page around it
 * sets (`--machine-ink` and the others). Every state carries `data-state`, every label `data-label`, every line both, so that a page
 * can light a path without knowing how it was drawn.
 */
import { eventName } from '../../../machines/shape.ts';
import { linesOf } from './graph.ts';
import type { Box, Label } from './graph.ts';
import { CHARACTER, FONT, LINE, TITLE } from './layout.ts';
import type { Layout, Line, Placed, Point } from './layout.ts';

/** Colours on a light ground. */
export const LIGHT = {
  ink: '#1f2733',
  quiet: '#5b6675',
  line: '#77818f',
  ground: '#ffffff',
  box: '#eef2f7',
  group: '#f8fafc',
  end: '#e6f2ea',
};
/** Colours on a dark one. */
export const DARK = {
  ink: '#e8ecf2',
  quiet: '#a7b1bf',
  line: '#7d8898',
  ground: '#14181f',
  box: '#252c37',
  group: '#1a2029',
  end: '#1d3327',
};

const properties = (colours: Readonly<Record<string, string>>): string =>
  Object.entries(colours)
    .map(([name, value]) => `--m-${name}:var(--machine-${name},${value})`)
    .join(';');

/** From the left edge of a box to its text, and from its top to the line that its title stands on. */
const EDGE = 11;
const BASE = 18.5;

/** Style of every diagram; the same in each, so that a page that holds several needs it once. */
export const STYLE = [
  `.machine{${properties(LIGHT)};font:${FONT}px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}`,
  `@media (prefers-color-scheme:dark){.machine{${properties(DARK)}}}`,
  '.m-ground{fill:var(--m-ground)}',
  '.m-state>rect{fill:var(--m-box);stroke:var(--m-line);stroke-width:1.2}',
  '.m-group>rect{fill:var(--m-group)}',
  '.m-end>rect{fill:var(--m-end)}',
  '.m-state>text{fill:var(--m-ink);font-weight:600}',
  '.m-state>.m-again{fill:var(--m-quiet);font-weight:400}',
  '.m-label>rect{fill:var(--m-ground);stroke:var(--m-line);stroke-width:.8;stroke-dasharray:2 2}',
  '.m-label>text{fill:var(--m-quiet)}',
  '.m-line{fill:none;stroke:var(--m-line);stroke-width:1.3}',
  '.m-head,.m-start{fill:var(--m-line);stroke:none}',
].join('\n');

/** The SVG of one machine; `title` and `about` are what a screen reader says. */
export function svgOf(id: string, title: string, about: string, layout: Layout): string {
  const { width, height } = layout;
  const prefix = `machine-${id}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="machine" id="${prefix}" data-machine="${id}" role="img" aria-labelledby="${prefix}-title ${prefix}-about" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<title id="${prefix}-title">${escaped(title)}</title>`,
    `<desc id="${prefix}-about">${escaped(about)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect class="m-ground" width="${width}" height="${height}"/>`,
    ...layout.boxes.filter(isGroup).map((box) => groupOf(prefix, box, layout.lines)),
    ...layout.lines.map(lineOf),
    ...layout.starts.map(({ x, y }) => `<circle class="m-start" cx="${x}" cy="${y}" r="6"/>`),
    ...layout.boxes.filter((box) => !isGroup(box)).map((box) => boxOf(prefix, box)),
    ...layout.labels.map(labelOf),
    '</svg>',
    '',
  ].join('\n');
}

const isGroup = ({ value }: Placed<Box>): boolean => value.boxes.length > 0;

function boxOf(prefix: string, placed: Placed<Box>): string {
  const { x, y, width, value: box } = placed;
  const kind = box.isFinal ? ' m-end' : '';
  const anchor =
    box.again.length === 0 ? ` text-anchor="middle" x="${round(x + width / 2)}"` : ` x="${round(x + EDGE)}"`;
  return [
    `<g class="m-state${kind}" ${namesOf(prefix, box)}>${rectOf(placed, 0)}${box.isFinal ? rectOf(placed, 3) : ''}`,
    `<text${anchor} y="${round(y + BASE)}">${escaped(box.title)}</text>${againOf(placed)}</g>`,
  ].join('');
}

/** A state with states in it; its title stands where no line crosses it. */
function groupOf(prefix: string, placed: Placed<Box>, lines: readonly Line[]): string {
  const { y, value: box } = placed;
  const x = titlePlace(placed, box.title.length * CHARACTER, lines);
  return `<g class="m-state m-group" ${namesOf(prefix, box)}>${rectOf(placed, 0)}<text x="${round(x)}" y="${round(y + BASE)}">${escaped(box.title)}</text>${againOf(placed)}</g>`;
}

function namesOf(prefix: string, { state }: Box): string {
  return `id="${prefix}-${state.replaceAll('.', '-')}" data-state="${state}"`;
}

function rectOf({ x, y, width, height }: Placed<Box>, inset: number): string {
  const [wide, high] = [round(width - 2 * inset), round(height - 2 * inset)];
  return `<rect x="${round(x + inset)}" y="${round(y + inset)}" width="${wide}" height="${high}" rx="${8 - inset}"/>`;
}

function againOf({ x, y, value: { again } }: Placed<Box>): string {
  const at = (index: number): string => `x="${round(x + EDGE)}" y="${round(y + TITLE + 13 + index * LINE)}"`;
  return again
    .map((event, index) => `<text class="m-again" ${at(index)}>↻ ${escaped(eventName(event))}</text>`)
    .join('');
}

/** The leftmost place for a title of this width in the head of a group that no vertical line goes through. */
function titlePlace({ x, y, width }: Placed<Box>, wide: number, lines: readonly Line[]): number {
  const crossings = lines.flatMap(({ points }) => {
    const pairs = points.slice(1).map((point, index) => [points[index] ?? point, point] as const);
    const through = pairs.filter(([from, to]) => Math.min(from.y, to.y) < y + TITLE && Math.max(from.y, to.y) > y + 6);
    return through.flatMap(([from, to]) => [from.x, to.x]);
  });
  for (let place = x + EDGE; place + wide < x + width - 6; place += 2) {
    if (crossings.every((at) => at < place - 7 || at > place + wide + 7)) return place;
  }
  return x + EDGE;
}

function labelOf({ x, y, width, height, value: label }: Placed<Label>, index: number): string {
  const middle = round(x + width / 2);
  const text = linesOf(label).map(
    (line, at) => `<tspan x="${middle}" y="${round(y + 17 + at * LINE)}">${escaped(line)}</tspan>`,
  );
  const events = label.events.map((event) => (event === '' ? 'always' : event)).join(' ');
  return `<g class="m-label" data-label="${index}" data-events="${events}"><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="5"/><text text-anchor="middle">${text.join('')}</text></g>`;
}

function lineOf({ kind, state, label, points }: Line): string {
  const path = points.map(({ x, y }, index) => `${index === 0 ? 'M' : 'L'}${x} ${y}`).join('');
  const about = kind === 'start' ? '' : ` data-label="${label}"`;
  const head = `<path class="m-head" d="${headOf(points, kind === 'in' ? 5 : 8)}"/>`;
  return `<g data-way="${kind}" data-of="${state}"${about}><path class="m-line" d="${path}"/>${head}</g>`;
}

/** An arrow's head at the end of a line, as long as it is wide. */
function headOf(points: readonly Point[], size: number): string {
  const [end, before] = [points.at(-1), points.at(-2)];
  if (end === undefined || before === undefined) return '';
  const length = Math.hypot(end.x - before.x, end.y - before.y);
  const [dx, dy] = [(end.x - before.x) / length, (end.y - before.y) / length];
  const [backX, backY] = [end.x - dx * size, end.y - dy * size];
  const [sideX, sideY] = [(-dy * size) / 2, (dx * size) / 2];
  return `M${end.x} ${end.y}L${round(backX + sideX)} ${round(backY + sideY)}L${round(backX - sideX)} ${round(backY - sideY)}Z`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
