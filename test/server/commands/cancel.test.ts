import assert from 'node:assert/strict';
import type { CommandId } from '../../../helpers/protocol/ids.ts';
import { cancelCommand } from '../../../server/commands/cancel.ts';
import { findCommand } from '../../../server/commands/store.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { findExecutor } from '../../../server/executors/store.ts';
import { switchAgentOff, withdrawOperation } from '../../../server/grants/access.ts';
import { Refusal } from '../../../server/refusal.ts';
import { start } from '../../../server/runs/call.ts';
import { endRun } from '../../../server/runs/store.ts';
import type { Delivered, Play } from '../../fakes/fake-executor.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { openRun } from '../work-run.ts';
import type { OpenRun } from '../work-run.ts';

const done: Play = { outcome: 'succeeded', result: { success: true, path: 'd' } };
const refusedWith = (code: string) => (error: unknown) => error instanceof Refusal && error.code === code;
/** Plays a command until somebody cancels it. */
const untilCancelled = (delivered: Delivered) =>
  new Promise<Play>((resolve) => {
    const end = (): void => resolve({ outcome: 'cancelled', result: { success: false, code: 'CANCELLED' } });
    delivered.cancelled.addEventListener('abort', end, { once: true });
  });

describe('ending what a machine was given', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  const stored = async (id: CommandId) => {
    const row = await findCommand(plane.context.store.read, id);
    assert.ok(row);
    return row;
  };
  const jobs = () => plane.context.store.read.selectFrom('jobs').selectAll().execute();
  const begin = async (run: OpenRun): Promise<CommandId> => {
    const binding = run.bindings.get('file.mkdir');
    assert.ok(binding);
    return start(plane.work, { run: run.run, binding, arguments: { path: 'd' } });
  };
  const online = async (play: (delivered: Delivered) => Promise<Play> | Play = () => done) => {
    const machine = plane.machine(paired, play);
    await machine.online();
    return { machine, run: await openRun(plane) };
  };

  it('R75 a cancel of what nobody was given ends it at once; the machine never sees it', async () => {
    const machine = plane.machine(paired, () => done);
    await machine.open();
    await machine.prove();
    const run = await openRun(plane);
    const id = await begin(run);
    await cancelCommand(plane.work, id, 'person');
    assert.equal((await stored(id)).outcome, 'cancelled');
    assert.deepEqual(await jobs(), []);
    const empty = machine.ask('work', { capacity: 1 });
    empty.catch(() => undefined);
    assert.equal(machine.delivered.length, 0);
  });

  it('a cancel reaches a running command by the next control answer, and the outcome is what the machine proves', async () => {
    const { machine, run } = await online(untilCancelled);
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

  it('a command that was done already when the cancel came is a success', async () => {
    const machine = plane.machine(paired);
    await machine.open();
    await machine.prove();
    const run = await openRun(plane);
    const asked = machine.ask('work', { capacity: 1 });
    const called = run.call('file.mkdir', { path: 'd' });
    const [frame] = (await asked).commands;
    assert.ok(frame);
    const delivered = machine.receive(frame);
    await cancelCommand(plane.work, delivered.envelope.command, 'person');
    await machine.ask('receipts', machine.chain(delivered, done));
    assert.equal((await called).end?.outcome, 'succeeded');
  });

  it('ending a run cancels what it has under way and tells the machine, once', async () => {
    const { machine, run } = await online(untilCancelled);
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
    const { machine, run } = await online(() => new Promise<Play>(() => undefined));
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
    const { machine, run } = await online(untilCancelled);
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
    await back.open();
    await back.prove();
    assert.deepEqual((await back.askControl()).cancel, [command]);
    const cancelled: Play = { outcome: 'cancelled', result: { success: false, code: 'CANCELLED' } };
    await back.ask('receipts', back.chain(delivered, cancelled, true));
    assert.equal((await stored(command)).outcome, 'cancelled');
    assert.deepEqual((await back.askControl()).cancel, []);
  });

  it('a machine that ignores its fence gets nothing and is believed nothing', async () => {
    const machine = plane.machine(paired);
    await machine.open();
    await machine.prove();
    const run = await openRun(plane);
    const asked = machine.ask('work', { capacity: 1 });
    const called = run.call('file.mkdir', { path: 'd' });
    const [frame] = (await asked).commands;
    assert.ok(frame);
    const delivered = machine.receive(frame);
    await withdrawOperation(plane.context, plane.by, paired.executor, plane.agent, 'file.stat');
    await assert.rejects(machine.ask('receipts', machine.chain(delivered, done)));
    assert.equal(await machine.closed, 1008);
    assert.equal((await called).end?.outcome, 'unknown');
  });

  it('a drain gives out nothing more and ends once nothing can be settled any longer', async () => {
    const { machine, run } = await online(() => new Promise<Play>(() => undefined));
    const called = run.call('file.mkdir', { path: 'd' });
    await until('the command', () => machine.delivered[0]);
    await changeExecutor(plane.context, paired.executor, { type: 'executor.drain' });
    assert.equal((await called).end?.outcome, 'unknown');
    await plane.work.sweep();
    const state = async () => (await findExecutor(plane.context.store.read, paired.executor))?.state;
    assert.equal(await state(), 'draining');
    const back = plane.machine(paired, () => done, machine.state);
    await back.open();
    await back.prove();
    assert.equal((await back.askControl()).standing, 'draining');
    await assert.rejects(run.call('file.mkdir', { path: 'd' }), refusedWith('offline'));
    plane.clock.offsetMs += 26_000;
    await plane.work.sweep();
    assert.equal(await state(), 'revoked');
  });
});
