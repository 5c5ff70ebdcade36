import type { PayloadRules, Rule } from '../trace/redact.ts';

/** What a trace may show of a pairing on the control plane: no code, no challenge and no name of a person, machine or team is in one. */
export const pairingPayload: PayloadRules = {
  'xstate.init': {
    input: { pairingId: 'kept', flow: 'kept', requestDigest: 'kept', fingerprint: 'kept', replaces: 'kept' },
  },
  'pairing.submitted': { requestDigest: 'kept', fingerprint: 'kept' },
  'pairing.repeated': { requestDigest: 'kept' },
  'pairing.claimed': { fingerprint: 'kept', claimDigest: 'kept' },
  'pairing.confirmed-by-person': { fingerprint: 'kept' },
  'pairing.confirmed-by-machine': { fingerprint: 'kept', claimDigest: 'kept', currentClaimDigest: 'kept' },
  'pairing.reject': { by: 'kept' },
  'pairing.cancel': { by: 'kept' },
};

const prepared = { requestId: 'kept', requestDigest: 'kept', fingerprint: 'kept' } as const satisfies Rule;
const refused = { refused: 'kept', code: 'kept' } as const satisfies Rule;
const standing = {
  ...refused,
  standing: 'kept',
  claim: { claimDigest: 'kept' },
  executorId: 'kept',
  commandKeyFingerprint: 'kept',
  by: 'kept',
} as const satisfies Rule;

/** What a trace may show of a joining: the eight digits and the facts of a claim are dropped. */
export const joiningPayload: PayloadRules = {
  'xstate.init': { input: { flow: 'kept', replaces: 'kept', prepared } },
  'xstate.done.actor.prepareRequest': { output: { ...prepared, ...refused } },
  'xstate.done.actor.sendRequest': {
    output: { ...refused, pairingId: 'kept', commandKeyFingerprint: 'kept', remainingMs: 'kept' },
  },
  'xstate.done.actor.askStanding': { output: standing },
  'xstate.done.actor.askLastStanding': { output: standing },
  'xstate.done.actor.fetchClaim': { output: standing },
  'xstate.done.actor.sendConfirmation': { output: standing },
  'claim.confirm': { claimDigest: 'kept' },
};
