/*
 * Lifecycle of one executor as the control plane keeps it (N-198 to N-207).
 *
 * INVARIANT 1  The states are the six of N-198. Whether work is accepted is a flag beside them, since a pause survives
 *              reconnection, draining and error (D-5, N-201).
 * INVARIANT 2  The epoch never falls. It rises with every change of state, every new connection, every access change and every
 *              descriptor review (N-205). A pause alone leaves it: the connection lives on and its heartbeat continues (N-201).
 * INVARIANT 3  Nothing leaves `pending_pairing` for `online` before both sides confirmed the key and the machine proved it (N-066).
 * INVARIANT 4  `revoked` is never left and its epoch never rises again. It is no final state of xstate, because a person may
 *              still take the record off the list (N-203).
 * INVARIANT 5  A resumed executor proves itself again before a command is leased: resuming leads through `offline` (D-5).
 * INVARIANT 6  Pending to draining is only the first half of an end: deletion, replacement of a key that never proved itself, or the
 *              organisation owner's emergency path. With nothing to finish it is revoked in the same step (D-10).
 *
 * No state waits on a timer here: the control plane owns the clock and says `executor.silent`.
 */
import { advance, damage, decisions, endings, executor, proof } from './lifecycle.ts';

/** Lifecycle of one executor; the control plane stores its state and steps it in one transaction with the audit entry. */
export const executorMachine = executor.createMachine({
  id: 'executor',
  version: '1',
  context: ({ input }) => ({
    executorId: input.executorId,
    epoch: 0,
    accepting: true,
    listed: true,
    fingerprint: null,
    fault: null,
    revokedBecause: null,
  }),
  initial: 'pending_pairing',
  states: {
    pending_pairing: {
      meta: {
        holds:
          'The record exists with its scope; no key is confirmed and proved, so nothing is offered, bound or leased.',
        permits: ['server.take-request', 'server.take-claim', 'server.activate', 'server.take-proof'],
      },
      on: {
        ...decisions,
        'pairing.confirmed': [
          {
            guard: 'isUnconfirmed',
            actions: [{ type: 'recordFingerprint', params: ({ event }) => event.fingerprint }, ...advance],
          },
          { actions: { type: 'refuse', params: { code: 'ALREADY_CONFIRMED' } } },
        ],
        'executor.proved': [
          { guard: 'isUnconfirmed', actions: { type: 'refuse', params: { code: 'PAIRING_NOT_CONFIRMED' } } },
          ...proof('online'),
        ],
        'executor.delete': {
          target: 'draining',
          actions: [{ type: 'recordRevocation', params: 'deleted' }, 'takeOffList', 'eraseSealedPayloads'],
        },
        'executor.replaced': { target: 'draining', actions: { type: 'recordRevocation', params: 'replaced' } },
        'executor.disconnect': [
          {
            guard: { type: 'isByOwner', params: ({ event }) => event.by },
            target: 'draining',
            actions: { type: 'recordRevocation', params: 'ended-by-organization-owner' },
          },
          { actions: { type: 'refuse', params: { code: 'STATE_TRANSITION_INVALID' } } },
        ],
      },
    },
    online: {
      meta: {
        holds:
          'The machine proved its key within the last minute; work is leased to this epoch alone while the flag `accepting` stands.',
        permits: [
          'server.take-proof',
          'server.take-heartbeat',
          'server.resolve',
          'server.lease',
          'server.take-receipt',
          'server.take-late-receipt',
          'server.countersign',
        ],
      },
      entry: [...advance],
      on: {
        ...decisions,
        ...endings,
        ...damage,
        'executor.proved': proof('online'),
        'executor.silent': { target: 'offline' },
        'executor.pause': [
          { guard: 'isAccepting', actions: ['stopAccepting', 'stopLeasing'] },
          { actions: { type: 'refuse', params: { code: 'ALREADY_PAUSED' } } },
        ],
        'executor.resume': [
          { guard: 'isPaused', target: 'offline', actions: 'acceptAgain' },
          { actions: { type: 'refuse', params: { code: 'NOT_PAUSED' } } },
        ],
        'executor.drain': { target: 'draining' },
      },
    },
    offline: {
      meta: {
        holds:
          'The machine has not proved itself within the last minute; it is neither listed as available nor sent work.',
        permits: ['server.take-proof', 'server.take-late-receipt'],
      },
      entry: [...advance],
      on: {
        ...decisions,
        ...endings,
        ...damage,
        'executor.proved': proof('online'),
        'executor.pause': [
          { guard: 'isAccepting', actions: ['stopAccepting', 'stopLeasing'] },
          { actions: { type: 'refuse', params: { code: 'ALREADY_PAUSED' } } },
        ],
        'executor.resume': [
          { guard: 'isPaused', actions: 'acceptAgain' },
          { actions: { type: 'refuse', params: { code: 'NOT_PAUSED' } } },
        ],
        'executor.drain': { target: 'draining' },
      },
    },
    draining: {
      meta: {
        holds: 'Nothing new is resolved or leased; what was started without a guest finishes and reports (D-1).',
        permits: [
          'server.take-proof',
          'server.take-heartbeat',
          'server.take-receipt',
          'server.take-late-receipt',
          'server.countersign',
        ],
      },
      entry: [...advance, 'stopLeasing'],
      always: { guard: 'isEnded', target: 'revoked' },
      on: {
        ...decisions,
        ...endings,
        ...damage,
        'executor.proved': proof('draining'),
        'executor.drained': { target: 'revoked', actions: { type: 'recordRevocation', params: 'drained' } },
      },
    },
    error: {
      meta: {
        holds:
          'The machine said, or its counters show, that its local state cannot be believed; nothing is leased until a person repaired it.',
        permits: ['server.take-proof', 'server.take-heartbeat', 'server.take-late-receipt'],
      },
      entry: [...advance, 'stopLeasing'],
      on: {
        ...decisions,
        ...endings,
        'executor.proved': proof('error'),
        'executor.repaired': { target: 'offline', actions: 'clearFault' },
      },
    },
    revoked: {
      meta: {
        holds:
          'The key is forgotten, every handle is void and everything from the machine is refused, whether or not it reacts (N-207).',
        permits: [],
      },
      entry: [...advance, 'invalidateCredentials', 'invalidateHandles', 'stopLeasing'],
      on: {
        'executor.delete': [
          { guard: 'isListed', actions: ['takeOffList', 'eraseSealedPayloads'] },
          { actions: { type: 'refuse', params: { code: 'ALREADY_DELETED' } } },
        ],
      },
    },
  },
});
