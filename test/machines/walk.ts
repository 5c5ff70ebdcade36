import type { AnyStateMachine, AnyStateNode } from 'xstate';

import { below } from '../../machines/shape.ts';

/** Every state of a machine, outer before inner, without its root. */
export function statesOf(machine: AnyStateMachine): AnyStateNode[] {
  return below(machine.root);
}

/** What a snapshot says beside counters that grow for ever, so that a search over states ends. */
export function shapeOf(snapshot: { readonly value: unknown; readonly context: object }): string {
  const { epoch: _epoch, attempt: _attempt, ...context } = { epoch: 0, attempt: 0, ...snapshot.context };
  return JSON.stringify([snapshot.value, context]);
}
