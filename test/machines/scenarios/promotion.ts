import type { AnyEventObject } from 'xstate';

import type { Golden } from './scenario.ts';

const input = {
  promotionId: 'prom-1',
  runId: 'run-1',
  executorId: 'exec-1',
  reviewDigest: 'review-1',
  manifestDigest: 'manifest-1',
  confirmation: 'page',
};
const onMachine = { ...input, confirmation: 'machine' };
const approve = {
  type: 'promotion.approve',
  reviewDigest: 'review-1',
  manifestDigest: 'manifest-1',
  approvalDigest: 'approval-1',
};
const dispatched = { type: 'promotion.dispatched', commandId: 'cmd-1' };
const asked = { type: 'promotion.machine-asked' };
const applying = { type: 'promotion.applying' };
const ended = (outcome: string, code: string | null = null, manifestDigest = 'manifest-1') => ({
  type: 'promotion.ended',
  outcome,
  code,
  manifestDigest,
});
const cancel = { type: 'promotion.cancel', by: 'person' };

const onItsWay = [approve, dispatched];
const waiting = [...onItsWay, asked];
const running = [...onItsWay, applying];
const lost = [...running, { type: 'promotion.lost' }];

const one = (name: string, tells: string, events: readonly AnyEventObject[], from: unknown = input): Golden => {
  return { name, tells, input: from, events };
};

/** What every state that the machine has something of can end with before the journal begins. */
const early = (state: string, way: readonly AnyEventObject[]): Golden[] => [
  one(`${state}-refused`, 'The machine says no before it begins.', [
    ...way,
    ended('refused', 'PROMOTION_CONFLICT', 'manifest-2'),
    ended('refused', 'PROMOTION_CONFLICT'),
  ]),
  one(`${state}-failed`, 'It breaks before it begins.', [...way, ended('failed', 'HELPER_UNAVAILABLE')]),
  one(`${state}-lost`, 'Its outcome is lost.', [...way, { type: 'promotion.lost' }]),
  one(`${state}-cancelled`, 'A cancel is asked once; the machine had begun nothing.', [
    ...way,
    cancel,
    cancel,
    { type: 'promotion.cancelled' },
  ]),
  one(`${state}-expired`, 'Ten minutes pass.', [...way, { type: 'promotion.expired' }]),
];

/** What an apply, or a late receipt of one, can end with. */
const late = (state: string, way: readonly AnyEventObject[]): Golden[] =>
  ['promoted', 'refused', 'failed', 'rolled-back'].map((outcome) =>
    one(`${state}-${outcome}`, `It ends as ${outcome}; a manifest that nobody approved is not believed.`, [
      ...way,
      ended(outcome, null, 'manifest-2'),
      ended(outcome),
    ]),
  );

export const promotionGoldens: readonly Golden[] = [
  one(
    'confirmed-on-the-machine-too',
    'The page alone does not suffice where the owner requires the machine.',
    [
      { ...approve, manifestDigest: 'manifest-2' },
      approve,
      dispatched,
      applying,
      asked,
      { type: 'promotion.machine-confirmed', manifestDigest: 'manifest-2' },
      { type: 'promotion.machine-confirmed', manifestDigest: 'manifest-1' },
      applying,
      cancel,
      cancel,
      ended('promoted'),
    ],
    onMachine,
  ),
  one('prepared-withdrawn', 'A gate closes before the approval.', [
    { type: 'promotion.withdrawn', code: 'operation_ungranted' },
  ]),
  one('prepared-cancelled', 'The person thinks better of it.', [cancel]),
  one('prepared-expired', 'Ten minutes pass before the approval.', [{ type: 'promotion.expired' }]),
  one('approved-withdrawn', 'A gate closes between the approval and the command.', [
    approve,
    { type: 'promotion.withdrawn', code: 'offline' },
  ]),
  one('approved-cancelled', 'Cancelled before a command exists.', [approve, cancel]),
  one('approved-expired', 'Ten minutes pass before a command exists.', [approve, { type: 'promotion.expired' }]),
  ...early('dispatched', onItsWay),
  ...early('awaiting-machine', waiting),
  ...late('applying', running),
  ...late('unknown', lost),
];
