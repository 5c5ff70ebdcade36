import assert from 'node:assert/strict';

import { initialTransition, transition } from 'xstate';
import type { AnyMachineSnapshot } from 'xstate';

import { inertStart, inertStep } from '../../machines/inert.ts';
import type { InertStep } from '../../machines/inert.ts';
import { traced } from '../../machines/registry.ts';
import { nameOf } from '../../machines/trace/take.ts';
import { goldens } from './scenarios/index.ts';

/** All that a step shows: state, context, children and the actions with their parameters. */
function shown([snapshot, actions]: readonly [AnyMachineSnapshot, InertStep[1]]): unknown {
  const { value, status, context, output, children } = snapshot;
  const asked = actions.map((action) => [nameOf(action), action.type.startsWith('xstate.') ? null : action.params]);
  return { value, status, context, output, children: Object.keys(children), asked };
}

describe('an inert step', () => {
  for (const [id, scenarios] of Object.entries(goldens)) {
    it(`${id}: is the same as xstate's own pure transition, over every golden trace`, () => {
      const { machine } = traced[id]!;
      for (const { input, events } of scenarios) {
        let ours = inertStart(machine, input);
        let theirs = initialTransition(machine, input as never);
        assert.deepEqual(shown(ours), shown(theirs));
        for (const event of events) {
          ours = inertStep(machine, ours[0], event);
          theirs = transition(machine, theirs[0], event);
          assert.deepEqual(shown(ours), shown(theirs), event.type);
        }
      }
    });
  }
});
