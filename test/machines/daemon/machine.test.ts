import assert from 'node:assert/strict';

import * as fc from 'fast-check';
import { SimulatedClock, createActor, fromPromise, initialTransition, transition, waitFor } from 'xstate';
import type { ActorRefFrom, SnapshotFrom } from 'xstate';

import { executionMachine } from '../../../machines/command/execution.ts';
import type { CheckGate, DeliverResult, Ended, ExecutionInput } from '../../../machines/command/types.ts';
import { daemonMachine } from '../../../machines/daemon/machine.ts';
import type { Connect, DaemonEvent, OpenLedger, RecoverAnswer } from '../../../machines/daemon/types.ts';
import { nameOf } from '../../../machines/trace/take.ts';

type Snapshot = SnapshotFrom<typeof daemonMachine>;

const ok = <Output, Input>(output: Output) => fromPromise<Output, Input>(() => Promise.resolve(output));

const command = (commandId: string): ExecutionInput => ({
  commandId,
  runId: 'run-1',
  operation: 'file.write',
  envelopeDigest: 'envelope',
  epoch: 7,
  maximumRuntimeMs: 25_000,
  phase: 'received',
  ended: null,
  replaced: false,
  cancelled: false,
});

const ends: { readonly [actor: string]: readonly object[] } = {
  recoverPromotion: [{ answer: 'settled' }, { answer: 'needs-person' }],
  openLedger: [{ open: [] }, { open: [{ ...command('cmd-0'), phase: 'executing' }] }],
  connect: [
    { answer: 'connected', epoch: 7 },
    { answer: 'revoked' },
    { answer: 'state-copied' },
    { answer: 'in-error' },
  ],
  stopFencedGuests: [{ stopped: 0 }],
  stopLastGuests: [{ stopped: 0 }],
  reportFault: [{ told: true }],
  releaseLease: [{ released: true }],
};
const wishes: readonly DaemonEvent[] = [
  { type: 'control.answered', standing: 'accepting' },
  { type: 'control.answered', standing: 'draining' },
  { type: 'control.fenced' },
  { type: 'control.cancel', commandId: 'cmd-1' },
  ...['cmd-1', 'cmd-2'].map((id): DaemonEvent => ({ type: 'work.received', execution: command(id) })),
  ...['cmd-0', 'cmd-1', 'cmd-2'].map((commandId): DaemonEvent => ({ type: 'work.turn', commandId })),
  { type: 'connection.lost' },
  { type: 'role.violated', role: 'workspace' },
  { type: 'ledger.damaged' },
  { type: 'daemon.repaired' },
];

function possibilities(snapshot: Snapshot): { type: string }[] {
  const endings = Object.keys(snapshot.children).flatMap((actor) => {
    if (actor.startsWith('command-')) {
      const commandId = actor.slice('command-'.length);
      const output = { commandId, runId: 'run-1', outcome: 'succeeded', code: null, resultDigest: 'result' };
      return [{ type: `xstate.done.actor.${actor}`, actorId: actor, output }];
    }
    return [
      ...(ends[actor] ?? []).map((output) => ({ type: `xstate.done.actor.${actor}`, actorId: actor, output })),
      { type: `xstate.error.actor.${actor}`, actorId: actor, error: new Error('broke') },
    ];
  });
  const good = endings.slice(0, 1);
  const waits = ['connecting.waiting', 'recovering.postponed'].map((state) => ({
    type: `xstate.after.backoff.daemon.${state}`,
  }));
  const timers = ['online.heard', 'draining.heard'].map((state) => ({
    type: `xstate.after.controlSilence.daemon.${state}`,
  }));
  const deadlines = ['online.unheard', 'draining.unheard', 'connecting'].map((state) => ({
    type: `xstate.after.controlDeadline.daemon.${state}`,
  }));
  const rest = [...waits, ...timers, ...deadlines, ...wishes].filter((one) => snapshot.can(one as DaemonEvent));
  return [...Array.from({ length: 10 }, () => good).flat(), ...endings, ...rest];
}

type Lived = { readonly event: string; readonly before: Snapshot; readonly after: Snapshot; readonly asked: string[] };

function live(picks: readonly number[]): Lived[] {
  let [last] = initialTransition(daemonMachine, { executorId: 'exec-1' });
  const lived: Lived[] = [];
  for (const pick of picks) {
    const possible = possibilities(last);
    if (last.status !== 'active' || possible.length === 0) break;
    const event = possible[pick % possible.length]!;
    const [next, asked] = transition(daemonMachine, last, event as DaemonEvent);
    lived.push({ event: event.type, before: last, after: next, asked: asked.map(nameOf) });
    last = next;
  }
  return lived;
}

const picks = fc.array(fc.nat({ max: 10_000 }), { maxLength: 60 });

/** What holds in every step of every life. */
function always(check: (one: Lived, before: readonly Lived[]) => void): void {
  fc.assert(
    fc.property(picks, (sequence) => {
      const lived = live(sequence);
      for (const [index, one] of lived.entries()) check(one, lived.slice(0, index));
    }),
    { numRuns: 500 },
  );
}

