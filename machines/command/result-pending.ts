import { closed, disconnected, execution } from './phases.ts';

/** From a settled ending to its countersignature: recorded, sent until answered, replaced once where it is refused (N-119). */
export const resultPending = execution.createStateConfig({
  meta: { holds: 'How it ended is settled on this machine.', permits: [] },
  initial: 'recording',
  states: {
    recording: {
      meta: { holds: 'The ending is being made durable.', permits: ['ledger.append', 'keystore.sign'] },
      invoke: {
        id: 'recordResult',
        src: 'recordResult',
        input: ({ context }) => ({ commandId: context.commandId, ended: context.ended, started: context.started }),
        onDone: [
          { guard: 'isUnknown', target: '#execution.unknown' },
          { target: 'waiting', actions: { type: 'reportPhase', params: 'result-pending' } },
        ],
        onError: { target: '#execution.unknown', actions: 'recordUnknown' },
      },
    },
    waiting: {
      meta: {
        holds: 'The ending is durable and no connection stands to send it on; it waits for one, for ever if need be.',
        permits: [],
      },
      always: { guard: 'isConnected', target: 'delivering' },
    },
    delivering: {
      meta: { holds: 'The ending was sent and is not answered.', permits: ['link.send'] },
      invoke: {
        id: 'deliverResult',
        src: 'deliverResult',
        input: ({ context }) => ({ commandId: context.commandId, late: context.late }),
        onDone: [
          ...closed,
          {
            target: 'replacing',
            actions: { type: 'recordReplaced', params: ({ event }) => event.output },
          },
        ],
        onError: { target: 'pausing' },
      },
      on: { 'execution.fenced': disconnected('waiting') },
    },
    pausing: {
      meta: { holds: 'No answer came; the same bytes are sent again after a wait.', permits: [] },
      after: { redelivery: { target: 'waiting' } },
      on: { 'execution.fenced': disconnected('waiting') },
    },
    replacing: {
      meta: {
        holds: 'The control plane refused the ending; the refusal record that stands in for it is being made durable.',
        permits: ['ledger.append', 'keystore.sign'],
      },
      invoke: {
        id: 'recordReplacement',
        src: 'recordReplacement',
        input: ({ context }) => ({ commandId: context.commandId, code: context.ended.code ?? 'RESULT_REFUSED' }),
        onDone: { target: 'waiting' },
        onError: { target: '#execution.unknown', actions: 'recordUnknown' },
      },
    },
  },
});
