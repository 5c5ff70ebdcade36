/*
 * Places for the boxes and labels of a diagram, found by ELK's layered algorithm. Each machine is laid out in both directions, and
 * the one that a page can show larger is kept. The same graph always gets the same places.
 */
import elk from 'elkjs/lib/elk.bundled.js';
import type { ElkNode } from 'elkjs/lib/elk-api.js';
import { linesOf } from './graph.ts';
import type { Box, Graph, Label } from './graph.ts';

/** Sizes in CSS pixels at the diagram's own scale; a character of the fixed-width fonts is at most 0.61 of the size wide. */
export const FONT = 13;
export const LINE = 17;
export const CHARACTER = FONT * 0.61;
const PAD = 9;
/** Height of a state's title. */
export const TITLE = 27;
const START = 12;
/** Largest width at which a page of 1280 pixels still shows text of 11. */
const WIDEST = (1232 * FONT) / 11;

export type Point = { readonly x: number; readonly y: number };
export type Placed<Value> = Point & { readonly width: number; readonly height: number; readonly value: Value };
/** A line: from a state to a label (`in`), from a label to a state (`out`), or from the mark of the beginning (`start`). */
export type Line = {
  readonly kind: 'in' | 'out' | 'start';
  readonly state: string;
  readonly label: number;
  readonly points: readonly Point[];
};
/** A diagram with a place for everything; boxes outer before inner. */
export type Layout = {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Placed<Box>[];
  readonly labels: readonly Placed<Label>[];
  readonly starts: readonly Point[];
  readonly lines: readonly Line[];
};

type Direction = 'DOWN' | 'RIGHT';

const OPTIONS = {
  'elk.algorithm': 'layered',
  'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
  'elk.json.shapeCoords': 'ROOT',
  'elk.json.edgeCoords': 'ROOT',
  'elk.edgeRouting': 'ORTHOGONAL',
  'elk.layered.nodePlacement.strategy': 'NETWORK_SIMPLEX',
  'elk.layered.considerModelOrder.strategy': 'PREFER_NODES',
  'elk.layered.cycleBreaking.strategy': 'DEPTH_FIRST',
  'elk.layered.thoroughness': '40',
  'elk.randomSeed': '1',
  'elk.spacing.nodeNode': '14',
  'elk.spacing.edgeEdge': '9',
  'elk.spacing.edgeNode': '11',
  'elk.layered.spacing.nodeNodeBetweenLayers': '22',
  'elk.layered.spacing.edgeNodeBetweenLayers': '12',
  'elk.layered.spacing.edgeEdgeBetweenLayers': '9',
  'elk.padding': '[top=12,left=12,bottom=12,right=12]',
};

/** Lays a graph out, downwards or to the right, whichever a page shows larger; downwards where both fit. */
export async function layOut(graph: Graph): Promise<Layout> {
  const [down, right] = await Promise.all([place(graph, 'DOWN'), place(graph, 'RIGHT')]);
  const cost = ({ width, height }: Layout): number => Math.max(1, width / WIDEST) * 4000 + height;
  return cost(down) <= cost(right) ? down : right;
}

async function place(graph: Graph, direction: Direction): Promise<Layout> {
  const root: ElkNode = {
    id: '',
    layoutOptions: { ...OPTIONS, 'elk.direction': direction },
    children: nodesIn('', graph.boxes, graph, direction),
    edges: [
      ...graph.labels.flatMap(({ from, to }, index) => [
        ...from.map((state) => edge('in', state, index)),
        ...to.map((state) => edge('out', state, index)),
      ]),
      ...every(graph.boxes)
        .filter(({ isInitial }) => isInitial)
        .map(({ state }) => edge('start', state, -1)),
    ],
  };
  return read(await new elk.default().layout(root), graph);
}

/** Every box, outer before inner. */
export function every(boxes: readonly Box[]): Box[] {
  return boxes.flatMap((box) => [box, ...every(box.boxes)]);
}

