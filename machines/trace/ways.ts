/*
 * Which transitions a line of a trace took, found from what the line says alone: its states, its event and its actions. Nothing is
 * run, so that a trace of another version of a machine, or one that somebody made up, can be drawn as well as it fits.
 */
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { traced } from '../registry.ts';
import { actionName, below, nameOf, namesIn } from '../shape.ts';
import type { TraceLine } from './format.ts';
import { INIT } from './take.ts';

/** A transition that led somewhere: names of its states, and the event that its state listens to; `from` is empty for any state. */
export type Way = { readonly from: string; readonly event: string; readonly to: string };

/** Longest chain of transitions that follow at once. */
const CHAIN = 8;

/** Ways of one line in the order in which they were taken; empty where it stayed, was refused, or is of no machine of this program. */
export function waysOf(line: TraceLine): readonly Way[] {
  const machine = Object.hasOwn(traced, line.machine) ? traced[line.machine]?.machine : undefined;
  if (machine === undefined) return [];
  const after = new Set(namesIn(line.after.value));
  if (line.event.type === INIT || line.before === null) return chain(entered(machine.root), after, CHAIN) ?? [];
  const before = new Set(namesIn(line.before.value));
  const sources = below(machine.root).filter((node) => before.has(nameOf(node)));
  for (const source of [...sources.toReversed(), machine.root]) {
    const branches = branchesOf(source, line.event.type);
    if (branches.some((branch) => isRefusalOf(branch, line))) return [];
    for (const branch of branches) {
      const ways = taken(branch, after);
      if (ways !== undefined) return ways;
    }
    if (branches.some(({ target }) => target === undefined)) break;
  }
  return atOnce(machine, sources, before, after);
}

function branchesOf(source: AnyStateNode, type: string): readonly AnyTransitionDefinition[] {
  const exact = source.transitions.get(type);
  if (exact !== undefined) return exact;
  const family = [...source.transitions.keys()].find((key) => key.endsWith('.*') && type.startsWith(key.slice(0, -1)));
  return family === undefined ? [] : (source.transitions.get(family) ?? []);
}

/** Whether a branch that stays says no, and the line shows that something was refused. */
function isRefusalOf({ target, actions }: AnyTransitionDefinition, line: TraceLine): boolean {
  const isRefusal = actions.some((action: unknown) => actionName(action).split(' ')[0] === 'refuse');
  return target === undefined && isRefusal && line.actions.includes('refuse');
}

function taken(branch: AnyTransitionDefinition, after: ReadonlySet<string>): readonly Way[] | undefined {
  for (const target of branch.target ?? []) {
    const rest = chain([target, ...entered(target)], after, CHAIN);
    if (rest !== undefined) return [wayOf(branch, target), ...rest];
  }
  return undefined;
}

/** What follows at once from states that were just entered until they are those of `after`; undefined where that never happens. */
function chain(nodes: readonly AnyStateNode[], after: ReadonlySet<string>, left: number): readonly Way[] | undefined {
  if (nodes.every((node) => after.has(nameOf(node)))) return [];
  if (left === 0) return undefined;
  for (const node of nodes.toReversed()) {
    for (const always of node.always ?? []) {
      for (const target of always.target ?? []) {
        const rest = chain([target, ...entered(target)], after, left - 1);
        if (rest !== undefined) return [wayOf(always, target), ...rest];
      }
    }
  }
  return undefined;
}

/** A state that stayed until its data changed, and then went on at once. */
function atOnce(
  machine: AnyStateMachine,
  sources: readonly AnyStateNode[],
  before: ReadonlySet<string>,
  after: ReadonlySet<string>,
): readonly Way[] {
  if (before.size === after.size && [...before].every((name) => after.has(name))) return [];
  return chain([...(sources.length === 0 ? [machine.root] : sources)], after, CHAIN) ?? [];
}

/** The states that are entered with a state, outer before inner. */
function entered(node: AnyStateNode): AnyStateNode[] {
  const [first] = node.initial?.target ?? [];
  return first === undefined ? [] : [first, ...entered(first)];
}

function wayOf({ source, eventType }: AnyTransitionDefinition, target: AnyStateNode): Way {
  return { from: nameOf(source), event: eventType, to: nameOf(target) };
}
