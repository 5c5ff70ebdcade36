/*
 * What a diagram of a machine shows, before anything has a place: boxes for states, and labels between them. A label joins states
 * that it leads from with states that it leads to; every pair of the two is a transition by each of its events, so that five states
 * which all end alike share one label and not five.
 */
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { below, eventName, nameOf, transitionsOf } from '../../../machines/shape.ts';

/** One state. `again` holds the events that lead back to it. */
export type Box = {
  readonly state: string;
  readonly title: string;
  readonly isFinal: boolean;
  readonly isInitial: boolean;
  readonly again: readonly string[];
  readonly boxes: readonly Box[];
};

/** Events that lead from each state of `from` to each of `to`; `from` is empty where every state knows them. */
export type Label = {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly events: readonly string[];
};

/** A whole machine. */
export type Graph = { readonly boxes: readonly Box[]; readonly labels: readonly Label[] };

/** Graph of a machine. */
export function graphOf(machine: AnyStateMachine): Graph {
  const ways = waysOf(machine);
  const again = new Map(ways.filter(({ from, to }) => from === to).map(({ from, events }) => [from, events]));
  return { boxes: boxesOf(machine.root, again), labels: joined(ways.filter(({ from, to }) => from !== to)) };
}

/** Width of a label in characters, and its lines. */
export function linesOf({ from, events }: Label): readonly string[] {
  const lines = events.map(eventName);
  return from.length === 0 ? ['in any state:', ...lines] : lines;
}

function boxesOf(node: AnyStateNode, again: ReadonlyMap<string, readonly string[]>): Box[] {
  const initial = node.initial?.target[0];
  return Object.values(node.states).map((child) => ({
    state: nameOf(child),
    title: child.key,
    isFinal: child.type === 'final',
    isInitial: child === initial,
    again: again.get(nameOf(child)) ?? [],
    boxes: boxesOf(child, again),
  }));
}

type Way = { readonly from: string; readonly to: string; readonly events: readonly string[] };

/** Every pair of states with the events that lead from one to the other, in the order in which they are written. */
function waysOf(machine: AnyStateMachine): Way[] {
  const found = new Map<string, { from: string; to: string; events: string[] }>();
  for (const node of [machine.root, ...below(machine.root)]) {
    for (const { eventType, target } of transitionsOf(node)) {
      for (const goal of target ?? []) {
        const key = `${nameOf(node)} ${nameOf(goal)}`;
        const way = found.get(key) ?? { from: nameOf(node), to: nameOf(goal), events: [] };
        if (!way.events.includes(eventType)) way.events.push(eventType);
        found.set(key, way);
      }
    }
  }
  return [...found.values()];
}

/** Ways of equal events become one label: first those of one source, then those sources whose goals are the same. */
function joined(ways: readonly Way[]): Label[] {
  const bySource = gathered(ways, ({ from, events }) => JSON.stringify([from, events])).map((group) => ({
    from: group[0]?.from ?? '',
    to: group.map(({ to }) => to),
    events: group[0]?.events ?? [],
  }));
  return gathered(bySource, ({ to, events }) => JSON.stringify([to, events])).map((group) => ({
    from: group.map(({ from }) => from).filter((from) => from !== ''),
    to: group[0]?.to ?? [],
    events: group[0]?.events ?? [],
  }));
}

function gathered<One>(ones: readonly One[], keyOf: (one: One) => string): One[][] {
  const groups = new Map<string, One[]>();
  for (const one of ones) {
    const group = groups.get(keyOf(one));
    if (group === undefined) groups.set(keyOf(one), [one]);
    else group.push(one);
  }
  return [...groups.values()];
}
