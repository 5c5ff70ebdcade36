import assert from 'node:assert/strict';

import type { AnyMachineSnapshot } from 'xstate';
import { getShortestPaths } from 'xstate/graph';

import { executionRequests } from '../../machines/command/phases.ts';
import { daemonRequests } from '../../machines/daemon/connection.ts';
import type { Permit } from '../../machines/meta.ts';
import { metaOf, permitsOf } from '../../machines/shape.ts';
import { registry } from '../../helpers/protocol/registry.ts';
import { joiningRequests } from '../../machines/pairing/standing.ts';
import { traced } from '../../machines/registry.ts';
import { goldens } from './scenarios/index.ts';
import { shapeOf, statesOf } from './walk.ts';

const requests: { readonly [machine: string]: { readonly [actor: string]: readonly Permit[] } } = {
  execution: executionRequests,
  joining: joiningRequests,
  daemon: daemonRequests,
};

/** What would touch the machine's tree, or let work near it. */
const PRIVILEGED: readonly Permit[] = [
  'workspace.operate',
  'workspace.difference',
  'workspace.freeze',
  'workspace.release',
  'workspace.cancel',
  'promote.recover',
  'promote.apply',
  'promote.cancel',
  'server.resolve',
  'server.lease',
  'server.take-receipt',
  'server.countersign',
  'server.make-promotion',
];

for (const [id, scenarios] of Object.entries(goldens)) {
  const { machine } = traced[id]!;
  const events = [...new Map(scenarios.flatMap((one) => one.events).map((one) => [JSON.stringify(one), one])).values()];
  const inputs = [...new Map(scenarios.map(({ input }) => [JSON.stringify(input), input])).values()];

  describe(`shortest paths of ${id}`, () => {
    const paths = inputs.flatMap((input) =>
      getShortestPaths(machine, {
        // An error of an actor that does not run breaks a machine; no actor that does not run ever reports one.
        events: (state) => events.filter((event) => state.can(event)),
        input,
        serializeState: shapeOf,
        limit: 100_000,
        stopWhen: (state) => state.status === 'done',
      }),
    );

    it('reach every state that is not passed within a step', () => {
      const reached = new Set(paths.map(({ state }) => JSON.stringify(state.value)));
      const ends = statesOf(machine).filter(({ type }) => type === 'final');
      assert.ok(paths.length >= statesOf(machine).filter(({ type }) => type === 'atomic').length / 2);
      for (const end of ends) assert.ok(reached.has(JSON.stringify(end.key)), end.id);
    });

    it('end in an output, and never in a broken machine', () => {
      for (const { state } of paths as { state: AnyMachineSnapshot }[]) {
        assert.notEqual(state.status, 'error');
        if (state.status === 'done') assert.equal(typeof state.output, 'object');
      }
    });
  });

  describe(`permits of ${id}`, () => {
    it('cover the requests of every actor that a state starts', () => {
      for (const node of statesOf(machine)) {
        for (const { src } of node.invoke) {
          assert.ok(typeof src === 'string', `${node.id} names its actors`);
          const needed = requests[id]?.[src];
          assert.ok(needed !== undefined, `${src} says what it requests`);
          const permits = permitsOf(node);
          for (const request of needed) assert.ok(permits.includes(request), `${node.id} permits ${request}`);
        }
      }
    });

    it('hold nothing after an end', () => {
      for (const node of statesOf(machine).filter(({ type }) => type === 'final')) {
        assert.deepEqual(metaOf(node).permits, [], node.id);
      }
    });

    it('name an id, a way on and a way out of an error for every actor', () => {
      for (const node of statesOf(machine)) {
        for (const { id: invoke } of node.invoke) {
          for (const kind of ['done', 'error']) {
            const branches = node.transitions.get(`xstate.${kind}.actor.${invoke}`) ?? [];
            assert.ok(branches.length > 0, `${node.id} handles ${kind} of ${invoke}`);
          }
        }
      }
    });

    it('end every guarded list in an unguarded branch', () => {
      for (const node of [machine.root, ...statesOf(machine)]) {
        for (const [event, branches] of node.transitions) {
          const guarded = branches.map(({ guard }: { guard?: unknown }) => guard !== undefined);
          if (guarded.includes(true)) assert.equal(guarded.at(-1), false, `${node.id} on ${event}`);
        }
      }
    });
  });
}

describe('what states permit', () => {
  it('is a request that a helper answers, or an act of the daemon or the control plane itself', () => {
    const own = ['gate.check', 'ledger.append', 'ledger.read', 'state.write', 'lock.release', 'guests.stop'];
    for (const { machine } of Object.values(traced)) {
      for (const node of statesOf(machine)) {
        for (const permit of metaOf(node).permits) {
          if (permit.startsWith('server.') || own.includes(permit)) continue;
          assert.ok(Object.hasOwn(registry, permit), `${node.id} permits ${permit}`);
        }
      }
    }
  });
});

describe('before a pairing is verified', () => {
  it('no state of either side permits what touches the tree or lets work near it', () => {
    const early = [
      ...statesOf(traced['joining']!.machine),
      ...statesOf(traced['pairing']!.machine),
      ...statesOf(traced['executor']!.machine).filter(({ key }) => key === 'pending_pairing'),
    ];
    for (const node of early) {
      assert.deepEqual(
        permitsOf(node).filter((permit) => PRIVILEGED.includes(permit)),
        [],
        node.id,
      );
    }
  });

  it('nothing may be sent before the request is durable', () => {
    for (const key of ['starting', 'preparing', 'persisting']) {
      const node = traced['joining']!.machine.states[key]!;
      assert.ok(!metaOf(node).permits.includes('link.call'), key);
    }
  });
});
