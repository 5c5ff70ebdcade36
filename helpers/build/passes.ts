/*
 * Which states and transitions a list of events passes, told by xstate itself: a live actor runs them synchronously with actions that
 * do nothing, and its inspection names every transition that it took.
 */
import { createActor } from 'xstate';
import type { AnyEventObject, AnyStateMachine, AnyStateNode, AnyTransitionDefinition, InspectionEvent } from 'xstate';

import { below, transitionsOf } from '../../machines/shape.ts';

/** Every transition of a machine by a name of its own: state, event and place in the list of branches. */
export function namedTransitions(machine: AnyStateMachine): Map<AnyTransitionDefinition, string> {
  const named = new Map<AnyTransitionDefinition, string>();
  for (const node of [machine.root, ...below(machine.root)]) {
    const branches = new Map<string, number>();
    for (const transition of transitionsOf(node)) {
      const event = transition.eventType === '' ? 'always' : transition.eventType;
      const index = branches.get(event) ?? 0;
      branches.set(event, index + 1);
      named.set(transition, `${node.id} on ${event} #${index}`);
    }
  }
  return named;
}

/** The machine with actions that do nothing, so that a live actor can run it to show its inner steps. */
export function silenced(machine: AnyStateMachine): AnyStateMachine {
  const actions = Object.entries(machine.implementations.actions)
    .filter(([, action]) => typeof action === 'function' && !('resolve' in action))
    .map(([name]) => [name, () => undefined] as const);
  return machine.provide({ actions: Object.fromEntries(actions) });
}

/** What one event passed: states entered or stood in, and transitions in the order in which they were taken. */
export type Step = { readonly states: readonly string[]; readonly transitions: readonly AnyTransitionDefinition[] };

/** Runs events through a live actor of a silenced machine, synchronously: what its beginning and then each event passed. */
export function steps(live: AnyStateMachine, input: unknown, events: readonly AnyEventObject[]): Step[] {
  let states: string[] = [];
  let transitions: AnyTransitionDefinition[] = [];
  // The first inspection comes from the constructor, before it returns.
  let root: object | undefined;
  const note = (snapshot: unknown): void => {
    // oxlint-disable-next-line no-underscore-dangle -- the only place where xstate keeps the nodes of a snapshot
    for (const node of (snapshot as { _nodes: AnyStateNode[] })._nodes) states.push(node.id);
  };
  const inspect = (inspection: InspectionEvent): void => {
    root ??= inspection.actorRef;
    if (inspection.actorRef !== root) return;
    if (inspection.type === '@xstate.microstep') {
      // oxlint-disable-next-line no-underscore-dangle -- xstate's own name
      for (const transition of inspection._transitions) {
        transitions.push(transition);
        states.push(transition.source.id);
      }
      note(inspection.snapshot);
    }
    if (inspection.type === '@xstate.snapshot') note(inspection.snapshot);
  };
  const taken = <Value>(act: () => Value): [Step, Value] => {
    [states, transitions] = [[], []];
    const value = act();
    return [{ states, transitions }, value];
  };
  const [first, actor] = taken(() => createActor(live, { input, inspect }).start());
  const found = [first, ...events.map((event) => taken(() => actor.send(event))[0])];
  actor.stop();
  return found;
}

/** Every state and transition that events pass, by name. */
export function passed(
  machine: AnyStateMachine,
  input: unknown,
  events: readonly AnyEventObject[],
): { states: Set<string>; transitions: Set<string> } {
  const live = silenced(machine);
  const names = namedTransitions(live);
  const found = steps(live, input, events);
  return {
    states: new Set(found.flatMap(({ states }) => states)),
    transitions: new Set(found.flatMap(({ transitions }) => transitions.map((one) => names.get(one) ?? ''))),
  };
}
