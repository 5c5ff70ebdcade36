import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { OperationKey } from '../../../helpers/protocol/operations.ts';
import { workspaceBundle } from '../../../helpers/protocol/operations.ts';
import { sha256 } from '../../../helpers/protocol/signed.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { switchAgentOff, withdrawOperation } from '../../../server/grants/access.ts';
import { Refusal } from '../../../server/refusal.ts';
import { bind, bindForPerson, resolveBundle } from '../../../server/runs/bind.ts';
import type { Presented } from '../../../server/runs/bind.ts';
import { start } from '../../../server/runs/call.ts';
import { endRun, findRun } from '../../../server/runs/store.ts';
import type { BindingRow, RunRow } from '../../../server/runs/store.ts';
import type { FakeExecutor } from '../../fakes/fake-executor.ts';
import { machineDescriptor } from '../../fakes/fake-machine.ts';
import { confirmDescriptor, startControlPlane } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';
import { bareRun, narrow, openRun, otherProject } from '../work-run.ts';

describe('candidates and bindings', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;
  let machine: FakeExecutor;
  let run: RunRow;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
    machine = plane.machine(paired);
    await machine.connect();
    run = await bareRun(plane);
  });
  afterEach(() => plane.stop());

  const handleFor = async (operation: OperationKey): Promise<Presented> => {
    const { handles } = await resolveBundle(plane.work, run);
    const handle = handles.get(operation);
    assert.ok(handle);
    return { run: run.id, person: run.person, agent: run.agent, operation, handle };
  };
  const one = async (presented: Presented) => {
    const [binding] = await bind(plane.work, [presented]);
    assert.ok(binding);
    return binding;
  };

  it('all granted keys of the bundle are bound in one transaction, each with a fence of its own that only grows', async () => {
    const { bindings } = await openRun(plane);
    assert.deepEqual([...bindings.keys()], [...workspaceBundle]);
    const fences = [...bindings.values()].map(({ fence }) => fence);
    assert.deepEqual(
      fences,
      fences.toSorted((a, b) => a - b),
    );
    const { bindings: second } = await openRun(plane);
    assert.ok(Math.min(...[...second.values()].map(({ fence }) => fence)) > Math.max(...fences));
  });

  describe('N-098 a candidate', () => {
    it('a handle serves for five minutes and not for 301 s', async () => {
      const first = await handleFor('file.read');
      plane.clock.offsetMs += 299_000;
      await machine.ask('heartbeat', {
        heartbeat: machine.sign('machine.heartbeat', {
          at: plane.clock.now(),
          executor: paired.executor,
          epoch: machine.epoch,
          ...machine.ledger,
        }),
      });
      await one(first);
      const second = await handleFor('file.list');
      plane.clock.offsetMs += 301_000;
      await assert.rejects(bind(plane.work, [second]), refusedWith('CANDIDATE_EXPIRED'));
    });

    it('is 32 random bytes that serve once, and without it there is no command', async () => {
      const seen = new Set<string>();
      for (let turn = 0; turn < 20; turn += 1) {
        const { handles } = await resolveBundle(plane.work, run);
        for (const handle of handles.values()) {
          assert.equal(handle.length, 32);
          seen.add(handle.toString('hex'));
        }
      }
      assert.equal(seen.size, 20 * workspaceBundle.length, 'none comes twice');
      const invented = { id: `bnd_${'1'.repeat(32)}`, run: run.id, operation: 'file.read' } as unknown as BindingRow;
      await assert.rejects(start(plane.work, { run, binding: invented, arguments: { path: 'a' } }), Refusal);
      assert.deepEqual(await plane.context.store.read.selectFrom('commands').select('id').execute(), []);
      const presented = await handleFor('file.read');
      const binding = await one(presented);
      assert.deepEqual(await one(presented), binding, 'a second use makes no second binding');
      const other = await bareRun(plane);
      await assert.rejects(bind(plane.work, [{ ...presented, run: other.id }]), refusedWith('CANDIDATE_FOREIGN'));
      const bindings = await plane.context.store.read.selectFrom('bindings').select('id').execute();
      assert.deepEqual(bindings, [{ id: binding.id }]);
    });
  });

  it('N-099 of a handle the store keeps a digest alone, with who and what it is for, and it is of no use to anybody else', async () => {
    const presented = await handleFor('file.read');
    const rows = await plane.context.store.read
      .selectFrom('candidates')
      .selectAll()
      .where('operation', '=', 'file.read')
      .execute();
    assert.equal(presented.handle.length, 32);
    assert.deepEqual(
      rows.map((row) => row.handleDigest),
      [sha256(presented.handle)],
    );
    assert.deepEqual([rows[0]?.run, rows[0]?.person, rows[0]?.agent], [run.id, run.person, run.agent]);
    await plane.context.store.scrub();
    assert.ok(!(await readFile(join(plane.folder, 'store.db'))).includes(Buffer.from(presented.handle)));
    const other = await bareRun(plane);
    const lies: Partial<Presented>[] = [
      { person: `per_${'1'.repeat(32)}` as never },
      { agent: `agt_${'1'.repeat(32)}` as never },
      { agent: null },
      { run: other.id },
      { operation: 'file.write' },
    ];
    for (const lie of lies)
      await assert.rejects(bind(plane.work, [{ ...presented, ...lie }]), refusedWith('CANDIDATE_FOREIGN'));
    await assert.rejects(
      bind(plane.work, [{ ...presented, handle: Buffer.alloc(32) }]),
      refusedWith('CANDIDATE_UNKNOWN'),
    );
    assert.equal((await one(presented)).operation, 'file.read');
  });

  it('N-101 100 parallel binds of one handle give one binding; another handle is a conflict', async () => {
    const presented = await handleFor('file.read');
    const other = await handleFor('file.read');
    const bindings = await Promise.all(Array.from({ length: 100 }, () => one(presented)));
    assert.equal(new Set(bindings.map(({ id }) => id)).size, 1);
    assert.equal(new Set(bindings.map(({ fence }) => fence)).size, 1);
    await assert.rejects(bind(plane.work, [other]), refusedWith('BINDING_CONFLICT'));
    const fresh = await Promise.all(Array.from({ length: 100 }, async () => handleFor('file.list')));
    const outcomes = await Promise.allSettled(fresh.map(one));
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
    assert.equal((await plane.context.store.read.selectFrom('bindings').selectAll().execute()).length, 2);
  });

  const withdrawals: Record<string, { change: () => Promise<unknown>; code: string }> = {
    'the grant': {
      change: () => withdrawOperation(plane.context, plane.by, paired.executor, plane.agent, 'file.read'),
      code: 'operation_ungranted',
    },
    'the tool grant': {
      change: () => plane.context.store.write((tx) => tx.deleteFrom('toolGrants').execute()),
      code: 'logical_tool_ungranted',
    },
    discovery: {
      change: () => plane.context.store.write((tx) => tx.updateTable('executors').set({ listed: 0 }).execute()),
      code: 'not_discoverable',
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
    'the local policy': { change: () => narrow(plane, paired), code: 'local_policy_denied' },
    'the connection': {
      change: () =>
        machine
          .close()
          .then(() => changeExecutor(plane.context, paired.executor, { type: 'executor.silent' }))
          .catch(() => undefined),
      code: 'offline',
    },
    'the confirmation': {
      change: () =>
        plane.context.store.write((tx) => tx.updateTable('descriptors').set({ state: 'superseded' }).execute()),
      code: 'descriptor_unreviewed',
    },
    'the run': { change: () => endRun(plane.work, run.id, 'stopped'), code: 'CANDIDATE_UNKNOWN' },
  };
  for (const [what, { change, code }] of Object.entries(withdrawals)) {
    it(`N-100 ${what} withdrawn between resolve and bind refuses the binding`, async () => {
      const presented = await handleFor('file.read');
      await change();
      await assert.rejects(bind(plane.work, [presented]), refusedWith(code));
      assert.deepEqual(await plane.context.store.read.selectFrom('bindings').selectAll().execute(), []);
    });
  }

  it('one key that falls undoes the whole binding of the bundle', async () => {
    const { handles } = await resolveBundle(plane.work, run);
    await plane.context.store.write((tx) =>
      tx.deleteFrom('toolGrants').where('operation', '=', 'sandbox.stop').execute(),
    );
    const presented = [...handles].map(([operation, handle]) => ({
      run: run.id,
      person: run.person,
      agent: run.agent,
      operation,
      handle,
    }));
    await assert.rejects(bind(plane.work, presented), refusedWith('logical_tool_ungranted'));
    assert.deepEqual(await plane.context.store.read.selectFrom('bindings').selectAll().execute(), []);
    assert.equal((await findRun(plane.context.store.read, run.id))?.executor, null);
  });

  it('N-104 a run never moves: when its machine is gone a second one sees nothing of it', async () => {
    const twin = await plane.pair();
    const second = plane.machine(twin);
    await second.online();
    const opened = await openRun(plane);
    assert.equal(opened.run.executor, paired.executor);
    await machine.close();
    await changeExecutor(plane.context, paired.executor, { type: 'executor.disconnect', by: 'administrator' });
    await assert.rejects(opened.call('file.read', { path: 'a' }), Refusal);
    const again = await resolveBundle(plane.work, opened.run);
    assert.equal(again.handles.size, 0);
    assert.equal(second.delivered.length, 0);
  });

  it('an administrator’s disconnect ends every outstanding handle', async () => {
    const presented = await handleFor('file.read');
    await changeExecutor(plane.context, paired.executor, { type: 'executor.disconnect', by: 'administrator' });
    await assert.rejects(bind(plane.work, [presented]), refusedWith('CANDIDATE_UNKNOWN'));
  });

  it('what no agent may call is in no bundle and bound by no handle; a person binds it alone, once', async () => {
    const { handles } = await resolveBundle(plane.work, run);
    assert.ok(!handles.has('workspace.promote') && !handles.has('review.difference'));
    await assert.rejects(bindForPerson(plane.work, run, 'workspace.promote'), refusedWith('RUN_UNBOUND'));
    const opened = await openRun(plane);
    const first = await bindForPerson(plane.work, opened.run, 'workspace.promote');
    assert.deepEqual(await bindForPerson(plane.work, opened.run, 'workspace.promote'), first);
    assert.ok(first.fence > Math.max(...[...opened.bindings.values()].map(({ fence }) => fence)));
  });

  it('a machine with fewer operations binds those that it has, and the machine with more is preferred', async () => {
    const narrow = await plane.pair(machineDescriptor({ operations: ['file.read', 'file.list'] }));
    const small = plane.machine(narrow);
    await small.connect();
    assert.equal((await openRun(plane)).run.executor, paired.executor);
    await switchAgentOff(plane.context, plane.by, paired.executor, plane.agent);
    const opened = await openRun(plane);
    assert.equal(opened.run.executor, narrow.executor);
    assert.deepEqual([...opened.bindings.keys()].toSorted(), ['file.list', 'file.read']);
    await confirmDescriptor(plane.context, plane.by, { ...narrow, descriptor: machineDescriptor({ revision: 2 }) });
    await small.closed;
    const back = plane.machine(narrow, undefined, small.state);
    await back.connect();
    const later = await openRun(plane);
    assert.deepEqual(
      [...later.bindings.keys()].toSorted(),
      ['file.list', 'file.read'],
      'a new operation arrives denied',
    );
  });
});
