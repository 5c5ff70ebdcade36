import { daemon, fence } from './connection.ts';

/** From the wish to stop to the released lease, in order and never forced (N-223 to N-225). */
export const stopping = daemon.createStateConfig({
  meta: { holds: 'Nothing new is taken; sessions end, then held commands, then the lease.', permits: [] },
  entry: [fence, { type: 'tellAll', params: { type: 'execution.stop', reason: 'daemon-stopping' } }],
  after: { stopBudget: { actions: 'showOverdue' } },
  on: {
    'daemon.stop': { actions: 'dropLate' },
    'control.revoked': { actions: { type: 'recordCause', params: 'revoked' } },
    'role.violated': { actions: 'dropLate' },
    'ledger.damaged': { actions: 'dropLate' },
    'xstate.error.actor.*': { actions: { type: 'letGo', params: ({ event }) => event.actorId } },
  },
  initial: 'ending',
  states: {
    ending: {
      meta: {
        holds:
          'Every guest session was asked to end; this waits as long as one takes, since a forced end leaves what nobody cleans up.',
        permits: ['guests.stop'],
      },
      invoke: {
        id: 'stopLastGuests',
        src: 'stopGuests',
        onDone: { target: 'settling' },
        onError: { target: 'stuck' },
      },
    },
    stuck: {
      meta: { holds: 'A guest may still run; a person decides, and another wish to stop tries again.', permits: [] },
      on: { 'daemon.stop': { target: 'ending' } },
    },
    settling: {
      meta: {
        holds: 'No guest runs; held commands record how they ended, those without a connection keep it in the ledger.',
        permits: [],
      },
      always: { guard: 'isEmpty', target: 'releasing' },
      after: { settleBudget: { target: 'releasing' } },
    },
    releasing: {
      meta: {
        holds: 'Goodbye is said where a connection stands; ledger and lock are let go.',
        permits: ['link.send', 'link.close', 'lock.release'],
      },
      invoke: {
        id: 'releaseLease',
        src: 'releaseLease',
        input: ({ context }) => ({ cause: context.cause }),
        onDone: [{ guard: 'isRevoked', target: '#daemon.revoked' }, { target: '#daemon.stopped' }],
        onError: [{ guard: 'isRevoked', target: '#daemon.revoked' }, { target: '#daemon.stopped' }],
      },
    },
  },
});