const outerOf = (state: string): string => state.split('.').slice(0, -1).join('.');

/** The innermost state around all others, where a label belongs. */
function around({ from, to }: Label): string {
  const paths = [...from, ...to].map((state) => outerOf(state).split('.'));
  const [first = []] = paths;
  const shared = first.findIndex((key, at) => paths.some((path) => path[at] !== key));
  return (shared === -1 ? first : first.slice(0, shared)).join('.');
}

function nodesIn(outer: string, boxes: readonly Box[], graph: Graph, direction: Direction): ElkNode[] {
  const labels = graph.labels.flatMap((label, index): ElkNode[] => {
    if (around(label) !== outer) return [];
    const lines = linesOf(label);
    const width = Math.max(...lines.map((line) => line.length)) * CHARACTER + 2 * PAD;
    return [{ id: `label ${index}`, width, height: lines.length * LINE + 8 }];
  });
  const starts = boxes.filter(({ isInitial }) => isInitial);
  return [
    ...starts.map(({ state }) => ({ id: `start ${state}`, width: START, height: START })),
    ...boxes.map((box): ElkNode => {
      const head = TITLE + box.again.length * LINE + (box.again.length === 0 ? 0 : 6);
      const longest = Math.max(box.title.length, ...box.again.map((event) => event.length + 2));
      const width = longest * CHARACTER + 2 * PAD + 4;
      if (box.boxes.length === 0) return { id: `state ${box.state}`, width, height: head };
      const layoutOptions = {
        'elk.direction': direction,
        'elk.padding': `[top=${head + 10},left=12,bottom=12,right=12]`,
        'elk.nodeSize.constraints': 'MINIMUM_SIZE',
        'elk.nodeSize.minimum': `(${width},${head + 20})`,
      };
      return { id: `state ${box.state}`, layoutOptions, children: nodesIn(box.state, box.boxes, graph, direction) };
    }),
    ...labels,
  ];
}

function edge(kind: Line['kind'], state: string, label: number): { id: string; sources: string[]; targets: string[] } {
  const node = `state ${state}`;
  const other = kind === 'start' ? `start ${state}` : `label ${label}`;
  const [source, target] = kind === 'in' ? [node, other] : [other, node];
  return { id: `${kind}|${state}|${label}`, sources: [source], targets: [target] };
}

function read(root: ElkNode, graph: Graph): Layout {
  const places = new Map<string, Placed<undefined>>();
  const note = (node: ElkNode): void => {
    const { x = 0, y = 0, width = 0, height = 0 } = node;
    places.set(node.id, { x: tenth(x), y: tenth(y), width: tenth(width), height: tenth(height), value: undefined });
    for (const child of node.children ?? []) note(child);
  };
  note(root);
  const at = <Value>(id: string, value: Value): Placed<Value> => {
    const placed = places.get(id);
    if (placed === undefined) throw new Error(`the layout lost ${id}`);
    return { ...placed, value };
  };
  const boxes = every(graph.boxes);
  return {
    width: Math.ceil(root.width ?? 0),
    height: Math.ceil(root.height ?? 0),
    boxes: boxes.map((box) => at(`state ${box.state}`, box)),
    labels: graph.labels.map((label, index) => at(`label ${index}`, label)),
    starts: boxes
      .filter(({ isInitial }) => isInitial)
      .map(({ state }) => at(`start ${state}`, undefined))
      .map(({ x, y }) => ({ x: x + START / 2, y: y + START / 2 })),
    lines: (root.edges ?? []).map(({ id, sections = [] }) => {
      const [kind = '', state = '', label = ''] = id.split('|');
      const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
        startPoint,
        ...bendPoints,
        endPoint,
      ]);
      // The id was made by `edge`, which takes these three kinds.
      return {
        kind: kind as Line['kind'],
        state,
        label: Number(label),
        points: points.map(({ x, y }) => ({ x: tenth(x), y: tenth(y) })),
      };
    }),
  };
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}
