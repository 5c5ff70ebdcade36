import { changedClaim, claimed, joining, known, refusedBy, settled } from './standing.ts';

/** From the control plane's offer to both confirmations: asked every few seconds, shown to the person, confirmed as shown. */
export const offered = joining.createStateConfig({
  meta: { holds: 'The control plane knows the request; code and fingerprints are shown at the machine.', permits: [] },
  after: { expiry: { target: '#joining.settling' } },
  on: {
    'joining.cancel': { target: '#joining.telling', actions: { type: 'recordWish', params: 'cancel' } },
  },
  initial: 'asking',
  states: {
    asking: {
      meta: {
        holds: 'One question is open: how far is the person on the page.',
        permits: ['link.call', 'keystore.sign'],
      },
      invoke: {
        id: 'askStanding',
        src: 'askStanding',
        input: ({ context }) => ({ pairingId: known(context.offer).pairingId }),
        onDone: [...settled, claimed, { target: 'pausing' }],
        onError: { target: 'pausing' },
      },
    },
    pausing: {
      meta: { holds: 'Nobody has claimed it, or no answer came; it is asked again.', permits: [] },
      after: { poll: { target: 'asking' } },
    },
    reviewing: {
      meta: { holds: 'The claim is shown; a person at the machine decides until the offer expires.', permits: [] },
      on: {
        'claim.confirm': [
          { guard: { type: 'isShownClaim', params: ({ event }) => event.claimDigest }, target: 'refetching' },
          { actions: { type: 'refuse', params: { code: 'CLAIM_CHANGED' } } },
        ],
        'claim.reject': { target: '#joining.telling', actions: { type: 'recordWish', params: 'reject' } },
      },
    },
    refetching: {
      meta: {
        holds: 'The person confirmed what was shown; the claim is fetched again before anything is signed.',
        permits: ['link.call', 'keystore.sign'],
      },
      invoke: {
        id: 'fetchClaim',
        src: 'askStanding',
        input: ({ context }) => ({ pairingId: known(context.offer).pairingId }),
        onDone: [
          ...settled,
          { guard: { type: 'isSameClaim', params: ({ event }) => event.output }, target: 'confirming' },
          changedClaim,
          { target: 'pausing' },
        ],
        onError: { target: 'repeating' },
      },
    },
    repeating: {
      meta: { holds: 'The person confirmed and no answer came; the claim is fetched again.', permits: [] },
      after: { poll: { target: 'refetching' } },
    },
    confirming: {
      meta: {
        holds: 'The digest of exactly the shown claim is signed and sent; whether it counted is not known.',
        permits: ['link.call', 'keystore.sign'],
      },
      invoke: {
        id: 'sendConfirmation',
        src: 'sendConfirmation',
        input: ({ context }) => ({
          pairingId: known(context.offer).pairingId,
          claimDigest: known(context.claim).claimDigest,
        }),
        onDone: [...settled, refusedBy, changedClaim, { target: 'pausing' }],
        onError: { target: 'repeating' },
      },
      on: {
        'joining.cancel': { actions: { type: 'refuse', params: { code: 'ALREADY_CONFIRMED' } } },
      },
    },
  },
});
