/*
 * One promotion as the control plane keeps it (N-143 to N-155, N-533). What the machine does is the journal of `promote`; its
 * receipts and the command's outcome arrive here as facts.
 *
 * INVARIANT 1  Nothing is dispatched without a person's approval of exactly this review and manifest, and an approval serves once
 *              (N-145 to N-147): `prepared` is left for good.
 * INVARIANT 2  Where a person at the machine must confirm too, nothing applies before that (design section 4).
 * INVARIANT 3  The machine's manifest is the approved one, else the result is not believed (N-148).
 * INVARIANT 4  A wish to cancel changes no fact: the outcome is what the machine proves (N-533).
 * INVARIANT 5  A lost outcome is `unknown`, until a late receipt settles it once (N-118).
 *
 * No state waits on a timer here: the control plane owns the clock and says `promotion.expired` after ten minutes. A promotion that
 * applies waits as long as its command does.
 */
import { assign, setup } from 'xstate';
import { declared } from '../meta.ts';
import type { StateMeta } from '../meta.ts';
import { unprovidedActions } from '../unprovided.ts';
import type {
  ApplyOutcome,
  PromotionActions,
  PromotionContext,
  PromotionEvent,
  PromotionInput,
  PromotionOutput,
} from './types.ts';

const promotion = setup({
  types: declared<{
    context: PromotionContext;
    events: PromotionEvent;
    input: PromotionInput;
    output: PromotionOutput;
    meta: StateMeta;
  }>(),
  actions: {
    ...unprovidedActions<PromotionActions>({
      dispatchCommand: true,
      cancelCommand: true,
      showMachineConfirmation: true,
      refuse: true,
    }),
    recordApproval: assign((_, approvalDigest: string) => ({ approvalDigest })),
    recordCommand: assign((_, commandId: string) => ({ commandId })),
    recordCode: assign((_, code: string | null) => ({ code })),
    requireMachine: assign({ confirmation: 'machine' }),
    recordMachineConfirmation: assign({ confirmedOnMachine: true }),
    recordCancel: assign({ cancelRequested: true }),
  },
  guards: {
    isReviewed: ({ context }, seen: { reviewDigest: string; manifestDigest: string }) =>
      context.reviewDigest === seen.reviewDigest && context.manifestDigest === seen.manifestDigest,
    isManifest: ({ context }, manifestDigest: string) => context.manifestDigest === manifestDigest,
    isEndedAs: ({ context }, end: { is: ApplyOutcome; outcome: ApplyOutcome; manifestDigest: string }) =>
      end.is === end.outcome && context.manifestDigest === end.manifestDigest,
    isMachineMissing: ({ context }) => context.confirmation === 'machine' && !context.confirmedOnMachine,
    isCancelling: ({ context }) => context.cancelRequested,
  },
});

type Of<Type extends PromotionEvent['type']> = { event: Extract<PromotionEvent, { type: Type }> };

/** One branch of an ending that the machine proved. */
const endedAs = <Is extends ApplyOutcome>(is: Is) =>
  ({
    guard: {
      type: 'isEndedAs',
      params: ({ event }: Of<'promotion.ended'>) => {
        return { is, outcome: event.outcome, manifestDigest: event.manifestDigest };
      },
    },
    target: is,
    actions: { type: 'recordCode', params: ({ event }: Of<'promotion.ended'>) => event.code },
  }) as const;

const invalidResult = { actions: { type: 'refuse', params: { code: 'PROMOTION_RESULT_INVALID' } } } as const;

/** The machine says no, or it broke, before anything of the person's tree was touched. */
const endedEarly = [endedAs('refused'), endedAs('failed'), invalidResult] as const;
const endedLate = [
  endedAs('promoted'),
  endedAs('refused'),
  endedAs('failed'),
  endedAs('rolled-back'),
  invalidResult,
] as const;

const withdrawn = {
  target: 'refused',
  actions: { type: 'recordCode', params: ({ event }: Of<'promotion.withdrawn'>) => event.code },
} as const;

/** A wish to cancel what the machine already has: asked once, decided by what the machine proves. */
const cancelOnMachine = [
  { guard: 'isCancelling', actions: { type: 'refuse', params: { code: 'ALREADY_CANCELLING' } } },
  { actions: ['recordCancel', 'cancelCommand'] },
] as const;

const askedOnMachine = { target: 'awaiting-machine', actions: ['requireMachine', 'showMachineConfirmation'] } as const;

const ended = <Outcome extends PromotionOutput['outcome']>(outcome: Outcome, holds: string) =>
  ({ type: 'final', meta: { holds, permits: [] }, output: outcome }) as const;

