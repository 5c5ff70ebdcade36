import type { AnyEventObject } from 'xstate';

import { after, broke, done } from './scenario.ts';
import type { Golden } from './scenario.ts';

const input = { flow: 'code', replaces: null, prepared: null };
const prepared = { requestId: 'req-1', requestDigest: 'request-a', fingerprint: 'key-a' };
const resumed = { ...input, prepared };
const offer = { pairingId: 'pair-1', digits: '00420042', commandKeyFingerprint: 'command-key', remainingMs: 600_000 };
const claim = (claimDigest: string) => {
  return { standing: 'claimed', claim: { claimDigest, facts: { team: 'a name that no trace shows' } } };
};
const confirmed = { standing: 'confirmed', executorId: 'exec-1', commandKeyFingerprint: 'command-key' };
const otherKey = { ...confirmed, commandKeyFingerprint: 'another-key' };
const waiting = { standing: 'waiting' };
const refused = { refused: true, code: 'ENROLLMENT_EXPIRED' };
const durable = { durable: true };

const offered = [done('sendRequest', offer)];
const reviewing = [...offered, done('askStanding', claim('claim-1'))];
const refetching = [...reviewing, { type: 'claim.confirm', claimDigest: 'claim-1' }];
const confirming = [...refetching, done('fetchClaim', claim('claim-1'))];
const settling = [...offered, after('expiry', 'joining.offered')];
const cleared = done('dropRequest', { dropped: true });
const saved = [done('savePairing', durable), cleared];
const cancel = { type: 'joining.cancel' };

const one = (name: string, tells: string, events: readonly AnyEventObject[], from: unknown = resumed): Golden => {
  return { name, tells, input: from, events };
};

/** Every answer that settles a question, in each state that asks one. */
const settles = (state: string, actor: string, way: readonly AnyEventObject[]): Golden[] => [
  one(`${state}-confirmed`, 'Both sides have confirmed.', [...way, done(actor, confirmed), ...saved]),
  one(`${state}-other-key`, 'The command key is not the one that was shown.', [...way, done(actor, otherKey), cleared]),
  one(`${state}-refused`, 'A person said no.', [...way, done(actor, { standing: 'refused', by: 'person' }), cleared]),
  one(`${state}-ended-by-page`, 'The page gave up.', [
    ...way,
    done(actor, { standing: 'cancelled', by: 'person' }),
    cleared,
  ]),
  one(`${state}-expired`, 'The time passed.', [...way, done(actor, { standing: 'expired' }), cleared]),
];

export const joiningGoldens: readonly Golden[] = [
  one(
    'paired-from-the-beginning',
    'The request is durable before it is sent; a lost answer is met with the same bytes.',
    [
      done('prepareRequest', prepared),
      done('persistRequest', durable),
      broke('sendRequest'),
      after('retry', 'joining.retrying'),
      done('sendRequest', offer),
      broke('askStanding'),
      after('poll', 'joining.offered.pausing'),
      done('askStanding', waiting),
      after('poll', 'joining.offered.pausing'),
      done('askStanding', claim('claim-1')),
      { type: 'claim.confirm', claimDigest: 'claim-0' },
      { type: 'claim.confirm', claimDigest: 'claim-1' },
      broke('fetchClaim'),
      after('poll', 'joining.offered.repeating'),
      done('fetchClaim', claim('claim-2')),
      { type: 'claim.confirm', claimDigest: 'claim-2' },
      done('fetchClaim', claim('claim-2')),
      cancel,
      broke('sendConfirmation'),
      after('poll', 'joining.offered.repeating'),
      done('fetchClaim', confirmed),
      ...saved,
    ],
    input,
  ),
  one('not-prepared', 'No key could be made.', [broke('prepareRequest'), cleared], input),
  one(
    'preparing-refused',
    'A replacement is refused on this machine.',
    [done('prepareRequest', refused), cleared],
    input,
  ),
  one(
    'not-persisted',
    'The request could not be made durable, so nothing was sent.',
    [done('prepareRequest', prepared), broke('persistRequest'), cleared],
    input,
  ),
  one('sending-refused', 'The control plane refuses the request.', [
    done('sendRequest', refused),
    broke('dropRequest'),
  ]),
  one('sending-cancelled', 'Given up before an answer.', [cancel, cleared]),
  one('retrying-cancelled', 'Given up between two sends.', [broke('sendRequest'), cancel, cleared]),
  ...settles('asking', 'askStanding', offered),
  ...settles('refetching', 'fetchClaim', refetching),
  ...settles('confirming', 'sendConfirmation', confirming),
  ...settles('settling', 'askLastStanding', settling),
  one('refetching-withdrawn', 'The claim is gone when it is fetched again.', [
    ...refetching,
    done('fetchClaim', waiting),
    cancel,
    done('sendEnding', { told: true }),
    cleared,
  ]),
  one('confirming-changed', 'The control plane answers the confirmation with another claim.', [
    ...confirming,
    done('sendConfirmation', claim('claim-2')),
    { type: 'claim.reject' },
    broke('sendEnding'),
    cleared,
  ]),
  one('confirming-not-counted', 'The control plane answers that it still waits.', [
    ...confirming,
    done('sendConfirmation', waiting),
    cancel,
    done('sendEnding', { told: true }),
    cleared,
  ]),
  one('confirmation-refused', 'The control plane refuses the confirmation.', [
    ...confirming,
    done('sendConfirmation', { refused: true, code: 'CLAIM_CHANGED' }),
    cleared,
  ]),
  one('settling-waiting', 'The time passed and nobody had claimed it.', [
    ...settling,
    broke('askLastStanding'),
    after('retry', 'joining.unsettled'),
    done('askLastStanding', waiting),
    cleared,
  ]),
  one('settling-cancelled', 'Given up while nobody answers.', [
    ...settling,
    cancel,
    done('sendEnding', { told: true }),
    cleared,
  ]),
  one('unsettled-cancelled', 'Given up between two last questions.', [
    ...settling,
    broke('askLastStanding'),
    cancel,
    done('sendEnding', { told: true }),
    cleared,
  ]),
  one('not-saved', 'Paired state could not be made durable: the request stays for a new start.', [
    ...offered,
    done('askStanding', confirmed),
    broke('savePairing'),
  ]),
];
