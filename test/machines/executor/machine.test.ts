import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import { executorMachine } from '../../../machines/executor/machine.ts';
import type { ExecutorEvent } from '../../../machines/executor/types.ts';
import { begin, step } from '../../../machines/step.ts';
import type { Stored } from '../../../machines/step.ts';

type State = Stored<typeof executorMachine>;

const STATES = ['pending_pairing', 'online', 'offline', 'draining', 'error', 'revoked'];
const key = 'key-a';
const events: readonly ExecutorEvent[] = [
  { type: 'pairing.confirmed', fingerprint: key },
  { type: 'executor.proved', fingerprint: key },
  { type: 'executor.proved', fingerprint: 'key-b' },
  { type: 'executor.silent' },
  { type: 'executor.pause' },
  { type: 'executor.resume' },
  { type: 'executor.drain' },
  { type: 'executor.drained' },
  { type: 'executor.damaged', fault: 'ledger-damaged' },
  { type: 'executor.repaired' },
  { type: 'executor.disconnect', by: 'administrator' },
  { type: 'executor.disconnect', by: 'organization-owner' },
  { type: 'executor.delete' },
  { type: 'executor.replaced' },
  { type: 'access.changed' },
  { type: 'descriptor.reviewed' },
];

const fresh = (): State => begin(executorMachine, { executorId: 'exec-1' }).stored;

/** The state after all events that are not refused, as a store would keep it between two. */
function after(state: State, ...taken: readonly ExecutorEvent[]): State {
  return taken.reduce((stored, event) => {
    const next = step(executorMachine, JSON.parse(JSON.stringify(stored)) as State, event);
    return next.ok ? next.stored : stored;
  }, state);
}

const confirmed: ExecutorEvent = { type: 'pairing.confirmed', fingerprint: key };
const proved: ExecutorEvent = { type: 'executor.proved', fingerprint: key };
const damaged: ExecutorEvent = { type: 'executor.damaged', fault: 'state-copied' };
const representatives: { readonly [state: string]: readonly State[] } = {
  pending_pairing: [fresh(), after(fresh(), confirmed)],
  online: [after(fresh(), confirmed, proved), after(fresh(), confirmed, proved, { type: 'executor.pause' })],
  offline: [after(fresh(), confirmed, proved, { type: 'executor.silent' })],
  draining: [after(fresh(), confirmed, proved, { type: 'executor.drain' })],
  error: [after(fresh(), confirmed, proved, damaged)],
  revoked: [
    after(fresh(), confirmed, proved, { type: 'executor.replaced' }),
    after(fresh(), { type: 'executor.delete' }),
  ],
};

/** N-199 with D-10 and D-11; a deletion before pairing passes draining within one step. */
const permitted: { readonly [from: string]: readonly string[] } = {
  pending_pairing: ['online', 'revoked'],
  online: ['draining', 'error', 'offline', 'revoked'],
  offline: ['draining', 'error', 'online', 'revoked'],
  draining: ['error', 'revoked'],
  error: ['offline', 'revoked'],
  revoked: [],
};

