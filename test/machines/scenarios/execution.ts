import type { AnyEventObject } from 'xstate';

import { after, broke, done } from './scenario.ts';
import type { Golden } from './scenario.ts';

/** A command as it arrives. */
export const received = {
  commandId: 'cmd-1',
  runId: 'run-1',
  operation: 'file.write',
  envelopeDigest: 'envelope',
  epoch: 7,
  maximumRuntimeMs: 25_000,
  phase: 'received',
  ended: null,
  replaced: false,
  cancelled: false,
};
const recalled = (phase: string, ended: unknown = null) => ({ ...received, phase, ended });
const end = (outcome: string) => ({
  outcome,
  code: outcome === 'succeeded' ? null : 'CODE',
  resultDigest: outcome === 'succeeded' ? 'result' : null,
});

const yes = { permitted: true };
const no = { permitted: false, outcome: 'refused', code: 'LOCAL_POLICY_DENIED' };
const tooLate = { permitted: false, outcome: 'expired', code: 'COMMAND_EXPIRED' };
const durable = { durable: true };
const acknowledged = done('deliverResult', { answer: 'acknowledged' });
const resultRefused = done('deliverResult', { answer: 'refused', code: 'RESULT_TOO_LARGE' });
const cancel = { type: 'execution.cancel' };
const fenced = { type: 'execution.fenced' };
const connected = { type: 'execution.connected' };
const stop = { type: 'execution.stop', reason: 'control-lost' };
const turn = { type: 'execution.start' };

const waiting = [done('checkGate', yes), done('recordAccepted', durable)];
const checking = [...waiting, turn];
const starting = [...checking, done('checkGateAgain', yes)];
const running = [...starting, done('recordStarted', durable)];
const recordedEnd = [done('recordResult', durable), acknowledged];
const delivering = (outcome: string) => [...running, done('operation', end(outcome)), done('recordResult', durable)];

const one = (name: string, tells: string, events: readonly AnyEventObject[], from: unknown = received): Golden => {
  return { name, tells, input: from, events };
};

export const executionGoldens: readonly Golden[] = [
  one('succeeded', 'Each record before its step; what comes twice or late changes nothing.', [
    ...running,
    connected,
    turn,
    done('operation', end('succeeded')),
    stop,
    cancel,
    ...recordedEnd,
  ]),
  ...['failed', 'refused', 'cancelled', 'expired'].map((outcome) =>
    one(outcome, `The helper says that it ended as ${outcome}.`, [...delivering(outcome), acknowledged]),
  ),
  one('unknown', 'The helper died and does not know: nothing is sent, nothing is repeated.', [
    ...running,
    broke('operation'),
    broke('askOutcome'),
    done('recordResult', durable),
  ]),
  one('asked-after-the-helper-died', 'The helper died, and its successor knows.', [
    ...running,
    broke('operation'),
    done('askOutcome', end('succeeded')),
    ...recordedEnd,
  ]),
  one('refused-by-the-gate', 'The machine says no before it accepts.', [done('checkGate', no), ...recordedEnd]),
  one('refused-without-a-gate', 'The gate itself broke: refused.', [broke('checkGate'), ...recordedEnd]),
  one('refused-without-a-ledger', 'No record, no step.', [done('checkGate', yes), broke('recordAccepted')]),
  one('refused-at-its-turn', 'The policy narrowed while it waited.', [
    ...checking,
    done('checkGateAgain', no),
    ...recordedEnd,
  ]),
  one('expired-at-its-turn', 'Its time passed while it waited.', [
    ...checking,
    done('checkGateAgain', tooLate),
    ...recordedEnd,
  ]),
  one('refused-without-a-gate-at-its-turn', 'The gate broke at the second question.', [
    ...checking,
    broke('checkGateAgain'),
    ...recordedEnd,
  ]),
  one('refused-without-a-ledger-at-its-turn', 'No record of the start, no start.', [
    ...starting,
    broke('recordStarted'),
  ]),
  one(
    'cancel-overtakes',
    'The cancel came first: the gate is asked and nothing begins.',
    [done('checkGate', yes), ...recordedEnd],
    {
      ...received,
      cancelled: true,
    },
  ),
  one('cancelled-while-waiting', 'Cancelled before its turn.', [...waiting, cancel, ...recordedEnd]),
  one('stopped-while-waiting', 'The daemon stops before its turn: refused, and told when a connection stands again.', [
    ...waiting,
    { type: 'execution.stop', reason: 'daemon-stopping' },
    ...recordedEnd,
  ]),
  one('cancelled-at-its-turn', 'Cancelled while the gate is asked again.', [
    ...checking,
    cancel,
    done('checkGateAgain', yes),
    ...recordedEnd,
  ]),
  one(
    'fenced-while-starting',
    'Fenced while the start is recorded: it does not begin, and its ending goes by the next connection.',
    [...starting, fenced, done('recordStarted', durable), done('recordResult', durable), connected, acknowledged],
  ),
  one('stopped-while-running', 'A cancel reaches it while it runs; it ends as it truly was.', [
    ...running,
    cancel,
    done('stopOperation', { asked: true }),
    done('operation', end('cancelled')),
    ...recordedEnd,
  ]),
  one(
    'stopped-for-its-time',
    'Its run time passes and the helper does not answer the stop: it is asked what became of it.',
    [
      ...running,
      after('runtime', 'execution.executing.running'),
      broke('stopOperation'),
      after('stopGrace', 'execution.executing.stopping'),
      done('askOutcome', end('expired')),
      ...recordedEnd,
    ],
  ),
  one('stopped-without-control', 'A minute without control stops it; the ending waits for a connection.', [
    ...running,
    stop,
    fenced,
    done('operation', end('cancelled')),
    done('recordResult', durable),
    connected,
    acknowledged,
  ]),
  one('unrecorded-ending', 'The ending could not be recorded: it is never claimed.', [
    ...running,
    done('operation', end('succeeded')),
    broke('recordResult'),
  ]),
  one('answer-lost', 'The same bytes are sent again until they are answered, over a new connection if need be.', [
    ...delivering('succeeded'),
    broke('deliverResult'),
    after('redelivery', 'execution.result-pending.pausing'),
    fenced,
    connected,
    broke('deliverResult'),
    fenced,
    connected,
    acknowledged,
  ]),
  one('result-replaced', 'A refused result is replaced once and closed, whatever is answered then.', [
    ...delivering('succeeded'),
    resultRefused,
    done('recordReplacement', durable),
    resultRefused,
  ]),
  one('replacement-unrecorded', 'The replacement could not be recorded: unknown.', [
    ...delivering('succeeded'),
    resultRefused,
    broke('recordReplacement'),
  ]),
  one(
    'restarted-after-accepted',
    'A restart ends what had not started, without an effect.',
    [done('recordResult', durable), connected, acknowledged],
    recalled('accepted-pending'),
  ),
  one(
    'restarted-after-started',
    'A restart asks the helper and runs nothing.',
    [done('askOutcome', end('succeeded')), done('recordResult', durable), connected, acknowledged],
    recalled('started-pending'),
  ),
  one(
    'restarted-while-executing',
    'A restart asks the helper, who does not know.',
    [broke('askOutcome'), done('recordResult', durable)],
    recalled('executing'),
  ),
  one(
    'restarted-with-a-result',
    'A restart sends the recorded ending again.',
    [connected, acknowledged],
    recalled('result-pending', end('succeeded')),
  ),
];
