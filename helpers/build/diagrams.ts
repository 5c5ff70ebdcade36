/*
 * docs/machines/<id>.svg: the diagram of each machine, drawn from the machine itself. Written by `npm run docs`, compared by the check.
 */
import { traced } from '../../machines/registry.ts';
import { SUBJECTS } from '../../machines/shape.ts';
import { graphOf } from './diagram/graph.ts';
import { every, layOut } from './diagram/layout.ts';
import { svgOf } from './diagram/svg.ts';

/** SVG of one machine by its id. Rejects for a machine that the registry does not have. */
export async function render(id: string): Promise<string> {
  const row = traced[id];
  if (row === undefined) throw new RangeError(`${id} is no machine`);
  const graph = graphOf(row.machine);
  const ends = every(graph.boxes).filter(({ isFinal }) => isFinal);
  const about = [
    SUBJECTS[id] ?? '',
    `${every(graph.boxes).length} states, among them ${ends.length === 0 ? 'no end' : `the ends ${ends.map(({ title }) => title).join(', ')}`}.`,
    'An event stands between the states that it leads from and those that it leads to.',
    'The same as tables: machines/STATES.md.',
  ].join(' ');
  return svgOf(id, altOf(id), about, await layOut(graph));
}

/** What a reader is told who does not see the diagram. */
export function altOf(id: string): string {
  return `Diagram of the machine ${id}: its states, and the events that lead from one to the next`;
}
