import { createActor } from 'xstate';
import type { AnyEventObject, AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';

import { below } from '../../machines/shape.ts';

/** Every state of a machine, outer before inner, without its root. */
export function statesOf(machine: AnyStateMachine): AnyStateNode[] {
  return below(machine.root);
}

/** Every transition of a machine by a name of its own: state, event and place in the list of branches. */
export function transitionsOf(machine: AnyStateMachine): Map<AnyTransitionDefinition, string> {
  const named = new Map<AnyTransitionDefinition, string>();
  for (const node of [machine.root, ...statesOf(machine)]) {
    const always: readonly AnyTransitionDefinition[] = node.always ?? [];
    for (const branches of [always, ...node.transitions.values()]) {
      for (const [index, transition] of branches.entries()) {
        named.set(
          transition,
          `${node.id} on ${transition.eventType === '' ? 'always' : transition.eventType} #${index}`,
        );
      }
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

/** Runs events through a live actor, synchronously, and returns the states and transitions that it passed. */
export function passed(
  machine: AnyStateMachine,
  input: unknown,
  events: readonly AnyEventObject[],
): { states: Set<string>; transitions: Set<string> } {
  const live = silenced(machine);
  const names = transitionsOf(live);
  const states = new Set<string>();
  const transitions = new Set<string>();
  // The first inspection comes from the constructor, before it returns.
  let root: object | undefined;
  const note = (snapshot: unknown): void => {
    // oxlint-disable-next-line no-underscore-dangle -- the only place where xstate keeps the nodes of a snapshot
    for (const node of (snapshot as { _nodes: AnyStateNode[] })._nodes) states.add(node.id);
  };
  const actor = createActor(live, {
    input,
    inspect: (inspection) => {
      root ??= inspection.actorRef;
      if (inspection.actorRef !== root) return;
      if (inspection.type === '@xstate.microstep') {
        // oxlint-disable-next-line no-underscore-dangle -- xstate's own name
        for (const transition of inspection._transitions) {
          transitions.add(names.get(transition) ?? '');
          states.add(transition.source.id);
        }
        note(inspection.snapshot);
      }
      if (inspection.type === '@xstate.snapshot') note(inspection.snapshot);
    },
  });
  actor.start();
  for (const event of events) actor.send(event);
  actor.stop();
  return { states, transitions };
}

/** What a snapshot says beside counters that grow for ever, so that a search over states ends. */
export function shapeOf(snapshot: { readonly value: unknown; readonly context: object }): string {
  const { epoch: _epoch, attempt: _attempt, ...context } = { epoch: 0, attempt: 0, ...snapshot.context };
  return JSON.stringify([snapshot.value, context]);
}
