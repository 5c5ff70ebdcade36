/*
 * One command on the machine: the phases of its ledger records (N-115 to N-119, R50 to R63). What the control plane records of it
 * is machine.ts, which says why they are two.
 *
 * INVARIANT 1  No record, no step: an effect begins only after `accepted` and `started` are durable (N-115).
 * INVARIANT 2  The machine's gate is asked before each of the two, and what is no longer permitted does not begin (N-103, N-110).
 * INVARIANT 3  `runOperation` is invoked in one state that only a recorded start of this very process leads to. A restart never runs
 *              it: what had started is asked for its outcome, which may be unknown (N-117).
 * INVARIANT 4  A cancel, a fence or a stop before the start ends it without an effect; after the start the outcome is what the helper
 *              proves, be it a success (N-506, R54, R63).
 * INVARIANT 5  An ending is recorded before it is sent and sent until it is answered; a refused one is replaced once (N-112, N-119).
 * INVARIANT 6  An unknown outcome is never sent as if it were known: the control plane learns it from its own clock (N-116).
 */
import { ended, endedEarly, execution, wishes } from './phases.ts';
import { resultPending } from './result-pending.ts';

/** One command of a daemon, spawned as `command-<commandId>`. */
export const executionMachine = execution.createMachine({
  id: 'execution',
  version: '1',
  context: ({ input }) => ({
    commandId: input.commandId,
    runId: input.runId,
    operation: input.operation,
    epoch: input.epoch,
    maximumRuntimeMs: input.maximumRuntimeMs,
    recalled: input.phase,
    started: input.phase === 'started-pending' || input.phase === 'executing',
    withdrawn: input.cancelled ? endedEarly('cancelled', 'CANCELLED_BEFORE_START') : null,
    stopReason: 'cancelled',
    ended: input.ended ?? { outcome: 'unknown', code: null, resultDigest: null },
    replaced: input.replaced,
    connected: input.phase === 'received',
    late: input.phase !== 'received',
  }),
  output: ({ context }) => ({ ...context.ended, commandId: context.commandId, runId: context.runId }),
  on: wishes,
  initial: 'recalling',
  states: {
    recalling: {
      meta: { holds: 'The ledger decides where this command stands; nothing is asked of anybody.', permits: [] },
      always: [
        { guard: { type: 'isRecalled', params: 'received' }, target: 'received' },
        {
          guard: { type: 'isRecalled', params: 'accepted-pending' },
          target: 'result-pending',
          actions: { type: 'recordEnded', params: endedEarly('refused', 'RESTARTED') },
        },
        { guard: { type: 'isRecalled', params: 'result-pending' }, target: 'result-pending.waiting' },
        { target: 'asking' },
      ],
    },
    received: {
      meta: {
        holds: 'The envelope is verified; no record names the command and the machine’s gate has not answered.',
        permits: ['gate.check'],
      },
      invoke: {
        id: 'checkGate',
        src: 'checkGate',
        input: ({ context }) => ({ commandId: context.commandId, step: 'accept' }),
        onDone: [
          { guard: 'isWithdrawn', target: 'result-pending', actions: 'recordWithdrawn' },
          { guard: { type: 'isPermitted', params: ({ event }) => event.output }, target: 'accepted-pending' },
          { target: 'result-pending', actions: { type: 'recordVerdict', params: ({ event }) => event.output } },
        ],
        onError: { target: 'result-pending', actions: 'recordGateFailure' },
      },
    },
    'accepted-pending': {
      meta: { holds: 'Both gates permitted it; its effect has not begun.', permits: [] },
      initial: 'recording',
      states: {
        recording: {
          meta: {
            holds: 'The receipt `accepted` is being made durable.',
            permits: ['ledger.append', 'keystore.sign'],
          },
          invoke: {
            id: 'recordAccepted',
            src: 'recordPhase',
            input: ({ context }) => ({ commandId: context.commandId, phase: 'accepted-pending' }),
            onDone: { target: 'waiting', actions: { type: 'reportPhase', params: 'accepted-pending' } },
            onError: { target: '#execution.refused', actions: 'recordLedgerFailure' },
          },
        },
        waiting: {
          meta: {
            holds:
              'Accepted and recorded; it waits for its turn. The scheduler gives one to whatever it holds, and the gate refuses what has expired by then, so no timer is needed.',
            permits: [],
          },
          always: { guard: 'isWithdrawn', target: '#execution.result-pending', actions: 'recordWithdrawn' },
          on: { 'execution.start': { target: '#execution.started-pending' } },
        },
      },
    },
    'started-pending': {
      meta: { holds: 'It is its turn; its effect has not begun.', permits: [] },
      initial: 'checking',
      states: {
        checking: {
          meta: {
            holds: 'The machine’s gate is asked once more, at the moment of the step.',
            permits: ['gate.check'],
          },
          invoke: {
            id: 'checkGateAgain',
            src: 'checkGate',
            input: ({ context }) => ({ commandId: context.commandId, step: 'start' }),
            onDone: [
              { guard: 'isWithdrawn', target: '#execution.result-pending', actions: 'recordWithdrawn' },
              { guard: { type: 'isPermitted', params: ({ event }) => event.output }, target: 'recording' },
              {
                target: '#execution.result-pending',
                actions: { type: 'recordVerdict', params: ({ event }) => event.output },
              },
            ],
            onError: { target: '#execution.result-pending', actions: 'recordGateFailure' },
          },
        },
        recording: {
          meta: {
            holds: 'The receipt `started` is being made durable.',
            permits: ['ledger.append', 'keystore.sign'],
          },
          invoke: {
            id: 'recordStarted',
            src: 'recordPhase',
            input: ({ context }) => ({ commandId: context.commandId, phase: 'started-pending' }),
            onDone: [
              {
                guard: 'isWithdrawn',
                target: '#execution.result-pending',
                actions: ['recordStarted', 'recordWithdrawn'],
              },
              {
                target: '#execution.executing',
                actions: ['recordStarted', { type: 'reportPhase', params: 'started-pending' }],
              },
            ],
            onError: { target: '#execution.refused', actions: 'recordLedgerFailure' },
          },
        },
      },
    },
    executing: {
      meta: {
        holds: 'The start is recorded and the helper was asked, once: a side effect may exist.',
        permits: [
          'workspace.operate',
          'workspace.difference',
          'workspace.freeze',
          'workspace.release',
          'promote.apply',
        ],
      },
      entry: { type: 'reportPhase', params: 'executing' },
      invoke: {
        id: 'operation',
        src: 'runOperation',
        input: ({ context }) => ({ commandId: context.commandId, operation: context.operation }),
        onDone: {
          target: 'result-pending',
          actions: { type: 'recordEnded', params: ({ event }) => event.output },
        },
        onError: { target: 'asking' },
      },
      initial: 'running',
      states: {
        running: {
          meta: { holds: 'Nobody wants it stopped and its time has not passed.', permits: [] },
          after: {
            runtime: { target: 'stopping', actions: { type: 'recordStopReason', params: 'runtime-passed' } },
          },
          on: {
            'execution.cancel': {
              target: 'stopping',
              actions: { type: 'recordStopReason', params: 'cancelled' },
            },
            'execution.stop': {
              target: 'stopping',
              actions: { type: 'recordStopReason', params: ({ event }) => event.reason },
            },
          },
        },
        stopping: {
          meta: {
            holds:
              'The helper was asked on its own lane to stop; the operation ends as it truly was, or is asked about when it does not end.',
            permits: ['workspace.cancel', 'promote.cancel'],
          },
          invoke: {
            id: 'stopOperation',
            src: 'stopOperation',
            input: ({ context }) => ({ commandId: context.commandId, reason: context.stopReason }),
            onDone: { actions: 'awaitEnd' },
            onError: { actions: 'awaitEnd' },
          },
          after: { stopGrace: { target: '#execution.asking' } },
        },
      },
    },
    asking: {
      meta: {
        holds:
          'It had started and its end was not seen in time; one that still runs in this process is waited for within its own limit, of any other nothing is known, and nothing is run.',
        permits: [],
      },
      invoke: {
        id: 'askOutcome',
        src: 'askOutcome',
        input: ({ context }) => ({ commandId: context.commandId, operation: context.operation }),
        onDone: { target: 'result-pending', actions: { type: 'recordEnded', params: ({ event }) => event.output } },
        onError: { target: 'result-pending', actions: 'recordUnknown' },
      },
    },
    'result-pending': resultPending,
    succeeded: ended('It was done once, and the control plane countersigned that.'),
    failed: ended(
      'It was tried and broke, or its result was refused and replaced; the control plane countersigned that.',
    ),
    refused: ended('It never began: the gate said no, or there was no record to begin on.'),
    cancelled: ended('Somebody asked, and it did not begin or ended for that.'),
    expired: ended('Its time passed, and it did not begin or was stopped for that.'),
    unknown: ended('It may or may not have happened; it is never repeated and never called a success.'),
  },
});
