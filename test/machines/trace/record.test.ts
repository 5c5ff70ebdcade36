import assert from 'node:assert/strict';

import { createActor, fromPromise, waitFor } from 'xstate';
import type { ActorRefFrom, InspectionEvent } from 'xstate';

import { executionMachine } from '../../../machines/command/execution.ts';
import type { CheckGate, DeliverResult, Ended, RunOperation } from '../../../machines/command/types.ts';
import { daemonMachine } from '../../../machines/daemon/machine.ts';
import type { Connect, OpenLedger, RecoverAnswer } from '../../../machines/daemon/types.ts';
import { formatLine } from '../../../machines/trace/format.ts';
import { emptyRecording, recordInspection } from '../../../machines/trace/record.ts';
import type { Recording } from '../../../machines/trace/record.ts';
import { expectTrace } from '../../kit/index.ts';
import { received } from '../scenarios/execution.ts';

const digest = (text: string): string => text.length.toString(16).padStart(64, '0');
const ok = <Output, Input>(output: Output) => fromPromise<Output, Input>(() => Promise.resolve(output));

/** A recorder as the daemon has one: a plain value that each inspection replaces. */
function recorder(): {
  inspect: (event: InspectionEvent) => void;
  lines: string[];
  disagreements: string[];
  followed: () => string[];
} {
  let recording: Recording = emptyRecording;
  const lines: string[] = [];
  const disagreements: string[] = [];
  const inspect = (event: InspectionEvent): void => {
    const recorded = recordInspection(recording, event, digest);
    recording = recorded.recording;
    if (recorded.line !== undefined) lines.push(formatLine(recorded.line));
    if (recorded.disagreement !== undefined) disagreements.push(recorded.disagreement);
  };
  return { inspect, lines, disagreements, followed: () => [...recording.actors.keys()] };
}

/** An ending as xstate makes it; machines type the events of their own actors inside alone. */
const done = (id: string, output: object) => ({ type: `xstate.done.actor.${id}`, actorId: id, output }) as never;

const succeeded: Ended = { outcome: 'succeeded', code: null, resultDigest: 'result' };

function daemonWith(send: (event: { type: 'work.turn'; commandId: string }) => void): typeof daemonMachine {
  const execution = executionMachine.provide({
    actions: {
      reportPhase: ({ context }, phase) => {
        if (phase === 'accepted-pending') send({ type: 'work.turn', commandId: context.commandId });
      },
    },
    actors: {
      checkGate: ok<CheckGate['output'], CheckGate['input']>({ permitted: true }),
      recordPhase: ok({ durable: true }),
      runOperation: ok<RunOperation['output'], RunOperation['input']>(succeeded),
      recordResult: ok({ durable: true }),
      deliverResult: ok<DeliverResult['output'], DeliverResult['input']>({ answer: 'acknowledged' }),
    },
  });
  return daemonMachine.provide({
    actors: {
      execution,
      recoverPromotion: ok<RecoverAnswer, undefined>({ answer: 'settled' }),
      openLedger: ok<OpenLedger['output'], OpenLedger['input']>({ open: [] }),
      connect: ok<Connect['output'], Connect['input']>({ answer: 'connected', epoch: 7 }),
      stopGuests: ok({ stopped: 0 }),
      releaseLease: ok({ released: true }),
    },
  });
}

describe('recording of a live daemon', () => {
  it('gives a trace of the daemon and each of its commands that replays to the same states', async () => {
    const { inspect, lines, disagreements, followed } = recorder();
    const daemon: ActorRefFrom<typeof daemonMachine> = createActor(
      daemonWith((event) => daemon.send(event)),
      { id: 'daemon', input: { executorId: 'exec-1' }, inspect },
    );
    daemon.start();
    await waitFor(daemon, (state) => state.matches('online'), { timeout: 5_000 });
    for (const commandId of ['cmd-1', 'cmd-2', 'cmd-3']) {
      daemon.send({ type: 'work.received', execution: { ...received, phase: 'received', ended: null, commandId } });
    }
    await waitFor(daemon, ({ context }) => context.held.length === 0, { timeout: 5_000 });
    assert.deepEqual(followed(), ['daemon'], 'a command that closed is not kept');
    daemon.send({ type: 'daemon.stop' });
    await waitFor(daemon, ({ status }) => status === 'done', { timeout: 5_000 });
    assert.deepEqual(disagreements, []);
    expectTrace(lines.join(''));
    const actors = new Set(lines.map((line) => (JSON.parse(line) as { actor: string }).actor));
    assert.deepEqual([...actors], ['daemon', 'command-cmd-1', 'command-cmd-2', 'command-cmd-3']);
  });

  it('keeps the order of events that reach an actor while it is busy', () => {
    const { inspect, lines, disagreements } = recorder();
    const busy = executionMachine.provide({ actions: { reportPhase: () => actor.send({ type: 'execution.start' }) } });
    const actor = createActor(busy, {
      id: 'command-cmd-1',
      input: { ...received, phase: 'received', ended: null },
      inspect,
    });
    actor.start();
    actor.send(done('checkGate', { permitted: true }));
    actor.send(done('recordAccepted', { durable: true }));
    actor.stop();
    assert.deepEqual(disagreements, []);
    expectTrace(lines.join(''));
    const states = lines.map((line) => JSON.stringify((JSON.parse(line) as { after: { value: unknown } }).after.value));
    assert.deepEqual(states, [
      '"received"',
      '{"accepted-pending":"recording"}',
      '{"accepted-pending":"waiting"}',
      '{"started-pending":"checking"}',
    ]);
  });

  it('says where a live actor is not what its machine says', () => {
    const { inspect, disagreements } = recorder();
    const altered = executionMachine.provide({ guards: { isPermitted: () => false } });
    const actor = createActor(altered, {
      id: 'command-cmd-1',
      input: { ...received, phase: 'received', ended: null },
      inspect,
    });
    actor.start();
    actor.send({ type: 'xstate.done.actor.checkGate', actorId: 'checkGate', output: { permitted: true } } as never);
    actor.stop();
    assert.equal(disagreements.length, 1);
    assert.match(
      disagreements[0]!,
      /^command-cmd-1 is in .*result-pending.* where its machine says .*accepted-pending/,
    );
  });
});
