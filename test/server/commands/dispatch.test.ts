import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { CommandId } from '../../../helpers/protocol/ids.ts';
import { channelTimes } from '../../../server/protocol.ts';
import { cancelCommand } from '../../../server/commands/cancel.ts';
import { startWork } from '../../../server/commands/start-work.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { findExecutor } from '../../../server/executors/store.ts';
import { switchAgentOff, withdrawOperation } from '../../../server/grants/access.ts';
import { submitDescriptor } from '../../../server/descriptors/submit.ts';
import { endRun } from '../../../server/runs/store.ts';
import type { FakeExecutor } from '../../fakes/fake-executor.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';
import { confirmDescriptor, signDescriptor, startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';
import { done, narrow, openRun, openRunOn, otherProject, storedCommand, untilCancelled } from '../work-run.ts';
import type { OpenRun } from '../work-run.ts';

describe('bringing commands to a machine', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  const jobs = () => plane.context.store.read.selectFrom('jobs').selectAll().execute();

  it('N-105 work waits in one queue, whose rows hold the command’s id alone, until the machine asks', async () => {
    const machine = plane.machine(paired, () => done);
    await machine.connect();
    const run = await openRun(plane);
    const ids: CommandId[] = [];
    for (const path of ['a', 'b', 'c']) ids.push(await run.start('file.mkdir', { path }));
    const rows = await jobs();
    assert.deepEqual(
      rows.map(({ command }) => command),
      ids,
    );
    assert.deepEqual(Object.keys(rows[0] ?? {}).toSorted(), ['command', 'position']);
    assert.equal(machine.delivered.length, 0);
    const first = await machine.ask('work', { capacity: 2 });
    assert.deepEqual(
      first.commands.map((frame) => machine.receive(frame).envelope.command),
      ids.slice(0, 2),
    );
    const second = await machine.ask('work', { capacity: 2 });
    assert.deepEqual(
      second.commands.map((frame) => machine.receive(frame).envelope.command),
      ids.slice(2),
    );
    assert.deepEqual(await jobs(), []);
  });

  it('a work question asked again gets the same bytes, and nothing is given twice', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    await run.start('file.mkdir', { path: 'd' });
    await run.start('file.mkdir', { path: 'd' });
    const first = await machine.ask('work', { capacity: 1 }, { id: 77 });
    assert.equal(first.commands.length, 1);
    assert.deepEqual(await machine.ask('work', { capacity: 1 }, { id: 77 }), first);
    const second = await machine.ask('work', { capacity: 1 });
    assert.notDeepEqual(second, first);
    assert.equal(second.commands.length, 1);
  });

  it('N-114 an answer that was lost is the same when it is asked for again, and a frame of an older epoch is refused, whatever it asks', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    await run.start('file.mkdir', { path: 'd' });
    const lost = await machine.ask('work', { capacity: 1 }, { id: 77 });
    const [frame] = lost.commands;
    assert.ok(frame);
    assert.deepEqual(await machine.ask('work', { capacity: 1 }, { id: 77 }), lost);
    const delivered = machine.receive(frame);
    const chain = machine.chain(delivered, done);
    machine.cut();
    for (const ask of [
      (of: FakeExecutor) => of.ask('work', { capacity: 1 }, { epoch: of.epoch - 1 }),
      (of: FakeExecutor) => of.ask('control', { nonce: randomBytes(32) }, { epoch: of.epoch - 1 }),
      (of: FakeExecutor) => {
        const fields = { at: Date.now(), executor: paired.executor, epoch: of.epoch - 1, ...of.ledger };
        return of.ask('heartbeat', { heartbeat: of.sign('machine.heartbeat', fields) }, { epoch: of.epoch - 1 });
      },
      (of: FakeExecutor) => of.ask('receipts', chain, { epoch: of.epoch - 1 }),
    ]) {
      const again = plane.machine(paired, undefined, machine.state);
      await again.connect();
      await assert.rejects(ask(again), refusedWith('CONNECTION_FENCED'));
      assert.equal(await again.closed, 1008);
    }
    assert.equal((await storedCommand(plane, delivered.envelope.command)).state, 'unknown');
  });

  it('commands are delivered within their held question, and side by side', async () => {
    const { machine, run } = await openRunOn(plane, paired, async (delivered) => {
      if ((delivered.arguments as { path: string }).path === 'slow') return untilCancelled(delivered);
      return done;
    });
    const slow = run.call('file.mkdir', { path: 'slow' });
    await until('the slow one', () => machine.delivered.length === 1);
    const fast = await Promise.all(
      Array.from({ length: 50 }, (_, index) => run.call('file.mkdir', { path: `d${index}` })),
    );
    assert.ok(fast.every(({ end }) => end?.outcome === 'succeeded'));
    await cancelCommand(plane.work, machine.delivered[0]?.envelope.command as CommandId, 'person');
    assert.equal((await slow).end?.outcome, 'cancelled');
  });

  const withdrawals: Record<string, { change: (run: OpenRun) => Promise<unknown>; code: string }> = {
    'the grant': {
      change: () => withdrawOperation(plane.context, plane.by, paired.executor, plane.agent, 'file.mkdir'),
      code: 'operation_ungranted',
    },
    'all access of the agent': {
      change: () => switchAgentOff(plane.context, plane.by, paired.executor, plane.agent),
      code: 'operation_ungranted',
    },
    'the ordinary tool grant': {
      change: () =>
        plane.context.store.write((tx) => tx.deleteFrom('toolGrants').where('operation', '=', 'file.mkdir').execute()),
      code: 'logical_tool_ungranted',
    },
    'the local policy': {
      change: () =>
        confirmDescriptor(plane.context, plane.by, {
          ...paired,
          descriptor: machineDescriptor({ revision: 2, operations: ['file.read'] }),
        }),
      code: 'operation_ungranted',
    },
    'the run itself': { change: (run) => endRun(plane.work, run.run.id, 'stopped'), code: 'RUN_ENDED' },
    'the binding': {
      change: (run) =>
        plane.context.store.write((tx) =>
          tx
            .updateTable('bindings')
            .set({ operation: 'file.stat2' })
            .where('run', '=', run.run.id)
            .where('operation', '=', 'file.mkdir')
            .execute(),
        ),
      code: 'BINDING_INVALID',
    },
  };
  for (const [what, { change, code }] of Object.entries(withdrawals)) {
    it(`${what} withdrawn between bind and call refuses the call before there is a command`, async () => {
      const { machine, run } = await openRunOn(plane, paired);
      await change(run);
      await assert.rejects(run.call('file.mkdir', { path: 'd' }), refusedWith(code));
      assert.equal(machine.delivered.length, 0);
      assert.deepEqual(await plane.context.store.read.selectFrom('commands').select('id').execute(), []);
    });
  }

  const falls: Record<string, { change: () => Promise<unknown>; code: string }> = {
    discovery: {
      change: () => plane.context.store.write((tx) => tx.updateTable('executors').set({ listed: 0 }).execute()),
      code: 'not_discoverable',
    },
    'the grant': {
      change: () => plane.context.store.write((tx) => tx.deleteFrom('grants').execute()),
      code: 'operation_ungranted',
    },
    'the tool grant': {
      change: () => plane.context.store.write((tx) => tx.deleteFrom('toolGrants').execute()),
      code: 'logical_tool_ungranted',
    },
    'the scope': {
      change: async () => {
        const project = await otherProject(plane);
        await plane.context.store.write((tx) =>
          tx.updateTable('executors').set({ scope: 'project', project }).execute(),
        );
      },
      code: 'scope_mismatch',
    },
    'the confirmed root': {
      change: () => {
        const descriptor = machineDescriptor({ revision: 2, rootName: 'elsewhere' });
        return submitDescriptor(plane.context, paired.executor, signDescriptor({ ...paired, descriptor }));
      },
      code: 'descriptor_unreviewed',
    },
    'the local policy': { change: () => narrow(plane, paired), code: 'local_policy_denied' },
  };
  for (const [what, { change, code }] of Object.entries(falls)) {
    it(`N-102 ${what} that falls between binding and dispatch refuses the command, and the gate is named`, async () => {
      const machine = plane.machine(paired, () => done);
      await machine.connect();
      const run = await openRun(plane);
      const id = await run.start('file.mkdir', { path: 'd' });
      await change();
      const asked = machine.ask('work', { capacity: 4 });
      asked.catch(() => undefined);
      const row = await until('the refusal', async () => {
        const now = await storedCommand(plane, id);
        return now.outcome === null ? undefined : now;
      });
      assert.deepEqual([row.outcome, row.gate, row.code], ['refused', 'control-plane', code]);
      assert.deepEqual(await jobs(), []);
      assert.equal(machine.delivered.length, 0);
    });
  }

  it('what is offline at dispatch waits, and ends expired when its time runs out: nothing ran', async () => {
    const machine = plane.machine(paired, () => done);
    await machine.connect();
    const run = await openRun(plane);
    const id = await run.start('file.mkdir', { path: 'd' });
    machine.cut();
    plane.clock.offsetMs += 26_000;
    await plane.work.sweep();
    assert.equal((await storedCommand(plane, id)).outcome, 'expired');
    assert.deepEqual(await jobs(), []);
  });

  it('what waits for a machine that is revoked ends at once, and whoever waits is told why', async () => {
    const machine = plane.machine(paired, () => done);
    await machine.connect();
    const run = await openRun(plane);
    const called = run.call('file.mkdir', { path: 'd' });
    await until('the command to wait', async () => (await jobs()).length === 1);
    await changeExecutor(plane.context, paired.executor, { type: 'executor.disconnect', by: 'administrator' });
    const { end } = await called;
    assert.deepEqual([end?.outcome, end?.gate, end?.code], ['refused', 'control-plane', 'EXECUTOR_REVOKED']);
    assert.deepEqual(await jobs(), []);
  });

  it('N-201 a paused executor stays online and is given nothing; it stays paused, draining or in error over a new connection', async () => {
    const { machine, run } = await openRunOn(plane, paired);
    const row = () => findExecutor(plane.context.store.read, paired.executor);
    await changeExecutor(plane.context, paired.executor, { type: 'executor.pause' });
    await until('paused', () => machine.answer?.standing === 'paused');
    assert.equal((await row())?.state, 'online');
    await assert.rejects(run.call('file.mkdir', { path: 'd' }), refusedWith('offline'));
    assert.ok((await machine.heartbeat()).at > 0);
    machine.cut();
    const paused = plane.machine(paired, () => done, machine.state);
    await paused.online();
    await until('paused in the next connection', () => paused.answer?.standing === 'paused');
    assert.ok((await paused.heartbeat()).at > 0);
    assert.equal((await row())?.state, 'online');
    await assert.rejects(run.call('file.mkdir', { path: 'd' }), refusedWith('offline'));
    await changeExecutor(plane.context, paired.executor, { type: 'executor.resume' });
    assert.equal(await paused.closed, 1008);
    const resumed = plane.machine(paired, () => done, machine.state);
    await resumed.online();
    assert.equal((await run.call('file.mkdir', { path: 'd' })).end?.outcome, 'succeeded');
    const waiting = await run.start('file.mkdir', { path: 'waits' });
    await until('its end', async () => (await storedCommand(plane, waiting)).outcome === 'succeeded');
    await changeExecutor(plane.context, paired.executor, { type: 'executor.damaged', fault: 'ledger-damaged' });
    assert.equal(await resumed.closed, 1008);
    const damaged = plane.machine(paired, () => done, machine.state);
    assert.equal((await damaged.connect()).verdict, 'in-error');
    assert.equal((await row())?.state, 'error');
    const repaired = plane.machine(paired, () => done, machine.state);
    await repaired.open();
    await repaired.prove({ repaired: true });
    await changeExecutor(plane.context, paired.executor, { type: 'executor.drain' });
    const draining = plane.machine(paired, () => done, machine.state);
    await draining.connect();
    assert.equal((await draining.askControl()).standing, 'draining');
    assert.equal((await row())?.state, 'draining');
    assert.deepEqual(
      [machine, paused, damaged, repaired, draining].map(({ delivered }) => delivered.length),
      [0, 0, 0, 0, 0],
    );
  });

  it('a restart of the control plane runs nothing again: what was given is unknown, what waited is given once', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    const asked = machine.ask('work', { capacity: 1 });
    const given = await run.start('file.mkdir', { path: 'd' });
    const [frame] = (await asked).commands;
    assert.ok(frame);
    const delivered = machine.receive(frame);
    const waiting = await run.start('file.mkdir', { path: 'd' });
    machine.cut();
    await machine.closed;
    const again = await startWork(plane.context);
    assert.equal((await storedCommand(plane, given)).state, 'unknown');
    assert.equal((await storedCommand(plane, waiting)).state, 'queued');
    await again.stop();
    const back = plane.machine(paired, () => done, machine.state);
    await back.online();
    await until('what waited', async () => (await storedCommand(plane, waiting)).outcome === 'succeeded');
    await back.ask('receipts', back.chain(delivered, done, true));
    assert.equal((await storedCommand(plane, given)).outcome, 'succeeded');
    assert.equal(back.delivered.filter(({ envelope }) => envelope.command === given).length, 0);
  });

  it('what was withdrawn by a process that died over it is asked to stop by the next one', async () => {
    const machine = plane.machine(paired);
    await machine.connect();
    const run = await openRun(plane);
    const asked = machine.ask('work', { capacity: 1 });
    const given = await run.start('file.mkdir', { path: 'd' });
    assert.equal((await asked).commands.length, 1);
    await plane.context.store.write((tx) => tx.deleteFrom('grants').where('executor', '=', paired.executor).execute());
    const again = await startWork(plane.context);
    const { state, cancelWanted } = await storedCommand(plane, given);
    await again.stop();
    assert.deepEqual([state, cancelWanted], ['unknown', 1]);
  });

  it('with the store gone nothing is given out and nothing is said to be done', async () => {
    const { machine, run } = await openRunOn(plane, paired);
    const { store } = plane.context;
    const write = store.write.bind(store);
    Object.assign(plane.context.store, { write: () => Promise.reject(new Error('disk')) });
    await assert.rejects(run.call('file.mkdir', { path: 'd' }));
    assert.equal(machine.delivered.length, 0);
    Object.assign(plane.context.store, { write });
    assert.equal((await run.call('file.mkdir', { path: 'd' })).end?.outcome, 'succeeded');
  });

  it('arguments outside the operation’s shape make no command', async () => {
    const { run } = await openRunOn(plane, paired);
    for (const wrong of [{}, { path: 1 }, { path: 'a', more: true }, { path: 'x'.repeat(1025) }, 'text']) {
      await assert.rejects(run.call('file.mkdir', wrong), refusedWith('ARGUMENTS_INVALID'));
    }
    await assert.rejects(
      run.call('file.write', { path: 'a', content: '\u3042'.repeat(65_536) }),
      refusedWith('ARGUMENTS_TOO_LARGE'),
    );
  });

  it('the control lane answers within its hold while a command runs, signed over its own nonce', async () => {
    const { machine, run } = await openRunOn(plane, paired, untilCancelled);
    const called = run.call('file.mkdir', { path: 'd' });
    await until('the command', () => machine.delivered[0]);
    const before = machine.answer;
    await until(
      'a further control answer',
      () => machine.answer !== before && machine.answer,
      channelTimes.controlHoldMs + 1000,
    );
    assert.equal(machine.answer?.confirmedRevision, 1);
    assert.equal(Buffer.from(machine.answer.confirmedPolicyDigest).toString('hex'), paired.descriptor.policyDigest);
    await cancelCommand(plane.work, machine.delivered[0]?.envelope.command as CommandId, 'person');
    await called;
  });
});
