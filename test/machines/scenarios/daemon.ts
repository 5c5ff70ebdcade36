import type { AnyEventObject } from 'xstate';

import { received } from './execution.ts';
import { after, broke, done } from './scenario.ts';
import type { Golden } from './scenario.ts';

const input = { executorId: 'exec-1' };
const connected = done('connect', { answer: 'connected', epoch: 7 });
const answered = (standing: string) => ({ type: 'control.answered', standing });
const work = { type: 'work.received', execution: received };
const turn = { type: 'work.turn', commandId: 'cmd-1' };
const closed = done('command-cmd-1', {
  commandId: 'cmd-1',
  runId: 'run-1',
  outcome: 'succeeded',
  code: null,
  resultDigest: 'result',
});
const stop = { type: 'daemon.stop' };
const lost = { type: 'connection.lost' };
const fencedOff = { type: 'control.fenced' };
const cancel = { type: 'control.cancel', commandId: 'cmd-1' };
const violated = { type: 'role.violated', role: 'workspace' };
const damaged = { type: 'ledger.damaged' };

const recovered = [done('recoverPromotion', { settled: 0 }), done('openLedger', { open: [] })];
const online = [...recovered, connected];
const silent = after('controlSilence', 'daemon.online.heard');
const stopped = [done('stopLastGuests', { stopped: 0 }), done('releaseLease', { released: true })];

const one = (name: string, tells: string, events: readonly AnyEventObject[]): Golden => ({
  name,
  tells,
  input,
  events,
});

