import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import { pairingMachine } from '../../../machines/pairing/machine.ts';
import type { PairingEvent, PairingFlow } from '../../../machines/pairing/types.ts';
import { begin, step } from '../../../machines/step.ts';
import type { Stored } from '../../../machines/step.ts';

type State = Stored<typeof pairingMachine>;

const keys = ['key-a', 'key-b'];
const events: readonly PairingEvent[] = [
  ...keys.flatMap((fingerprint): PairingEvent[] => [
    { type: 'pairing.submitted', requestDigest: `request-of-${fingerprint}`, fingerprint },
    { type: 'pairing.repeated', requestDigest: `request-of-${fingerprint}` },
    { type: 'pairing.claimed', fingerprint, claimDigest: 'claim-1' },
    { type: 'pairing.claimed', fingerprint, claimDigest: 'claim-2' },
    { type: 'pairing.confirmed-by-person', fingerprint },
    { type: 'pairing.confirmed-by-machine', fingerprint, claimDigest: 'claim-1', currentClaimDigest: 'claim-1' },
    { type: 'pairing.confirmed-by-machine', fingerprint, claimDigest: 'claim-1', currentClaimDigest: 'claim-2' },
  ]),
  { type: 'pairing.reject', by: 'person' },
  { type: 'pairing.cancel', by: 'machine' },
  { type: 'pairing.expired' },
];

function fresh(flow: PairingFlow): State {
  const known = flow === 'code';
  return begin(pairingMachine, {
    pairingId: 'pair-1',
    flow,
    requestDigest: known ? 'request-of-key-a' : null,
    fingerprint: known ? 'key-a' : null,
    replaces: 'exec-0',
  }).stored;
}

/** Everything that was taken, and the state that it led to. */
function live(
  flow: PairingFlow,
  sequence: readonly PairingEvent[],
): { state: State; taken: PairingEvent[]; asked: string[] } {
  let state = fresh(flow);
  const taken: PairingEvent[] = [];
  const asked: string[] = [];
  for (const event of sequence) {
    const next = step(pairingMachine, state, event);
    if (!next.ok) continue;
    taken.push(event);
    asked.push(...next.actions.map(({ type }) => type));
    state = next.stored;
  }
  return { state, taken, asked };
}

const anything = fc.array(fc.constantFrom(...events), { maxLength: 12 });

describe('a pairing of the control plane', () => {
  for (const flow of ['code', 'enrolment'] as const) {
    it(`${flow}: is confirmed by both sides over one key, or not at all`, () => {
      let confirmations = 0;
      fc.assert(
        fc.property(anything, (sequence) => {
          const { state, taken, asked } = live(flow, sequence);
          assert.equal(
            asked.filter((action) => action === 'activateExecutor').length,
            state.value === 'confirmed' ? 1 : 0,
          );
          if (state.value !== 'confirmed') return;
          confirmations += 1;
          const last = taken.at(-1)!;
          const first = taken.find(({ type }) => type === (flow === 'code' ? 'pairing.claimed' : 'pairing.submitted'))!;
          assert.equal(last.type, flow === 'code' ? 'pairing.confirmed-by-machine' : 'pairing.confirmed-by-person');
          assert.ok('fingerprint' in last && 'fingerprint' in first);
          assert.equal(last.fingerprint, first.fingerprint);
        }),
        { numRuns: 3000 },
      );
      assert.ok(confirmations > 10, `${confirmations} were confirmed`);
    });

    it(`${flow}: no end ever changes`, () => {
      fc.assert(
        fc.property(anything, anything, (before, later) => {
          const { state, taken } = live(flow, before);
          if (state.status !== 'done') return;
          assert.deepEqual(live(flow, [...taken, ...later]).state, state);
        }),
        { numRuns: 500 },
      );
    });
  }

  it('says in one action which executor is replaced, so that one transaction revokes it', () => {
    const submitted = step(pairingMachine, fresh('enrolment'), {
      type: 'pairing.submitted',
      requestDigest: 'request-of-key-a',
      fingerprint: 'key-a',
    });
    assert.ok(submitted.ok);
    const confirmed = step(pairingMachine, submitted.stored, {
      type: 'pairing.confirmed-by-person',
      fingerprint: 'key-a',
    });
    assert.ok(confirmed.ok);
    assert.deepEqual(confirmed.actions, [
      { type: 'activateExecutor', params: { fingerprint: 'key-a', replaces: 'exec-0' } },
      { type: 'forgetVerifier', params: undefined },
    ]);
  });

  it('knows none of the events of the other flow', () => {
    for (const event of events) {
      const isOther = ['pairing.submitted', 'pairing.confirmed-by-person'].includes(event.type);
      const answer = step(pairingMachine, fresh('code'), event);
      if (isOther) assert.ok(!answer.ok && answer.code === 'STATE_TRANSITION_INVALID', event.type);
    }
    const claim = step(pairingMachine, fresh('enrolment'), {
      type: 'pairing.claimed',
      fingerprint: 'key-a',
      claimDigest: 'claim-1',
    });
    assert.ok(!claim.ok && claim.code === 'STATE_TRANSITION_INVALID');
  });
});
