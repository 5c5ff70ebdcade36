import assert from 'node:assert/strict';
import type { CommandId } from '../../../helpers/protocol/ids.ts';
import { channelTimes } from '../../../server/protocol.ts';
import { cancelCommand } from '../../../server/commands/cancel.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { offboardPerson } from '../../../server/executors/offboard.ts';
import { findExecutor } from '../../../server/executors/store.ts';
import { switchAgentOff, withdrawOperation } from '../../../server/grants/access.ts';
import { newId } from '../../../server/new-id.ts';
import { endRun } from '../../../server/runs/store.ts';
import { resolveBundle } from '../../../server/runs/bind.ts';
import type { FakeExecutor, Play } from '../../fakes/fake-executor.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';
import { bareRun, deliver, done, narrow, openRun, openRunOn, storedCommand, untilCancelled } from '../work-run.ts';

describe('ending what a machine was given', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  it('R75 a cancel of what nobody was given ends it at once; the machine never sees it', async () => {
    const machine = plane.machine(paired, () => done);
    await machine.connect();
    const run = await openRun(plane);
    const id = await run.start('file.mkdir', { path: 'd' });
    await cancelCommand(plane.work, id, 'person');
    assert.equal((await storedCommand(plane, id)).outcome, 'cancelled');
    assert.deepEqual(await plane.context.store.read.selectFrom('jobs').selectAll().execute(), []);
    const empty = machine.ask('work', { capacity: 1 });
    empty.catch(() => undefined);
    assert.equal(machine.delivered.length, 0);
  });

  it('a cancel reaches a running command by the next control answer, and the outcome is what the machine proves', async () => {
    const { machine, run } = await openRunOn(plane, paired, untilCancelled);
    const abort = new AbortController();
    const called = run.call('file.mkdir', { path: 'd' }, { signal: abort.signal });
    await until('the command', () => machine.delivered[0]);
    const start = performance.now();
    abort.abort();
    assert.equal((await called).end?.outcome, 'cancelled');
    assert.ok(performance.now() - start < 1000);
    const late = run.call('file.mkdir', { path: 'e' });
    const second = await until('the second', () => machine.delivered[1]);
    await cancelCommand(plane.work, second.envelope.command, 'person');
    await cancelCommand(plane.work, second.envelope.command, 'person');
    assert.equal((await late).end?.outcome, 'cancelled');
  });

  it('R55 a cancelled command is one whose end is wanted until the machine confirms it; without an answer it is unknown, by its connection or its lifetime', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    const cancelled: Play = { outcome: 'cancelled', result: { success: false, code: 'CANCELLED' } };
    const standing = async (id: CommandId) => {
      const { state, open, cancelWanted, outcome } = await storedCommand(plane, id);
      return { state, open, cancelWanted, outcome };
    };
    const wanted = { state: 'cancelling.leased', open: 1, cancelWanted: 1, outcome: null };
    const [confirmed, silent, lost] = [
      await deliver(machine, run),
      await deliver(machine, run),
      await deliver(machine, run),
    ];
    for (const { id } of [confirmed, silent, lost]) {
      await cancelCommand(plane.work, id, 'person');
      assert.deepEqual(await standing(id), wanted);
    }
    await machine.ask('receipts', machine.chain(confirmed.delivered, cancelled));
    assert.equal((await confirmed.called).end?.outcome, 'cancelled');
    assert.deepEqual(await standing(silent.id), wanted);
    machine.cut();
    assert.equal((await lost.called).end?.outcome, 'unknown');
    assert.equal((await standing(lost.id)).state, 'unknown');

    const back = plane.machine(paired, undefined, machine.state);
    await back.connect();
    const late = await deliver(back, run);
    await cancelCommand(plane.work, late.id, 'person');
    plane.clock.offsetMs += 26_000;
    await plane.work.sweep();
    assert.equal((await late.called).end?.outcome, 'unknown');
    assert.equal((await standing(late.id)).state, 'unknown');
  });

  it('of more cancels than one answer carries the rest follows in the next one, whatever the first ones wait for', async () => {
    const paths = Array.from({ length: 35 }, (_, index) => `d${index}`);
    const machine = plane.machine(paired, () => new Promise<Play>(() => undefined));
    await machine.online();
    const runs = [await openRun(plane), await openRun(plane)];
    const ids = await Promise.all(runs.flatMap((run) => paths.map((path) => run.start('file.mkdir', { path }))));
    await until('all commands', () => machine.delivered.length === ids.length);
    const told = () => machine.delivered.filter(({ cancelled }) => cancelled.aborted).length;
    for (const id of ids) await cancelCommand(plane.work, id, 'person');
    const start = performance.now();
    await until('every cancel', () => told() === ids.length);
    assert.ok(performance.now() - start < channelTimes.controlHoldMs, 'the rest waited for no hold');
    const [late] = runs;
    assert.ok(late);
    const newest = await late.start('file.mkdir', { path: 'newest' });
    const delivered = await until('the newest', () => machine.delivered[ids.length]);
    await cancelCommand(plane.work, newest, 'person');
    await until('its cancel', () => delivered.cancelled.aborted);
    const back = plane.machine(paired, undefined, machine.state);
    await back.connect();
    const first = (await back.askControl()).cancel;
    assert.equal(first.length, 64);
    const all = new Set([...first, ...(await back.askControl()).cancel]);
    assert.deepEqual([...all].toSorted(), [...ids, newest].toSorted(), 'a new session hears all of them again');
  });

  it('a command that was done already when the cancel came is a success', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    const { delivered, called, id } = await deliver(machine, run);
    await cancelCommand(plane.work, id, 'person');
    await machine.ask('receipts', machine.chain(delivered, done));
    assert.equal((await called).end?.outcome, 'succeeded');
  });

  it('ending a run cancels what it has under way and tells the machine, once', async () => {
    const { machine, run } = await openRunOn(plane, paired, untilCancelled);
    const called = run.call('file.mkdir', { path: 'd' });
    await until('the command', () => machine.delivered[0]);
    await endRun(plane.work, run.run.id, 'stopped', { person: plane.by.person });
    assert.equal((await called).end?.outcome, 'cancelled');
    await until('the end of the run', () => machine.endedRuns.has(run.run.id));
    await until('that it was heard', async () => {
      const row = await plane.context.store.read
        .selectFrom('runs')
        .select('endTold')
        .where('id', '=', run.run.id)
        .executeTakeFirst();
      return row?.endTold === 1;
    });
  });

  it('a revocation while an operation runs is told within a second, and its outcome is unknown', async () => {
    const { machine, run } = await openRunOn(plane, paired, () => new Promise<Play>(() => undefined));
    const called = run.call('file.mkdir', { path: 'd' });
    await until('the command', () => machine.delivered[0]);
    const start = performance.now();
    await changeExecutor(plane.context, paired.executor, { type: 'executor.disconnect', by: 'administrator' });
    await until('the news', () => machine.answer?.standing === 'revoked');
    assert.ok(performance.now() - start < 1000);
    assert.equal((await called).end?.outcome, 'unknown');
    assert.equal(await machine.closed, 1008);
  });

  it('what is withdrawn while an operation hangs is cancelled within a second, and the next session still says so', async () => {
    const { machine, run } = await openRunOn(plane, paired, untilCancelled);
    const called = run.call('file.mkdir', { path: 'd' });
    const delivered = await until('the command', () => machine.delivered[0]);
    const { command } = delivered.envelope;
    const start = performance.now();
    await switchAgentOff(plane.context, plane.by, paired.executor, plane.agent);
    await until('the wish', () => delivered.cancelled.aborted);
    assert.ok(performance.now() - start < 1000);
    assert.equal(await machine.closed, 1008);
    assert.equal((await called).end?.outcome, 'unknown');
    const back = plane.machine(paired, undefined, machine.state);
    await back.connect();
    assert.deepEqual((await back.askControl()).cancel, [command]);
    const cancelled: Play = { outcome: 'cancelled', result: { success: false, code: 'CANCELLED' } };
    await back.ask('receipts', back.chain(delivered, cancelled, true));
    assert.equal((await storedCommand(plane, command)).outcome, 'cancelled');
    assert.deepEqual((await back.askControl()).cancel, []);
  });

  it('what was withdrawn after its connection broke is cancelled by the next session, since it may still run', async () => {
    const { machine, run } = await openRunOn(plane, paired, untilCancelled);
    const called = run.call('file.mkdir', { path: 'd' });
    const { envelope } = await until('the command', () => machine.delivered[0]);
    machine.cut();
    assert.equal((await called).end?.outcome, 'unknown');
    await switchAgentOff(plane.context, plane.by, paired.executor, plane.agent);
    const wanted = async () => (await storedCommand(plane, envelope.command)).cancelWanted === 1 || undefined;
    await until('the wish', wanted);
    const back = plane.machine(paired, undefined, machine.state);
    await back.connect();
    assert.deepEqual((await back.askControl()).cancel, [envelope.command]);
  });

  it('a pause hides nothing that is withdrawn under it: what runs is asked to stop', async () => {
    const { machine, run } = await openRunOn(plane, paired, untilCancelled);
    const called = run.call('file.mkdir', { path: 'd' });
    const delivered = await until('the command', () => machine.delivered[0]);
    await changeExecutor(plane.context, paired.executor, { type: 'executor.pause' });
    await narrow(plane, paired);
    await until('the wish', () => delivered.cancelled.aborted);
    assert.equal((await called).end?.outcome, 'cancelled');
  });

  it('a machine that ignores its fence gets nothing and is believed nothing', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    const { delivered, called } = await deliver(machine, run);
    await withdrawOperation(plane.context, plane.by, paired.executor, plane.agent, 'file.stat');
    await assert.rejects(machine.ask('receipts', machine.chain(delivered, done)));
    assert.equal(await machine.closed, 1008);
    assert.equal((await called).end?.outcome, 'unknown');
  });

  it('N-207 a revocation needs no help of the machine: one that ignores it gets no command, and no receipt of it is taken', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    const { delivered, called, id } = await deliver(machine, run);
    await run.start('file.mkdir', { path: 'waiting' });
    const { handles } = await resolveBundle(plane.work, await bareRun(plane));
    assert.ok(handles.size > 0);
    await changeExecutor(plane.context, paired.executor, { type: 'executor.disconnect', by: 'administrator' });
    const chain = machine.chain(delivered, done);
    await assert.rejects(machine.ask('receipts', chain));
    assert.equal(await machine.closed, 1008);
    assert.equal((await called).end?.outcome, 'unknown');
    for (const question of [
      (again: FakeExecutor) => again.ask('receipts', { ...chain, late: true }),
      (again: FakeExecutor) => again.ask('work', { capacity: 4 }),
      (again: FakeExecutor) => again.heartbeat(),
      (again: FakeExecutor) => again.announce(),
    ]) {
      const again = plane.machine(paired, undefined, machine.state);
      await again.open();
      assert.equal((await again.prove()).verdict, 'revoked');
      await assert.rejects(question(again));
      assert.equal(await again.closed, 1008);
      assert.equal(again.delivered.length, 0);
    }
    assert.equal(machine.delivered.length, 1);
    assert.equal((await storedCommand(plane, id)).state, 'unknown');
    assert.equal((await findExecutor(plane.context.store.read, paired.executor))?.state, 'revoked');
  });

  it('N-016 offboarding the last administrator during a file operation: its receipt arrives, nothing new is leased, and the machine revokes itself', async () => {
    const guest = newId('per');
    const { organisation, person } = plane.by;
    const made = { executor: paired.executor, createdAt: 1, createdBy: person };
    await plane.context.store.write(async (tx) => {
      const account = { organisation, login: 'guest', name: 'Guest', role: 'member', active: 1 } as const;
      await tx
        .insertInto('people')
        .values({ id: guest, ...account, password: null, createdAt: 1 })
        .execute();
      await tx.updateTable('executors').set({ scope: 'private' }).where('id', '=', paired.executor).execute();
      await tx.deleteFrom('assignments').where('kind', '=', 'person').execute();
      for (const [subject, role] of [
        [guest, 'admin'],
        [person, 'use'],
      ] as const)
        await tx
          .insertInto('assignments')
          .values({ ...made, kind: 'person', subject, role })
          .execute();
    });
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    const { delivered, id } = await deliver(machine, run);
    const waiting = await run.start('file.mkdir', { path: 'waiting' });
    await offboardPerson(plane.context, plane.by, guest);
    const state = async () => (await findExecutor(plane.context.store.read, paired.executor))?.state;
    assert.equal(await state(), 'draining');
    await assert.rejects(run.call('file.mkdir', { path: 'new' }), refusedWith('offline'));
    const back = plane.machine(paired, () => done, machine.state);
    await back.online();
    await plane.work.sweep();
    assert.equal(await state(), 'draining', 'it holds a command whose receipt is still to come');
    await back.ask('receipts', back.chain(delivered, done, true));
    assert.equal((await storedCommand(plane, id)).outcome, 'succeeded');
    plane.clock.offsetMs += 26_000;
    await plane.work.sweep();
    assert.equal(await state(), 'revoked');
    assert.deepEqual([machine.delivered.length, back.delivered.length], [1, 0]);
    assert.notEqual((await storedCommand(plane, waiting)).outcome, 'succeeded');
  });

  it('N-204 a drain, which an API call alone starts, is a state that the page shows: it gives out nothing more and ends once nothing can be settled any longer', async () => {
    const { machine, run } = await openRunOn(plane, paired, () => new Promise<Play>(() => undefined));
    const called = run.call('file.mkdir', { path: 'd' });
    await until('the command', () => machine.delivered[0]);
    const path = `/api/page/executors/${paired.executor}`;
    assert.deepEqual((await plane.page('GET', path)).body.actions, ['pause', 'disconnect', 'delete']);
    assert.equal((await plane.page('POST', `${path}/drain`)).status, 200);
    const shown = (await plane.page('GET', '/api/page/executors')).body.executors;
    assert.deepEqual(
      shown.map((one: { executor: string; state: string }) => [one.executor, one.state]),
      [[paired.executor, 'draining']],
    );
    assert.equal((await called).end?.outcome, 'unknown');
    await plane.work.sweep();
    const state = async () => (await findExecutor(plane.context.store.read, paired.executor))?.state;
    assert.equal(await state(), 'draining');
    const back = plane.machine(paired, () => done, machine.state);
    await back.connect();
    assert.equal((await back.askControl()).standing, 'draining');
    await assert.rejects(run.call('file.mkdir', { path: 'd' }), refusedWith('offline'));
    plane.clock.offsetMs += 26_000;
    await plane.work.sweep();
    assert.equal(await state(), 'revoked');
  });
});