describe('a daemon', () => {
  it('connects only after every journal is settled and the ledger is read', () => {
    always(({ asked }, before) => {
      if (!asked.includes('xstate.spawnChild(connect)')) return;
      const events = before.map(({ event }) => event);
      assert.ok(events.includes('xstate.done.actor.recoverPromotion'));
    });
  });

  it('faults before its first connection only over what a person must settle; what cannot be settled now is tried again', () => {
    always(({ before, after, event }) => {
      if (!before.matches({ recovering: 'settling' }) || !event.endsWith('.actor.recoverPromotion')) return;
      if (event.startsWith('xstate.error')) assert.ok(after.matches({ recovering: 'postponed' }));
      else assert.ok(after.matches({ recovering: 'reading' }) || after.context.fault === 'JOURNAL_DAMAGED');
    });
  });

  it('stops every guest between a fence and the next handshake', () => {
    always(({ after, before, event }) => {
      if (before.matches('fenced') && after.matches('connecting')) {
        assert.equal(event, 'xstate.done.actor.stopFencedGuests');
      }
      if (event === 'control.fenced' && (before.matches('online') || before.matches('draining'))) {
        assert.ok(after.matches('fenced'));
      }
    });
  });

  it('spawns a command once, in online alone, and holds what it spawned until it closes', () => {
    always(({ asked, before, after }) => {
      const spawned = asked.filter((one) => one.startsWith('xstate.spawnChild(command-'));
      if (spawned.length > 0) assert.ok(before.matches('online') || before.matches({ recovering: 'reading' }));
      for (const one of spawned) {
        const id = one.slice('xstate.spawnChild(command-'.length, -1);
        assert.ok(!before.context.held.includes(id));
        assert.ok(after.context.held.includes(id));
      }
      const children = Object.keys(after.children).filter((id) => id.startsWith('command-'));
      assert.deepEqual(children.toSorted(), after.context.held.map((id) => `command-${id}`).toSorted());
    });
  });

  it('gives no turn while the control plane is silent, absent or the daemon is not online', () => {
    always(({ asked, before, after }) => {
      if (!asked.some((one) => one.endsWith(', execution.start)'))) return;
      const mayStart = after.matches({ online: 'heard' }) || after.matches({ draining: 'heard' });
      assert.ok(mayStart && (before.matches('online') || before.matches('draining')));
    });
  });

  it('leaves error only by a person: repaired, or stopped', () => {
    always(({ before, after, event }) => {
      if (before.matches('error') && !after.matches('error')) {
        assert.ok(['daemon.repaired', 'control.revoked', 'daemon.stop'].includes(event), event);
      }
    });
  });

  it('runs live: a command is spawned, gets its turn, ends, and a fence brings a new connection', async () => {
    const clock = new SimulatedClock();
    const epochs = [7, 8];
    const seen: string[] = [];
    const execution = executionMachine.provide({
      actions: {
        reportPhase: ({ context }, phase) => {
          seen.push(phase);
          if (phase === 'accepted-pending') daemon.send({ type: 'work.turn', commandId: context.commandId });
        },
      },
      actors: {
        checkGate: ok<CheckGate['output'], CheckGate['input']>({ permitted: true }),
        recordPhase: ok({ durable: true }),
        runOperation: ok<Ended, { commandId: string; operation: string }>({
          outcome: 'succeeded',
          code: null,
          resultDigest: 'result',
        }),
        recordResult: ok({ durable: true }),
        deliverResult: ok<DeliverResult['output'], DeliverResult['input']>({ answer: 'acknowledged' }),
      },
    });
    const live = daemonMachine.provide({
      actors: {
        execution,
        recoverPromotion: ok<RecoverAnswer, undefined>({ answer: 'settled' }),
        openLedger: ok<OpenLedger['output'], OpenLedger['input']>({ open: [] }),
        connect: fromPromise<Connect['output'], Connect['input']>(() =>
          Promise.resolve({ answer: 'connected', epoch: epochs.shift() ?? 0 }),
        ),
        stopGuests: ok({ stopped: 0 }),
        releaseLease: ok({ released: true }),
      },
    });
    const daemon: ActorRefFrom<typeof daemonMachine> = createActor(live, { input: { executorId: 'exec-1' }, clock });
    daemon.start();
    await waitFor(daemon, (state) => state.matches('online'), { timeout: 5_000 });
    daemon.send({ type: 'work.received', execution: command('cmd-1') });
    await waitFor(daemon, ({ context }) => context.held.length === 0 && seen.length > 0, { timeout: 5_000 });
    assert.deepEqual(seen, ['accepted-pending', 'started-pending', 'executing', 'result-pending']);
    clock.increment(3_000);
    assert.deepEqual(daemon.getSnapshot().value, { online: 'unheard' });
    daemon.send({ type: 'control.answered', standing: 'accepting' });
    daemon.send({ type: 'control.fenced' });
    await waitFor(daemon, (state) => state.matches('online') && state.context.epoch === 8, { timeout: 5_000 });
    daemon.send({ type: 'daemon.stop' });
    const { output } = await waitFor(daemon, ({ status }) => status === 'done', { timeout: 5_000 });
    assert.deepEqual(output, { outcome: 'asked' });
  });
});
