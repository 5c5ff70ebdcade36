import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import { descriptorReviewMachine } from '../../../machines/descriptor-review/machine.ts';
import type { DescriptorReviewEvent } from '../../../machines/descriptor-review/types.ts';
import { begin, step } from '../../../machines/step.ts';

const input = { executorId: 'exec-1', revision: 4, descriptorDigest: 'descriptor-4' };
const events: readonly DescriptorReviewEvent[] = ['descriptor-3', 'descriptor-4', 'descriptor-5'].flatMap(
  (descriptorDigest): DescriptorReviewEvent[] => [
    { type: 'descriptor.confirm', descriptorDigest },
    { type: 'descriptor.refuse', descriptorDigest },
    ...[3, 4, 5].map((revision): DescriptorReviewEvent => ({ type: 'descriptor.arrived', revision, descriptorDigest })),
  ],
);

describe('review of a descriptor', () => {
  const answers: readonly (readonly [string, DescriptorReviewEvent, string])[] = [
    [
      'the digest that was shown is confirmed',
      { type: 'descriptor.confirm', descriptorDigest: 'descriptor-4' },
      'confirmed',
    ],
    ['another digest is not', { type: 'descriptor.confirm', descriptorDigest: 'descriptor-5' }, 'DESCRIPTOR_CHANGED'],
    ['nor can it be refused', { type: 'descriptor.refuse', descriptorDigest: 'descriptor-5' }, 'DESCRIPTOR_CHANGED'],
    [
      'a newer revision ends the review',
      { type: 'descriptor.arrived', revision: 5, descriptorDigest: 'descriptor-5' },
      'superseded',
    ],
    [
      'an older one is a roll back',
      { type: 'descriptor.arrived', revision: 3, descriptorDigest: 'descriptor-3' },
      'DESCRIPTOR_ROLLBACK',
    ],
    [
      'one number has one content',
      { type: 'descriptor.arrived', revision: 4, descriptorDigest: 'descriptor-5' },
      'REVISION_CONFLICT',
    ],
    [
      'the same bytes change nothing',
      { type: 'descriptor.arrived', revision: 4, descriptorDigest: 'descriptor-4' },
      'pending',
    ],
  ];
  for (const [sentence, event, expected] of answers) {
    it(sentence, () => {
      const answer = step(descriptorReviewMachine, begin(descriptorReviewMachine, input).stored, event);
      assert.equal(answer.ok ? answer.stored.value : answer.code, expected);
    });
  }

  it('puts a revision in force at most once, only by a confirmation of its digest, and no end ever changes', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...events), { maxLength: 12 }), (sequence) => {
        let state = begin(descriptorReviewMachine, input).stored;
        let activations = 0;
        for (const event of sequence) {
          const next = step(descriptorReviewMachine, state, event);
          if (!next.ok) continue;
          assert.equal(state.status, 'active');
          const activates = next.actions.some(({ type }) => type === 'activateRevision');
          if (activates) assert.deepEqual(event, { type: 'descriptor.confirm', descriptorDigest: 'descriptor-4' });
          activations += Number(activates);
          state = next.stored;
        }
        assert.equal(activations, state.value === 'confirmed' ? 1 : 0);
      }),
    );
  });
});