describe('lifecycle of an executor', () => {
  it('N-198 has six states and no others; accepting is a flag beside them', () => {
    assert.deepEqual(Object.keys(executorMachine.states).toSorted(), STATES.toSorted());
    assert.equal(fresh().context.accepting, true);
  });

  it('N-199 leads between the pairs of states that it may and no others, refuses anything else, and revoked is final', () => {
    for (const from of STATES) {
      for (const to of STATES.filter((state) => state !== from)) {
        const leads = representatives[from]!.some((state) => events.some((event) => after(state, event).value === to));
        assert.equal(leads, permitted[from]!.includes(to), `from ${from} to ${to}`);
      }
      for (const event of events) {
        const answers = representatives[from]!.map((state) => step(executorMachine, state, event));
        const isEarly = from === 'pending_pairing' && 'by' in event && event.by === 'administrator';
        const known = executorMachine.root.states[from]!.ownEvents.includes(event.type) && !isEarly;
        for (const answer of answers) {
          if (known) assert.ok(answer.ok || answer.code !== 'STATE_TRANSITION_INVALID', `${event.type} in ${from}`);
          else assert.ok(!answer.ok && answer.code === 'STATE_TRANSITION_INVALID', `${event.type} in ${from}`);
        }
      }
    }
  });

  it('passes draining in the same step when what never proved itself is deleted, replaced or ended by the owner', () => {
    const ends: readonly ExecutorEvent[] = [
      { type: 'executor.delete' },
      { type: 'executor.replaced' },
      { type: 'executor.disconnect', by: 'organization-owner' },
    ];
    for (const pending of representatives['pending_pairing']!) {
      for (const event of ends) {
        const ended = step(executorMachine, pending, event);
        assert.ok(ended.ok);
        assert.equal(ended.stored.value, 'revoked');
        const fences = ended.actions.filter(({ type }) => type === 'fenceConnections');
        assert.equal(fences.length, 2, 'one for draining, one for revoked');
      }
    }
  });

  it('answers STATE_TRANSITION_INVALID with state and event for whatever a state does not know', () => {
    const refused = step(executorMachine, representatives['draining']![0]!, { type: 'executor.pause' });
    assert.deepEqual(refused, {
      ok: false,
      code: 'STATE_TRANSITION_INVALID',
      machine: 'executor',
      state: 'draining',
      event: 'executor.pause',
    });
    const revoked = representatives['revoked']![0]!;
    for (const event of events.filter(({ type }) => type !== 'executor.delete')) {
      const answer = step(executorMachine, revoked, event);
      assert.ok(!answer.ok && answer.code === 'STATE_TRANSITION_INVALID', event.type);
    }
  });

  it('raises the epoch at every change of state, new connection, access change and review, and fences with the new one', () => {
    for (const states of Object.values(representatives)) {
      for (const state of states) {
        for (const event of events) {
          const next = step(executorMachine, state, event);
          if (!next.ok) continue;
          const raises =
            next.stored.value !== state.value ||
            ['executor.proved', 'access.changed', 'descriptor.reviewed', 'pairing.confirmed'].includes(event.type);
          assert.equal(
            next.stored.context.epoch > state.context.epoch,
            raises,
            `${event.type} in ${JSON.stringify(state.value)}`,
          );
          const fence = next.actions.findLast(({ type }) => type === 'fenceConnections');
          assert.equal(fence !== undefined, raises);
          assert.deepEqual(fence?.params, raises ? { epoch: next.stored.context.epoch } : undefined);
        }
      }
    }
  });

  it('keeps a pause over reconnection, draining and error, and resumes only through a new proof', () => {
    const paused = after(fresh(), confirmed, proved, { type: 'executor.pause' });
    assert.deepEqual([paused.value, paused.context.accepting], ['online', false]);
    for (const way of [[proved], [{ type: 'executor.drain' } as const], [damaged]]) {
      assert.equal(after(paused, ...way).context.accepting, false);
    }
    const resumed = after(paused, { type: 'executor.resume' });
    assert.deepEqual([resumed.value, resumed.context.accepting], ['offline', true]);
  });

  it('offers deletion in all six states and disconnection in the four that have a connection to end', () => {
    const offers = (event: ExecutorEvent): string[] =>
      STATES.filter((state) => step(executorMachine, representatives[state]![0]!, event).ok);
    assert.deepEqual(offers({ type: 'executor.delete' }), STATES);
    assert.deepEqual(offers({ type: 'executor.disconnect', by: 'administrator' }), [
      'online',
      'offline',
      'draining',
      'error',
    ]);
  });

  it('forgets the key and every handle when it is revoked, however it is', () => {
    for (const from of ['online', 'offline', 'draining', 'error']) {
      for (const event of events) {
        const next = step(executorMachine, representatives[from]![0]!, event);
        if (!next.ok || next.stored.value !== 'revoked') continue;
        const names = next.actions.map(({ type }) => type);
        for (const name of ['fenceConnections', 'invalidateCredentials', 'invalidateHandles', 'stopLeasing'] as const) {
          assert.ok(names.includes(name), `${event.type} in ${from} asks for ${name}`);
        }
      }
    }
  });

  it('never lowers the epoch, never leaves revoked and is never online before confirmation and proof, whatever comes', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...events), { maxLength: 40 }), (sequence) => {
        let state = fresh();
        let proven = false;
        for (const event of sequence) {
          const next = after(state, event);
          assert.ok(next.context.epoch >= state.context.epoch);
          if (state.value === 'revoked') {
            assert.equal(next.value, 'revoked');
            assert.equal(next.context.epoch, state.context.epoch);
          }
          proven ||= state.context.fingerprint === key && event.type === 'executor.proved' && event.fingerprint === key;
          if (['online', 'offline', 'draining', 'error'].some((value) => value === next.value)) assert.ok(proven);
          state = next;
        }
      }),
    );
  });
});
