/*
 * One pairing on the machine, of either flow (N-060 to N-079). What the control plane keeps of it is machine.ts, which says why they
 * are two.
 *
 * INVARIANT 1  The exact signed request is durable before the first packet, and only its persisted bytes are ever sent (N-062).
 * INVARIANT 2  A lost answer is met with the same bytes, never with a new key (N-063).
 * INVARIANT 3  In the code flow nothing is confirmed that a person at the machine did not see: the claim is fetched again just before,
 *              and another digest is shown anew (N-076, N-077).
 * INVARIANT 4  The command key that is pinned is the one whose fingerprint was shown with the code (N-501).
 * INVARIANT 5  Paired state is durable before the pending record is dropped; where it cannot be, the record stays and a new start
 *              resumes it (N-077).
 * INVARIANT 6  A joining that ends otherwise drops its record and its key (N-068).
 */
import { offered } from './offered.ts';
import { ended, joining, known, refusedBy, settled } from './standing.ts';

/** One pairing of a machine; the CLI shows what it emits and sends the person's answers. */
export const joiningMachine = joining.createMachine({
  id: 'joining',
  version: '1',
  context: ({ input }) => ({
    ...input,
    offer: null,
    claim: null,
    executorId: null,
    attempt: 0,
    wish: 'cancel',
    ending: 'failed',
    code: null,
  }),
  output: ({ context }) => ({ outcome: context.ending, executorId: context.executorId, code: context.code }),
  initial: 'starting',
  states: {
    starting: {
      meta: {
        holds: 'A request of an earlier start is on disk, or none is; nothing was sent by this one.',
        permits: [],
      },
      always: [{ guard: 'isPrepared', target: 'sending' }, { target: 'preparing' }],
    },
    preparing: {
      meta: {
        holds: 'A key is made and a request is built and signed by it; nothing was sent.',
        permits: ['keystore.generate', 'keystore.sign'],
      },
      invoke: {
        id: 'prepareRequest',
        src: 'prepareRequest',
        input: ({ context }) => ({ flow: context.flow, replaces: context.replaces }),
        onDone: [
          refusedBy,
          { target: 'persisting', actions: { type: 'recordPrepared', params: ({ event }) => event.output } },
        ],
        onError: {
          target: 'clearing',
          actions: { type: 'recordEnding', params: { ending: 'failed', code: 'REQUEST_NOT_PREPARED' } },
        },
      },
    },
    persisting: {
      meta: { holds: 'The signed bytes are being made durable; nothing was sent.', permits: ['state.write'] },
      invoke: {
        id: 'persistRequest',
        src: 'persistRequest',
        input: ({ context }) => known(context.prepared),
        onDone: { target: 'sending' },
        onError: {
          target: 'clearing',
          actions: { type: 'recordEnding', params: { ending: 'failed', code: 'STATE_UNWRITABLE' } },
        },
      },
    },
    sending: {
      meta: { holds: 'The persisted bytes are sent; no answer is known.', permits: ['link.call'] },
      invoke: {
        id: 'sendRequest',
        src: 'sendRequest',
        input: ({ context }) => ({ requestId: known(context.prepared).requestId }),
        onDone: [
          refusedBy,
          {
            target: 'offered',
            actions: [{ type: 'recordOffer', params: ({ event }) => event.output }, 'showOffer'],
          },
        ],
        onError: { target: 'retrying', actions: ['countAttempt', 'showRetry'] },
      },
      on: {
        'joining.cancel': { target: 'clearing', actions: { type: 'recordWish', params: 'cancel' } },
      },
    },
    retrying: {
      meta: { holds: 'No answer came; the same bytes are sent again after a growing wait.', permits: [] },
      after: { retry: { target: 'sending' } },
      on: {
        'joining.cancel': { target: 'clearing', actions: { type: 'recordWish', params: 'cancel' } },
      },
    },
    offered,
    settling: {
      meta: {
        holds: 'The time of the offer passed; the control plane is asked whether it was confirmed before that.',
        permits: ['link.call', 'keystore.sign'],
      },
      invoke: {
        id: 'askLastStanding',
        src: 'askStanding',
        input: ({ context }) => ({ pairingId: known(context.offer).pairingId }),
        onDone: [
          ...settled,
          {
            target: 'clearing',
            actions: { type: 'recordEnding', params: { ending: 'expired', code: 'PAIRING_EXPIRED' } },
          },
        ],
        onError: { target: 'unsettled', actions: ['countAttempt', 'showRetry'] },
      },
      on: {
        'joining.cancel': { target: 'telling', actions: { type: 'recordWish', params: 'cancel' } },
      },
    },
    unsettled: {
      meta: { holds: 'The time passed and nobody answered; it is asked again after a growing wait.', permits: [] },
      after: { retry: { target: 'settling' } },
      on: {
        'joining.cancel': { target: 'telling', actions: { type: 'recordWish', params: 'cancel' } },
      },
    },
    telling: {
      meta: {
        holds: 'The person here ended it; the control plane is told, and forgets it by itself where that fails.',
        permits: ['link.call', 'keystore.sign'],
      },
      invoke: {
        id: 'sendEnding',
        src: 'sendEnding',
        input: ({ context }) => ({ pairingId: known(context.offer).pairingId, ending: context.wish }),
        onDone: { target: 'clearing' },
        onError: { target: 'clearing' },
      },
    },
    saving: {
      meta: {
        holds: 'Both sides confirmed; paired state and the pinned command key are being made durable.',
        permits: ['state.write'],
      },
      invoke: {
        id: 'savePairing',
        src: 'savePairing',
        input: ({ context }) => ({
          requestId: known(context.prepared).requestId,
          executorId: known(context.executorId),
          fingerprint: known(context.prepared).fingerprint,
          commandKeyFingerprint: known(context.offer).commandKeyFingerprint,
          replaces: context.replaces,
        }),
        onDone: { target: 'clearing' },
        onError: {
          target: 'failed',
          actions: { type: 'recordEnding', params: { ending: 'failed', code: 'STATE_UNWRITABLE' } },
        },
      },
    },
    clearing: {
      meta: {
        holds: 'It is settled how this ends; the pending record goes, and with it the key unless it is paired.',
        permits: ['state.write', 'keystore.erase'],
      },
      invoke: {
        id: 'dropRequest',
        src: 'dropRequest',
        input: ({ context }) => ({
          requestId: context.prepared?.requestId ?? null,
          keepKey: context.ending === 'paired',
        }),
        onDone: { target: 'closing' },
        onError: { target: 'closing' },
      },
    },
    closing: {
      meta: { holds: 'Nothing is left to do but to say how it ended.', permits: [] },
      always: [
        { guard: { type: 'isEnding', params: 'paired' }, target: 'paired' },
        { guard: { type: 'isEnding', params: 'refused' }, target: 'refused' },
        { guard: { type: 'isEnding', params: 'cancelled' }, target: 'cancelled' },
        { guard: { type: 'isEnding', params: 'expired' }, target: 'expired' },
        { target: 'failed' },
      ],
    },
    paired: ended('This machine has its key, its executor and the pinned command key on disk.'),
    refused: ended('A person on one side, or the control plane, said no; no key is left here.'),
    cancelled: ended('One side gave up; no key is left here.'),
    expired: ended('Ten minutes passed; no key is left here.'),
    failed: ended(
      'It was tried and broke; the code says what, and a request that may be confirmed is kept for a new start.',
    ),
  },
});
