import type { AnyEventObject } from 'xstate';

import type { Golden } from './scenario.ts';

const code = { pairingId: 'pair-1', flow: 'code', requestDigest: 'request-a', fingerprint: 'key-a', replaces: null };
const enrolment = { ...code, flow: 'enrolment', requestDigest: null, fingerprint: null };
const claimed = { type: 'pairing.claimed', fingerprint: 'key-a', claimDigest: 'claim-1' };
const submitted = { type: 'pairing.submitted', requestDigest: 'request-a', fingerprint: 'key-a' };

const ends = (state: string, input: unknown, way: readonly AnyEventObject[]): Golden[] =>
  [
    { name: 'cancelled', event: { type: 'pairing.cancel', by: 'machine' } },
    { name: 'rejected', event: { type: 'pairing.reject', by: 'person' } },
    { name: 'expired', event: { type: 'pairing.expired' } },
  ].map(({ name, event }) => {
    return {
      name: `${state}-${name}`,
      tells: `A pairing that is ${state} is ${name}.`,
      input,
      events: [...way, event],
    };
  });

export const pairingGoldens: readonly Golden[] = [
  {
    name: 'code-confirmed-by-both-sides',
    tells:
      'Asked again and claimed again without effect; a claim never activates; changed facts are refused; then both confirm.',
    input: { ...code, replaces: 'exec-0' },
    events: [
      { type: 'pairing.repeated', requestDigest: 'request-a' },
      { type: 'pairing.repeated', requestDigest: 'request-b' },
      { ...claimed, fingerprint: 'key-b' },
      claimed,
      claimed,
      { ...claimed, claimDigest: 'claim-2' },
      { type: 'pairing.repeated', requestDigest: 'request-a' },
      { type: 'pairing.repeated', requestDigest: 'request-b' },
      {
        type: 'pairing.confirmed-by-machine',
        fingerprint: 'key-a',
        claimDigest: 'claim-1',
        currentClaimDigest: 'claim-with-another-team',
      },
      {
        type: 'pairing.confirmed-by-machine',
        fingerprint: 'key-a',
        claimDigest: 'claim-1',
        currentClaimDigest: 'claim-1',
      },
    ],
  },
  {
    name: 'enrolment-confirmed',
    tells:
      'The challenge serves once; the same request is answered again; the person confirms the fingerprint that was shown.',
    input: enrolment,
    events: [
      submitted,
      submitted,
      { ...submitted, requestDigest: 'request-b' },
      { type: 'pairing.confirmed-by-person', fingerprint: 'key-b' },
      { type: 'pairing.confirmed-by-person', fingerprint: 'key-a' },
    ],
  },
  ...ends('issued', enrolment, []),
  ...ends('submitted', enrolment, [submitted]),
  ...ends('offered', code, []),
  ...ends('claimed', code, [claimed]),
];
