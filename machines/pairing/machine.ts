/*
 * One pairing as the control plane keeps it, of either flow (N-060 to N-079). What the machine does is joining.ts: the two sides
 * know different facts, and each must reach its end without believing the other's.
 *
 * INVARIANT 1  `confirmed` needs both sides: the machine's signed request and a person's deliberate confirmation (N-060, N-067).
 * INVARIANT 2  The fingerprint that a person confirms or claims is the one of the request, else nothing changes (N-065, N-075).
 * INVARIANT 3  A claim never activates by itself; the machine must confirm exactly the facts that stand at that moment (N-076, N-077).
 * INVARIANT 4  A request is used once: the same bytes get the same answer, other bytes are refused (N-063, N-071, N-074).
 * INVARIANT 5  The states of one flow cannot be reached by the events of the other (N-079).
 * INVARIANT 6  What is replaced is revoked in the step that confirms, so that never two executors live (N-079).
 *
 * No state waits on a timer here: the control plane owns the clock and says `pairing.expired` after ten minutes.
 */
import { assign, setup } from 'xstate';
import { declared } from '../meta.ts';
import type { StateMeta } from '../meta.ts';
import { unprovidedActions } from '../unprovided.ts';
import type {
  PairingActions,
  PairingContext,
  PairingEvent,
  PairingInput,
  PairingOutput,
  PairingSide,
} from './types.ts';

const pairing = setup({
  types: declared<{
    context: PairingContext;
    events: PairingEvent;
    input: PairingInput;
    output: PairingOutput;
    meta: StateMeta;
  }>(),
  actions: {
    ...unprovidedActions<PairingActions>({
      repeatAnswer: true,
      activateExecutor: true,
      forgetVerifier: true,
      refuse: true,
    }),
    recordRequest: assign((_, request: { requestDigest: string; fingerprint: string }) => request),
    recordClaim: assign((_, claimDigest: string) => ({ claimDigest })),
    recordSide: assign((_, endedBy: PairingSide) => ({ endedBy })),
  },
  guards: {
    isCodeFlow: ({ context }) => context.flow === 'code',
    isSameRequest: ({ context }, requestDigest: string) => context.requestDigest === requestDigest,
    isSameKey: ({ context }, fingerprint: string) => context.fingerprint === fingerprint,
    isSameClaim: ({ context }, claimDigest: string) => context.claimDigest === claimDigest,
    isStandingClaim: ({ context }, claim: { fingerprint: string; signed: string; current: string }) =>
      context.fingerprint === claim.fingerprint &&
      context.claimDigest === claim.signed &&
      claim.signed === claim.current,
  },
});

type Of<Type extends PairingEvent['type']> = { event: Extract<PairingEvent, { type: Type }> };

/** Every waiting state ends by either side and by time. */
const endings = {
  'pairing.cancel': {
    target: 'cancelled',
    actions: { type: 'recordSide', params: ({ event }: Of<'pairing.cancel'>) => event.by },
  },
  'pairing.reject': {
    target: 'refused',
    actions: { type: 'recordSide', params: ({ event }: Of<'pairing.reject'>) => event.by },
  },
  'pairing.expired': { target: 'expired' },
} as const;

/** The machine asks again: the same bytes get the same answer (INVARIANT 4). */
const repeated = [
  {
    guard: { type: 'isSameRequest', params: ({ event }: { event: { requestDigest: string } }) => event.requestDigest },
    actions: 'repeatAnswer',
  },
  { actions: { type: 'refuse', params: { code: 'REQUEST_CONFLICT' } } },
] as const;

const activate = {
  type: 'activateExecutor',
  params: ({ context, event }: { context: PairingContext; event: { fingerprint: string } }) => {
    return { fingerprint: event.fingerprint, replaces: context.replaces };
  },
} as const;

const sameKey = {
  type: 'isSameKey',
  params: ({ event }: { event: { fingerprint: string } }) => event.fingerprint,
} as const;
const otherKey = { actions: { type: 'refuse', params: { code: 'FINGERPRINT_NOT_CONFIRMED' } } } as const;

