/*
 * Review of one descriptor revision (N-080 to N-088, N-205).
 *
 * INVARIANT 1  A revision is never in force before a person confirmed its very digest (N-083, N-084).
 * INVARIANT 2  Revisions only go forward; one number has one content (N-080).
 * INVARIANT 3  A newer revision ends the review of an older one, whatever became of the newer (N-084).
 *
 * A review may wait for ever: the confirmed revision stays in force meanwhile (N-088).
 */
import { setup } from 'xstate';
import { declared } from '../meta.ts';
import type { StateMeta } from '../meta.ts';
import { unprovidedActions } from '../unprovided.ts';
import type {
  DescriptorReviewActions,
  DescriptorReviewContext,
  DescriptorReviewEvent,
  DescriptorReviewInput,
  DescriptorReviewOutput,
} from './types.ts';

const review = setup({
  types: declared<{
    context: DescriptorReviewContext;
    events: DescriptorReviewEvent;
    input: DescriptorReviewInput;
    output: DescriptorReviewOutput;
    meta: StateMeta;
  }>(),
  actions: unprovidedActions<DescriptorReviewActions>({
    activateRevision: true,
    recordRefusal: true,
    repeatAnswer: true,
    refuse: true,
  }),
  guards: {
    isShown: ({ context }, descriptorDigest: string) => context.descriptorDigest === descriptorDigest,
    isNewer: ({ context }, revision: number) => revision > context.revision,
    isOlder: ({ context }, revision: number) => revision < context.revision,
  },
});

const changed = { actions: { type: 'refuse', params: { code: 'DESCRIPTOR_CHANGED' } } } as const;
const shown = {
  type: 'isShown',
  params: ({ event }: { event: { descriptorDigest: string } }) => event.descriptorDigest,
} as const;

/** Review of one revision; its state is stored with its row and stepped in one transaction with the audit entry. */
export const descriptorReviewMachine = review.createMachine({
  id: 'descriptor-review',
  version: '1',
  context: ({ input }) => ({ ...input }),
  output: ({ context, event }) => {
    // Each final state below has its outcome as output; xstate types the event of the end as unknown.
    return { ...context, outcome: event.output as DescriptorReviewOutput['outcome'] };
  },
  initial: 'pending',
  states: {
    pending: {
      meta: {
        holds: 'The revision is stored and its differences are shown; the confirmed one, if any, is in force.',
        permits: ['server.activate-revision'],
      },
      on: {
        'descriptor.confirm': [
          {
            guard: shown,
            target: 'confirmed',
            actions: {
              type: 'activateRevision',
              params: ({ context }) => ({ revision: context.revision, descriptorDigest: context.descriptorDigest }),
            },
          },
          changed,
        ],
        'descriptor.refuse': [
          {
            guard: shown,
            target: 'refused',
            actions: { type: 'recordRefusal', params: ({ context }) => ({ revision: context.revision }) },
          },
          changed,
        ],
        'descriptor.arrived': [
          { guard: { type: 'isNewer', params: ({ event }) => event.revision }, target: 'superseded' },
          {
            guard: { type: 'isOlder', params: ({ event }) => event.revision },
            actions: { type: 'refuse', params: { code: 'DESCRIPTOR_ROLLBACK' } },
          },
          { guard: shown, actions: 'repeatAnswer' },
          { actions: { type: 'refuse', params: { code: 'REVISION_CONFLICT' } } },
        ],
      },
    },
    confirmed: {
      type: 'final',
      meta: { holds: 'A person confirmed this digest; it is in force until a higher one is confirmed.', permits: [] },
      output: 'confirmed',
    },
    refused: {
      type: 'final',
      meta: { holds: 'A person refused this digest; it never comes into force.', permits: [] },
      output: 'refused',
    },
    superseded: {
      type: 'final',
      meta: { holds: 'A newer revision arrived before anybody decided; it never comes into force.', permits: [] },
      output: 'superseded',
    },
  },
});