/** One promotion; its state is stored with its row and stepped in one transaction with the audit entry. */
export const promotionMachine = promotion.createMachine({
  id: 'promotion',
  version: '1',
  context: ({ input }) => ({
    ...input,
    approvalDigest: null,
    commandId: null,
    confirmedOnMachine: false,
    cancelRequested: false,
    code: null,
  }),
  output: ({ context, event }) => {
    // Every final state is made by `ended`, whose output is the outcome; xstate types the event of the end as unknown.
    const outcome = event.output as PromotionOutput['outcome'];
    return { promotionId: context.promotionId, outcome, code: context.code };
  },
  initial: 'prepared',
  states: {
    prepared: {
      meta: { holds: 'A person sees the reviewed changes and may approve them once; nothing was sent.', permits: [] },
      on: {
        'promotion.approve': [
          {
            guard: {
              type: 'isReviewed',
              params: ({ event }) => ({ reviewDigest: event.reviewDigest, manifestDigest: event.manifestDigest }),
            },
            target: 'approved',
            actions: [
              { type: 'recordApproval', params: ({ event }) => event.approvalDigest },
              { type: 'dispatchCommand', params: ({ event }) => ({ approvalDigest: event.approvalDigest }) },
            ],
          },
          { actions: { type: 'refuse', params: { code: 'PROMOTION_REVIEW_STALE' } } },
        ],
        'promotion.withdrawn': withdrawn,
        'promotion.cancel': { target: 'cancelled' },
        'promotion.expired': { target: 'expired' },
      },
    },
    approved: {
      meta: {
        holds:
          'A person confirmed these digests with the password; the facts are checked once more and no command exists.',
        permits: ['server.make-promotion'],
      },
      on: {
        'promotion.dispatched': {
          target: 'dispatched',
          actions: { type: 'recordCommand', params: ({ event }) => event.commandId },
        },
        'promotion.withdrawn': withdrawn,
        'promotion.cancel': { target: 'cancelled' },
        'promotion.expired': { target: 'expired' },
      },
    },
    dispatched: {
      meta: {
        holds: 'The command with the signed approval is queued or on the machine; the journal has not begun.',
        permits: ['server.lease', 'server.take-receipt'],
      },
      on: {
        'promotion.machine-asked': askedOnMachine,
        'promotion.applying': [
          {
            guard: 'isMachineMissing',
            actions: { type: 'refuse', params: { code: 'MACHINE_CONFIRMATION_REQUIRED' } },
          },
          { target: 'applying' },
        ],
        'promotion.ended': endedEarly,
        'promotion.lost': { target: 'unknown' },
        'promotion.cancelled': { target: 'cancelled' },
        'promotion.expired': { target: 'expired' },
        'promotion.cancel': cancelOnMachine,
      },
    },
    'awaiting-machine': {
      meta: {
        holds:
          'The machine has the approval and waits for a person there to confirm the same manifest; nothing is applied.',
        permits: ['server.take-receipt'],
      },
      on: {
        'promotion.machine-confirmed': [
          {
            guard: { type: 'isManifest', params: ({ event }) => event.manifestDigest },
            target: 'dispatched',
            actions: 'recordMachineConfirmation',
          },
          { actions: { type: 'refuse', params: { code: 'PROMOTION_REVIEW_STALE' } } },
        ],
        'promotion.ended': endedEarly,
        'promotion.lost': { target: 'unknown' },
        'promotion.cancelled': { target: 'cancelled' },
        'promotion.expired': { target: 'expired' },
        'promotion.cancel': cancelOnMachine,
      },
    },
    applying: {
      meta: {
        holds: 'The machine recorded the start; its journal leads to the approved tree or back to the old one.',
        permits: ['server.take-receipt'],
      },
      on: {
        'promotion.ended': endedLate,
        'promotion.lost': { target: 'unknown' },
        'promotion.cancel': cancelOnMachine,
      },
    },
    unknown: {
      meta: {
        holds: 'The tree is the old one or the approved one, and the machine has not said which.',
        permits: ['server.take-late-receipt'],
      },
      on: { 'promotion.ended': endedLate },
    },
    promoted: ended('promoted', 'The approved tree stands; the machine proved its manifest.'),
    refused: ended('refused', 'A gate, or a person at the machine, said no; the old tree stands.'),
    failed: ended(
      'failed',
      'It was tried and broke; what the machine reported stands beside it, a person may have to repair.',
    ),
    'rolled-back': ended('rolled-back', 'It was begun and undone; the old tree stands.'),
    cancelled: ended('cancelled', 'Somebody gave up before the machine began.'),
    expired: ended('expired', 'Its time passed before the machine began.'),
  },
});