/** A final state: the verifier of code or challenge is of no more use. */
const ended = <Outcome extends PairingOutput['outcome']>(outcome: Outcome, holds: string) =>
  ({ type: 'final', meta: { holds, permits: [] }, entry: 'forgetVerifier', output: outcome }) as const;

/** One pairing; its state is stored with its row and stepped in one transaction with the audit entry. */
export const pairingMachine = pairing.createMachine({
  id: 'pairing',
  version: '1',
  context: ({ input }) => ({ ...input, claimDigest: null, endedBy: null }),
  output: ({ context, event }) => {
    const { pairingId, replaces, endedBy } = context;
    // Every final state is made by `ended`, whose output is the outcome; xstate types the event of the end as unknown.
    const outcome = event.output as PairingOutput['outcome'];
    return { pairingId, outcome, replaces, by: endedBy };
  },
  initial: 'requested',
  states: {
    requested: {
      meta: { holds: 'The flow is chosen by whoever began; it decides where the pairing waits.', permits: [] },
      always: [{ guard: 'isCodeFlow', target: 'offered' }, { target: 'issued' }],
    },
    issued: {
      meta: {
        holds:
          'A person asked for an enrolment; of its challenge only the SHA-256 verifier is kept, and no machine has answered.',
        permits: ['server.take-request'],
      },
      on: {
        ...endings,
        'pairing.submitted': {
          target: 'submitted',
          actions: {
            type: 'recordRequest',
            params: ({ event }) => ({ requestDigest: event.requestDigest, fingerprint: event.fingerprint }),
          },
        },
      },
    },
    submitted: {
      meta: {
        holds:
          'One machine proved its key over the challenge; its fingerprint is shown and no person has confirmed it.',
        permits: ['server.take-request', 'server.activate'],
      },
      on: {
        ...endings,
        'pairing.submitted': [
          {
            guard: { type: 'isSameRequest', params: ({ event }) => event.requestDigest },
            actions: 'repeatAnswer',
          },
          { actions: { type: 'refuse', params: { code: 'ENROLLMENT_USED' } } },
        ],
        'pairing.confirmed-by-person': [{ guard: sameKey, target: 'confirmed', actions: activate }, otherKey],
      },
    },
    offered: {
      meta: {
        holds: 'A machine holds a code of eight digits of which a keyed verifier is kept; no person has claimed it.',
        permits: ['server.take-request', 'server.take-claim'],
      },
      on: {
        ...endings,
        'pairing.repeated': repeated,
        'pairing.claimed': [
          {
            guard: sameKey,
            target: 'claimed',
            actions: { type: 'recordClaim', params: ({ event }) => event.claimDigest },
          },
          otherKey,
        ],
      },
    },
    claimed: {
      meta: {
        holds:
          'A signed-in person chose label, scope and team for this fingerprint; the machine has not confirmed them.',
        permits: ['server.take-request', 'server.take-claim', 'server.activate'],
      },
      on: {
        ...endings,
        'pairing.repeated': repeated,
        'pairing.claimed': [
          { guard: { type: 'isSameClaim', params: ({ event }) => event.claimDigest }, actions: 'repeatAnswer' },
          { actions: { type: 'refuse', params: { code: 'CLAIM_CONFLICT' } } },
        ],
        'pairing.confirmed-by-machine': [
          {
            guard: {
              type: 'isStandingClaim',
              params: ({ event }) => {
                return { fingerprint: event.fingerprint, signed: event.claimDigest, current: event.currentClaimDigest };
              },
            },
            target: 'confirmed',
            actions: activate,
          },
          { actions: { type: 'refuse', params: { code: 'CLAIM_CHANGED' } } },
        ],
      },
    },
    confirmed: ended(
      'confirmed',
      'Both sides confirmed this key; the executor waits for its first proof of possession.',
    ),
    refused: ended('refused', 'A person on one side said no.'),
    cancelled: ended('cancelled', 'One side gave up before it was confirmed.'),
    expired: ended('expired', 'Ten minutes passed before it was confirmed.'),
  },
});
