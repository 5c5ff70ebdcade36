import type { AnyEventObject } from 'xstate';

import type { Golden } from './scenario.ts';

const input = { commandId: 'cmd-1', executorId: 'exec-1' };
const lease = { type: 'command.lease', epoch: 7, envelopeDigest: 'envelope', receiptDigest: 'leased' };
const accepted = { type: 'receipt.accepted', epoch: 7, previousDigest: 'leased', receiptDigest: 'accepted' };
const started = { type: 'receipt.started', epoch: 7, previousDigest: 'accepted', receiptDigest: 'started' };
const ending = (outcome: string) => ({
  outcome,
  code: outcome === 'succeeded' ? null : 'CODE',
  receiptDigest: 'result',
});
const result = (outcome: string) => {
  return { type: 'result.received', epoch: 7, previousDigest: 'started', ending: ending(outcome) };
};
const notStarted = (outcome: string, previousDigest: string) => {
  return { type: 'receipt.not-started', epoch: 7, previousDigest, ending: ending(outcome) };
};
const unacceptable = {
  type: 'result.unacceptable',
  epoch: 7,
  previousDigest: 'started',
  receiptDigest: 'result',
  code: 'RESULT_TOO_LARGE',
};
const replaced = { type: 'result.replaced', epoch: 7, previousDigest: 'result', receiptDigest: 'replacement' };
const cancel = { type: 'command.cancel', by: 'person' };
const lost = { type: 'connection.lost', epoch: 7 };
const expired = { type: 'command.expired' };
const lateOf = (outcome: string) => {
  return { type: 'receipt.late', leasedDigest: 'leased', acceptedDigest: 'accepted', ending: ending(outcome) };
};

/** The same event from a connection that did not lease the command, and out of its place in the chain. */
const wrong = (event: AnyEventObject): AnyEventObject[] => [
  { ...event, epoch: 8 },
  { ...event, previousDigest: 'elsewhere' },
];

const ways: { readonly [state: string]: readonly AnyEventObject[] } = {
  leased: [lease],
  accepted: [lease, accepted],
  started: [lease, accepted, started],
  'cancelling-leased': [lease, cancel],
  'cancelling-accepted': [lease, accepted, cancel],
  'cancelling-started': [lease, accepted, started, cancel],
  replacing: [lease, accepted, started, unacceptable],
};
const way = (state: string): readonly AnyEventObject[] => ways[state] ?? [];

const one = (name: string, tells: string, events: readonly AnyEventObject[]): Golden => ({
  name,
  tells,
  input,
  events,
});

/** Endings that the machine proves in a state, each first from a wrong place. */
const endings = (state: string, event: (outcome: string) => AnyEventObject, outcomes: readonly string[]): Golden[] =>
  outcomes.map((outcome) =>
    one(`${state}-${outcome}`, `In ${state} the machine proves that it ended as ${outcome}.`, [
      ...way(state),
      ...wrong(event(outcome)),
      event(outcome),
    ]),
  );

const before = ['refused', 'cancelled', 'expired'];
const since = ['succeeded', 'failed', 'cancelled', 'expired'];

export const commandGoldens: readonly Golden[] = [
  one(
    'cancelled-while-it-ran',
    'Each receipt first from a wrong place; a cancel on the way; it had succeeded all the same.',
    [lease, ...wrong(accepted), accepted, ...wrong(started), started, cancel, cancel, result('succeeded')],
  ),
  one('cancelled-before-it-was-accepted', 'A cancel overtakes; the machine goes on to report each step.', [
    lease,
    cancel,
    ...wrong(accepted),
    accepted,
    ...wrong(started),
    started,
    ...wrong(unacceptable),
    unacceptable,
    ...wrong(replaced),
    replaced,
  ]),
  one('result-refused', 'A result that cannot be taken is replaced once and closed as failed.', [
    ...way('started'),
    ...wrong(unacceptable),
    unacceptable,
    replaced,
  ]),
  one('queued-refused', 'The dispatch gate says no.', [{ type: 'command.refused', code: 'local_policy_denied' }]),
  one('queued-cancelled', 'Cancelled before anybody leased it.', [cancel]),
  one('queued-expired', 'Its time passes before anybody leased it.', [expired]),
  ...endings('leased', (outcome) => notStarted(outcome, 'leased'), before),
  ...endings('accepted', (outcome) => notStarted(outcome, 'accepted'), before),
  ...endings('cancelling-leased', (outcome) => notStarted(outcome, 'leased'), before),
  ...endings('cancelling-accepted', (outcome) => notStarted(outcome, 'accepted'), before),
  ...endings('started', result, since),
  ...endings('cancelling-started', result, since),
  ...Object.keys(ways).flatMap((state) => [
    one(
      `${state}-connection-lost`,
      'A late word of an older connection changes nothing; the loss of its own is unknown.',
      [...way(state), { ...lost, epoch: 6 }, lost],
    ),
    one(`${state}-lifetime-passed`, 'Its lifetime passes without an ending: unknown.', [...way(state), expired]),
  ]),
  ...['succeeded', 'failed', 'refused', 'cancelled', 'expired'].map((outcome) =>
    one(`unknown-settled-${outcome}`, 'A chain of another lease settles nothing; its own does, once.', [
      ...way('started'),
      lost,
      { ...lateOf(outcome), leasedDigest: 'another' },
      lateOf(outcome),
    ]),
  ),
];