export const daemonGoldens: readonly Golden[] = [
  one('serves-a-command-and-stops', 'Recovered, connected, one command taken once, its turn, its end, a clean stop.', [
    ...online,
    answered('accepting'),
    work,
    work,
    turn,
    cancel,
    closed,
    turn,
    stop,
    stop,
    ...stopped,
  ]),
  one('resumes-what-is-open', 'What the ledger holds open is taken up again before the first packet.', [
    done('recoverPromotion', { settled: 1 }),
    done('openLedger', { open: [{ ...received, phase: 'executing' }] }),
    broke('connect'),
    after('backoff', 'daemon.connecting.waiting'),
    connected,
    closed,
    stop,
    ...stopped,
  ]),
  one('cancel-overtakes', 'A cancel comes before its command, again and again.', [
    ...online,
    cancel,
    cancel,
    work,
    closed,
    stop,
    ...stopped,
  ]),
  one('silence-holds-turns', 'Silence keeps turns back; the next answer gives them.', [
    ...online,
    work,
    silent,
    turn,
    { type: 'work.turn', commandId: 'cmd-2' },
    answered('paused'),
    closed,
    stop,
    ...stopped,
  ]),
  one('silence-stops-everything', 'A minute without an answer stops what runs and begins anew.', [
    ...online,
    work,
    silent,
    after('controlDeadline', 'daemon.online.unheard'),
    done('stopFencedGuests', { stopped: 1 }),
    connected,
    closed,
    closed,
    stop,
    ...stopped,
  ]),
  one('lost-while-silent', 'A connection that ends in silence stops what runs at once.', [
    ...online,
    silent,
    lost,
    done('stopFencedGuests', { stopped: 0 }),
    connected,
    stop,
    ...stopped,
  ]),
  one('lost-connection', 'What runs goes on for a minute without a connection; what comes late is dropped.', [
    ...online,
    work,
    lost,
    lost,
    fencedOff,
    answered('accepting'),
    work,
    turn,
    after('controlDeadline', 'daemon.connecting'),
    connected,
    closed,
    stop,
    ...stopped,
  ]),
  one('fenced', 'A fence stops every guest before the next handshake.', [
    ...online,
    work,
    fencedOff,
    done('stopFencedGuests', { stopped: 1 }),
    connected,
    closed,
    stop,
    ...stopped,
  ]),
  one('drains', 'Draining finishes what it holds and takes nothing new.', [
    ...online,
    work,
    answered('draining'),
    work,
    { type: 'work.received', execution: { ...received, commandId: 'cmd-2' } },
    turn,
    after('controlSilence', 'daemon.draining.heard'),
    turn,
    { type: 'work.turn', commandId: 'cmd-2' },
    answered('draining'),
    { type: 'work.turn', commandId: 'cmd-2' },
    after('controlSilence', 'daemon.draining.heard'),
    answered('accepting'),
    answered('draining'),
    answered('accepting'),
    closed,
    { type: 'control.revoked' },
    ...stopped,
  ]),
  one('drains-after-silence', 'The first answer after a silence says that it drains.', [
    ...online,
    silent,
    answered('draining'),
    lost,
    connected,
    answered('draining'),
    fencedOff,
    done('stopFencedGuests', { stopped: 0 }),
    connected,
    answered('draining'),
    after('controlSilence', 'daemon.draining.heard'),
    lost,
    done('stopFencedGuests', { stopped: 0 }),
    connected,
    answered('draining'),
    after('controlSilence', 'daemon.draining.heard'),
    after('controlDeadline', 'daemon.draining.unheard'),
    done('stopFencedGuests', { stopped: 0 }),
    stop,
    ...stopped,
  ]),
  one('revoked-at-the-handshake', 'The control plane says that this executor is over.', [
    ...recovered,
    done('connect', { answer: 'revoked' }),
    done('stopLastGuests', { stopped: 0 }),
    broke('releaseLease'),
  ]),
  one('revoked-while-stopping', 'A revocation during the stop is told as such.', [
    ...online,
    work,
    { type: 'work.received', execution: { ...received, commandId: 'cmd-2' } },
    stop,
    { type: 'control.revoked' },
    violated,
    damaged,
    broke('command-cmd-1'),
    after('stopBudget', 'daemon.stopping'),
    done('stopLastGuests', { stopped: 1 }),
    after('settleBudget', 'daemon.stopping.settling'),
    done('releaseLease', { released: true }),
  ]),
  one('stuck-guest', 'A guest that does not stop is shown and never killed; a second wish tries again.', [
    ...online,
    stop,
    broke('stopLastGuests'),
    stop,
    done('stopLastGuests', { stopped: 1 }),
    broke('releaseLease'),
  ]),
  one(
    'damaged-journal',
    'A damaged journal is told and stops everything before the first packet; a person repairs it.',
    [
      broke('recoverPromotion'),
      done('reportFault', { told: false }),
      { type: 'daemon.repaired' },
      ...online,
      stop,
      ...stopped,
    ],
  ),
  one('damaged-ledger', 'A ledger that cannot be read accepts nothing.', [
    done('recoverPromotion', { settled: 0 }),
    broke('openLedger'),
    broke('reportFault'),
    stop,
    ...stopped,
  ]),
  one('damaged-while-online', 'A ledger that can no longer be written ends in error.', [
    ...online,
    work,
    damaged,
    stop,
    closed,
    ...stopped,
  ]),
  one('copied-state', 'A head that is not the continuation of the acknowledged one is a copy.', [
    ...recovered,
    done('connect', { answer: 'state-copied' }),
    stop,
    ...stopped,
  ]),
  one(
    'in-error-there',
    'The original of which a copy was met stops and says so; a person’s repair leads back online.',
    [
      ...online,
      fencedOff,
      done('stopFencedGuests', { stopped: 0 }),
      done('connect', { answer: 'in-error' }),
      done('reportFault', { told: true }),
      { type: 'daemon.repaired' },
      ...online,
      stop,
      ...stopped,
    ],
  ),
  one('role-violated', 'A role that breaks the protocol ends in error.', [...online, violated, stop, ...stopped]),
  one('guests-not-stopped', 'A guest that outlives a fence ends in error.', [
    ...online,
    fencedOff,
    broke('stopFencedGuests'),
    stop,
    ...stopped,
  ]),
  one('execution-broken', 'A command that throws is a bug, and ends in error.', [
    ...online,
    work,
    broke('command-cmd-1'),
    stop,
    ...stopped,
  ]),
];
