/*
 * One executor daemon: from its start to its end (N-051, N-204 to N-207, N-223 to N-225, N-503 to N-510, N-530).
 *
 * INVARIANT 1  Nothing is sent before every journal is settled and the ledger is read whole (N-530, N-503).
 * INVARIANT 2  Work is taken in `online` alone, and a command is spawned once for its id.
 * INVARIANT 3  Without a valid control answer for three seconds no step starts; for sixty nothing runs (design section 4).
 * INVARIANT 4  After a fence every guest is stopped before the next handshake (N-206).
 * INVARIANT 5  `error` accepts nothing and is left by a person alone: by `repair`, or by stopping the daemon (design section 2 rule 6).
 * INVARIANT 6  Stopping is orderly and never forced: a guest that does not stop is shown, not killed (N-224, N-225).
 * INVARIANT 7  A restart is a new actor that recovers from the ledger; no snapshot of this machine is ever restored.
 */
import {
  broken,
  cancels,
  closed,
  connectionEnds,
  daemon,
  faulted,
  fence,
  heard,
  refusesWork,
  stopAll,
  takesWork,
  unheard,
} from './connection.ts';
import { stopping } from './stopping.ts';

/** One daemon; the composition root provides its actors and shows what it emits. */
export const daemonMachine = daemon.createMachine({
  id: 'daemon',
  version: '3',
  context: ({ input }) => ({
    executorId: input.executorId,
    epoch: 0,
    attempt: 0,
    held: [],
    overtaken: [],
    turns: [],
    fault: null,
    cause: 'asked',
  }),
  output: ({ context }) => ({ outcome: context.cause }),
  on: {
    'daemon.stop': { target: '.stopping' },
    'control.revoked': { target: '.stopping', actions: { type: 'recordCause', params: 'revoked' } },
    'role.violated': faulted('ROLE_VIOLATED'),
    'ledger.damaged': faulted('LEDGER_DAMAGED'),
    'xstate.error.actor.*': broken,
    'xstate.done.actor.*': closed,
    'control.cancel': cancels,
    'control.answered': { actions: 'dropLate' },
    'control.fenced': { actions: 'dropLate' },
    'connection.lost': { actions: 'dropLate' },
    'work.received': { actions: 'dropLate' },
    'work.turn': { actions: 'dropLate' },
  },
  initial: 'recovering',
  states: {
    recovering: {
      meta: { holds: 'Nothing was sent since the start; what an earlier process left is being settled.', permits: [] },
      initial: 'settling',
      states: {
        settling: {
          meta: {
            holds: 'A promotion may stand half-way; its journal completes or undoes it.',
            permits: ['promote.recover'],
          },
          invoke: {
            id: 'recoverPromotion',
            src: 'recoverPromotion',
            onDone: [
              {
                guard: { type: 'isSettled', params: ({ event }) => event.output },
                target: 'reading',
                actions: 'clearAttempts',
              },
              faulted('JOURNAL_DAMAGED'),
            ],
            onError: { target: 'postponed', actions: ['countAttempt', 'showRetry'] },
          },
        },
        postponed: {
          meta: {
            holds:
              'It could not be looked at now: somebody holds the folder, or promote is not there. It is tried again after a growing wait, or at once when a person ran `repair`.',
            permits: [],
          },
          after: { backoff: { target: 'settling' } },
          on: { 'daemon.repaired': { target: 'settling' } },
        },
        reading: {
          meta: {
            holds: 'The person’s tree is the old or the approved one; the ledger is being read whole.',
            permits: ['ledger.read', 'ledger.append'],
          },
          invoke: {
            id: 'openLedger',
            src: 'openLedger',
            input: ({ context }) => ({ executorId: context.executorId }),
            onDone: {
              target: '#daemon.connecting',
              actions: { type: 'resumeHeld', params: ({ event }) => event.output.open },
            },
            onError: faulted('LEDGER_DAMAGED'),
          },
        },
      },
    },
    connecting: {
      meta: {
        holds: 'No connection stands; what runs goes on until a minute of silence, and nothing starts.',
        permits: [],
      },
      after: { controlDeadline: { actions: stopAll } },
      initial: 'handshaking',
      states: {
        handshaking: {
          meta: {
            holds: 'One handshake is open: a fresh challenge is signed together with the ledger’s head.',
            permits: ['link.open', 'link.send', 'keystore.sign'],
          },
          invoke: {
            id: 'connect',
            src: 'connect',
            input: ({ context }) => ({ executorId: context.executorId, attempt: context.attempt }),
            onDone: [
              {
                guard: { type: 'isAnswered', params: ({ event }) => ({ is: 'connected', answer: event.output }) },
                target: '#daemon.online',
                actions: [
                  { type: 'recordConnection', params: ({ event }) => event.output },
                  { type: 'tellAll', params: { type: 'execution.connected' } },
                  'showConnection',
                ],
              },
              {
                guard: { type: 'isAnswered', params: ({ event }) => ({ is: 'revoked', answer: event.output }) },
                target: '#daemon.stopping',
                actions: { type: 'recordCause', params: 'revoked' },
              },
              {
                guard: { type: 'isAnswered', params: ({ event }) => ({ is: 'in-error', answer: event.output }) },
                ...faulted('EXECUTOR_IN_ERROR'),
              },
              faulted('STATE_COPIED'),
            ],
            onError: { target: 'waiting', actions: ['countAttempt', 'showRetry'] },
          },
        },
        waiting: {
          meta: { holds: 'No answer came; it is tried again after a growing wait.', permits: [] },
          after: { backoff: { target: 'handshaking' } },
        },
      },
    },
    online: {
      meta: {
        holds: 'One connection of the current epoch stands; delivered work becomes commands.',
        permits: [],
      },
      on: { ...connectionEnds, 'work.received': takesWork },
      initial: 'heard',
      states: { heard, unheard },
    },
    draining: {
      meta: {
        holds: 'One connection stands; held commands finish and report, nothing new is taken (N-204).',
        permits: [],
      },
      on: { ...connectionEnds, 'work.received': refusesWork },
      initial: 'heard',
      states: { heard, unheard },
    },
    fenced: {
      meta: {
        holds:
          'The connection is over by the control plane’s will or by its silence; every guest stops before the next handshake.',
        permits: ['guests.stop', 'link.close'],
      },
      entry: fence,
      invoke: {
        id: 'stopFencedGuests',
        src: 'stopGuests',
        onDone: { target: 'connecting' },
        onError: faulted('GUESTS_NOT_STOPPED'),
      },
    },
    stopping,
    error: {
      meta: {
        holds:
          'Local state or a role cannot be believed, or the control plane says so of this executor: nothing is accepted until a person ran `repair`.',
        permits: ['link.send', 'link.close', 'keystore.sign'],
      },
      entry: [fence, stopAll],
      invoke: {
        id: 'reportFault',
        src: 'reportFault',
        input: ({ context }) => ({ fault: context.fault ?? 'ROLE_VIOLATED' }),
        onDone: { actions: 'dropLate' },
        onError: { actions: 'dropLate' },
      },
      on: { 'daemon.repaired': { target: 'recovering', actions: 'clearFault' } },
    },
    stopped: {
      type: 'final',
      meta: { holds: 'Lease released because somebody asked; no socket, process or delivery is left.', permits: [] },
    },
    revoked: {
      type: 'final',
      meta: { holds: 'Lease released because the executor was ended; it never connects again.', permits: [] },
    },
  },
});
