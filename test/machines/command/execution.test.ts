import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { initialTransition, transition } from 'xstate';
import type { SnapshotFrom } from 'xstate';

import { executionMachine } from '../../../machines/command/execution.ts';
import type { Ended, ExecutionEvent, ExecutionInput, Phase } from '../../../machines/command/types.ts';
import { nameOf } from '../../../machines/trace/take.ts';

type Snapshot = SnapshotFrom<typeof executionMachine>;

const input: ExecutionInput = {
  commandId: 'cmd-1',
  runId: 'run-1',
  operation: 'file.write',
  envelopeDigest: 'envelope',
  epoch: 7,
  maximumRuntimeMs: 25_000,
  phase: 'received',
  ended: null,
  replaced: false,
  cancelled: false,
};
const succeeded: Ended = { outcome: 'succeeded', code: null, resultDigest: 'result' };
const RUN = 'xstate.spawnChild(operation)';

/** How each actor may end: a world that is allowed to be as bad as it likes. */
const ends: { readonly [actor: string]: readonly object[] } = {
  checkGate: [{ permitted: true }, { permitted: true }, { permitted: false, outcome: 'refused', code: 'NO' }],
  checkGateAgain: [{ permitted: true }, { permitted: true }, { permitted: false, outcome: 'expired', code: 'LATE' }],
  recordAccepted: [{ durable: true }],
  recordStarted: [{ durable: true }],
  operation: [succeeded, { outcome: 'cancelled', code: 'CANCELLED', resultDigest: null }],
  stopOperation: [{ asked: true }],
  askOutcome: [succeeded],
  recordResult: [{ durable: true }],
  deliverResult: [{ answer: 'acknowledged' }, { answer: 'refused', code: 'RESULT_TOO_LARGE' }],
  recordReplacement: [{ durable: true }],
};

const wishes: readonly ExecutionEvent[] = [
  { type: 'execution.start' },
  { type: 'execution.start' },
  { type: 'execution.cancel' },
  { type: 'execution.fenced' },
  { type: 'execution.connected' },
  { type: 'execution.stop', reason: 'control-lost' },
];

/** One life: each number picks the next event among those that could happen in the state. */
function live(from: ExecutionInput, picks: readonly number[]): { readonly actions: string[]; readonly last: Snapshot } {
  const [first, begun] = initialTransition(executionMachine, from);
  const actions = begun.map(nameOf);
  let last = first;
  for (const pick of picks) {
    if (last.status !== 'active') break;
    const possible = possibilities(last);
    const event = possible[pick % possible.length]!;
    // The machine types the events of its own actors inside; here they are made as xstate makes them.
    const [next, asked] = transition(executionMachine, last, event as ExecutionEvent);
    actions.push(event.type, ...asked.map(nameOf));
    last = next;
  }
  return { actions, last };
}

function possibilities(snapshot: Snapshot): { type: string }[] {
  const running = Object.keys(snapshot.children);
  const endings = running.flatMap((actor) => [
    ...(ends[actor] ?? []).map((output) => ({ type: `xstate.done.actor.${actor}`, actorId: actor, output })),
    { type: `xstate.error.actor.${actor}`, actorId: actor, error: new Error('broke') },
  ]);
  const timers = [
    'xstate.after.runtime.execution.executing.running',
    'xstate.after.stopGrace.execution.executing.stopping',
    'xstate.after.redelivery.execution.result-pending.pausing',
  ].map((type) => ({ type }));
  const good = running.flatMap((actor) =>
    endings.filter(({ type }) => type === `xstate.done.actor.${actor}`).slice(0, 1),
  );
  const likely = Array.from({ length: 12 }, () => good).flat();
  return [...likely, ...endings, ...wishes, ...timers.filter((event) => snapshot.can(event as ExecutionEvent))];
}

const picks = fc.array(fc.nat({ max: 10_000 }), { maxLength: 60 });

describe('a command on the machine', () => {
  it('runs its operation at most once, and only after both records', () => {
    let lives = 0;
    fc.assert(
      fc.property(picks, fc.boolean(), (sequence, cancelled) => {
        const { actions } = live({ ...input, cancelled }, sequence);
        const runs = actions.filter((action) => action === RUN).length;
        assert.ok(runs <= 1);
        if (runs === 0) return;
        lives += 1;
        const before = actions.slice(0, actions.indexOf(RUN));
        const order = ['checkGate', 'recordAccepted', 'checkGateAgain', 'recordStarted'];
        const positions = order.map((actor) => before.indexOf(`xstate.done.actor.${actor}`));
        assert.ok(positions.every((position) => position >= 0));
        assert.deepEqual(
          positions,
          positions.toSorted((one, other) => one - other),
        );
        assert.ok(!cancelled, 'a cancel that came first prevents the start');
      }),
      { numRuns: 2000 },
    );
    assert.ok(lives > 20, `the operation ran in ${lives} lives`);
  });

  it('runs nothing after a restart, in whichever phase the ledger left it', () => {
    const phases: readonly Phase[] = ['accepted-pending', 'started-pending', 'executing', 'result-pending'];
    fc.assert(
      fc.property(picks, fc.constantFrom(...phases), (sequence, phase) => {
        const ended = phase === 'result-pending' ? succeeded : null;
        const { actions } = live({ ...input, phase, ended }, sequence);
        assert.ok(!actions.includes(RUN));
      }),
      { numRuns: 500 },
    );
  });

  it('does not begin after a cancel, a fence or a stop that came before the start', () => {
    fc.assert(
      fc.property(picks, (sequence) => {
        const { actions } = live(input, sequence);
        const run = actions.indexOf(RUN);
        const withdrawn = ['execution.cancel', 'execution.fenced', 'execution.stop'];
        if (run >= 0) assert.ok(!actions.slice(0, run).some((action) => withdrawn.includes(action)));
      }),
      { numRuns: 500 },
    );
  });

  it('sends an ending only once it is recorded, and never an unknown one', () => {
    fc.assert(
      fc.property(picks, (sequence) => {
        const { actions, last } = live(input, sequence);
        const sent = actions.indexOf('xstate.spawnChild(deliverResult)');
        if (sent >= 0) assert.ok(actions.slice(0, sent).includes('xstate.done.actor.recordResult'));
        if (last.value === 'unknown' && sent >= 0) assert.ok(actions.includes('xstate.spawnChild(recordReplacement)'));
      }),
      { numRuns: 500 },
    );
  });

  it('replaces a refused ending at most once', () => {
    fc.assert(
      fc.property(picks, (sequence) => {
        const { actions } = live(input, sequence);
        assert.ok(actions.filter((action) => action === 'xstate.spawnChild(recordReplacement)').length <= 1);
      }),
      { numRuns: 500 },
    );
  });

  it('refuses nothing any more once the start is recorded', () => {
    fc.assert(
      fc.property(picks, (sequence) => {
        const { actions, last } = live(input, sequence);
        const isStarted = actions.includes('xstate.done.actor.recordStarted');
        if (isStarted && last.status === 'done') assert.notEqual(last.output?.outcome, 'refused');
      }),
      { numRuns: 1000 },
    );
  });

  it('ends in the state that its output names', () => {
    fc.assert(
      fc.property(picks, (sequence) => {
        const { last } = live(input, sequence);
        if (last.status === 'done') assert.equal(last.output?.outcome, last.value);
        assert.notEqual(last.status, 'error');
      }),
      { numRuns: 500 },
    );
  });
});
