import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import { promotionMachine } from '../../../machines/promotion/machine.ts';
import type { Confirmation, PromotionEvent } from '../../../machines/promotion/types.ts';
import { begin, step } from '../../../machines/step.ts';
import type { Stored } from '../../../machines/step.ts';

type State = Stored<typeof promotionMachine>;

const outcomes = ['promoted', 'refused', 'failed', 'rolled-back'] as const;
const manifests = ['manifest-1', 'manifest-2'];
const approve: PromotionEvent = {
  type: 'promotion.approve',
  reviewDigest: 'review-1',
  manifestDigest: 'manifest-1',
  approvalDigest: 'approval-1',
};
const events: readonly PromotionEvent[] = [
  approve,
  { ...approve, manifestDigest: 'manifest-2' },
  { ...approve, reviewDigest: 'review-2' },
  { type: 'promotion.withdrawn', code: 'operation_ungranted' },
  { type: 'promotion.dispatched', commandId: 'cmd-1' },
  { type: 'promotion.machine-asked' },
  { type: 'promotion.applying' },
  { type: 'promotion.lost' },
  { type: 'promotion.cancel', by: 'person' },
  { type: 'promotion.cancelled' },
  { type: 'promotion.expired' },
  ...manifests.map((manifestDigest): PromotionEvent => ({ type: 'promotion.machine-confirmed', manifestDigest })),
  ...manifests.flatMap((manifestDigest) =>
    outcomes.map((outcome): PromotionEvent => ({ type: 'promotion.ended', outcome, code: null, manifestDigest })),
  ),
];

function fresh(confirmation: Confirmation): State {
  return begin(promotionMachine, {
    promotionId: 'prom-1',
    runId: 'run-1',
    executorId: 'exec-1',
    reviewDigest: 'review-1',
    manifestDigest: 'manifest-1',
    confirmation,
  }).stored;
}

function live(
  confirmation: Confirmation,
  sequence: readonly PromotionEvent[],
): { state: State; taken: PromotionEvent[]; asked: string[] } {
  let state = fresh(confirmation);
  const taken: PromotionEvent[] = [];
  const asked: string[] = [];
  for (const event of sequence) {
    const next = step(promotionMachine, state, event);
    if (!next.ok) continue;
    taken.push(event);
    asked.push(...next.actions.map(({ type }) => type));
    state = next.stored;
  }
  return { state, taken, asked };
}

const anything = fc.array(fc.constantFrom(...events), { maxLength: 24 });

describe('a promotion', () => {
  it('is dispatched once, and only for an approval of the very review and manifest', () => {
    fc.assert(
      fc.property(anything, (sequence) => {
        const { taken, asked } = live('page', sequence);
        const dispatches = asked.filter((action) => action === 'dispatchCommand').length;
        assert.equal(dispatches, taken.filter(({ type }) => type === 'promotion.approve').length);
        assert.ok(dispatches <= 1);
        if (dispatches === 1)
          assert.deepEqual(
            taken.find(({ type }) => type === 'promotion.approve'),
            approve,
          );
      }),
      { numRuns: 1000 },
    );
  });

  it('never begins before a person at the machine confirmed the same manifest, where that is required', () => {
    let begun = 0;
    const likely: readonly PromotionEvent[] = [
      { type: 'promotion.machine-asked' },
      { type: 'promotion.machine-confirmed', manifestDigest: 'manifest-1' },
      { type: 'promotion.applying' },
    ];
    const often = Array.from({ length: 8 }, () => likely).flat();
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...events, ...often), { maxLength: 24 }), (sequence) => {
        const { taken } = live('machine', [approve, { type: 'promotion.dispatched', commandId: 'cmd-1' }, ...sequence]);
        const applying = taken.findIndex(({ type }) => type === 'promotion.applying');
        if (applying < 0) return;
        begun += 1;
        const confirmed = taken.findIndex((event) => event.type === 'promotion.machine-confirmed');
        assert.ok(confirmed >= 0 && confirmed < applying);
        assert.deepEqual(taken[confirmed], { type: 'promotion.machine-confirmed', manifestDigest: 'manifest-1' });
      }),
      { numRuns: 2000 },
    );
    assert.ok(begun > 10, `${begun} began`);
  });

  it('believes no ending of another manifest, and no end ever changes', () => {
    fc.assert(
      fc.property(anything, anything, (before, later) => {
        const { state, taken } = live('page', before);
        for (const event of taken)
          if (event.type === 'promotion.ended') assert.equal(event.manifestDigest, 'manifest-1');
        if (state.status === 'done') assert.deepEqual(live('page', [...taken, ...later]).state, state);
      }),
      { numRuns: 1000 },
    );
  });

  it('is promoted though somebody wanted it cancelled, if the machine had committed', () => {
    const { state } = live('page', [
      approve,
      { type: 'promotion.dispatched', commandId: 'cmd-1' },
      { type: 'promotion.applying' },
      { type: 'promotion.cancel', by: 'person' },
      { type: 'promotion.ended', outcome: 'promoted', code: null, manifestDigest: 'manifest-1' },
    ]);
    assert.equal(state.output?.outcome, 'promoted');
  });
});
