import assert from 'node:assert/strict';
import { admitKey } from '../../../helpers/protocol/signed.ts';
import { receiptExportSchema, verifyReceiptChain } from '../../../helpers/protocol/receipt-chain.ts';
import type { Delivered, FakeExecutor, Play } from '../../fakes/fake-executor.ts';
import { FakeWorkspace } from '../../fakes/fake-workspace.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { openRun, untilCancelled } from '../work-run.ts';

const stranger = `per_${'3'.repeat(32)}` as never;

describe('runs on the page', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  const online = async (play?: (delivered: Delivered) => Promise<Play> | Play): Promise<FakeExecutor> => {
    const machine = plane.machine(paired, play ?? new FakeWorkspace({ a: 'x' }).play);
    await machine.online();
    return machine;
  };

  it('a person launches a run, watches what it does, and exports the receipts of a command', async () => {
    await online();
    const launched = await plane.page('POST', '/api/page/runs', {
      agent: plane.agent,
      project: plane.project,
      executor: paired.executor,
    });
    assert.equal(launched.status, 200, JSON.stringify(launched.body));
    assert.deepEqual([launched.body.openedBy, launched.body.state, launched.body.executor], ['person', 'active', null]);
    const shown = await plane.page('GET', `/api/page/runs/${launched.body.run}`);
    assert.ok(shown.body.availability.every(({ available }: { available: boolean }) => available));
    const run = await openRun(plane);
    await run.call('file.read', { path: 'a' });
    await run.call('file.read', { path: 'absent' });
    const { status, body } = await plane.page('GET', `/api/page/runs/${run.run.id}`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      body.commands.map((command: Record<string, unknown>) => [
        command['operation'],
        command['outcome'],
        command['code'],
      ]),
      [
        ['file.read', 'succeeded', null],
        ['file.read', 'failed', 'WORKSPACE_UNAVAILABLE'],
      ],
    );
    assert.deepEqual([body.commandCount, body.openCount, body.unknownCount, body.executorLabel], [2, 0, 0, 'desk']);
    assert.ok(!JSON.stringify(body).includes('absent'), 'no argument and no result is shown');
    const receipts = await plane.page('GET', `/api/page/commands/${body.commands[0].command}/receipts`);
    const exported = receiptExportSchema.parse(receipts.body);
    const keys = { machine: admitKey(paired.key.publicKey), control: admitKey(plane.key.publicKey) };
    assert.deepEqual(verifyReceiptChain(exported, keys), {
      ok: true,
      complete: true,
      outcome: 'succeeded',
      entries: 6,
    });
    const list = await plane.page('GET', `/api/page/runs?executor=${paired.executor}`);
    assert.deepEqual(
      list.body.runs.map(({ run: id }: { run: string }) => id),
      [run.run.id],
    );
  });

  it('a person stops a run from the page, and its machine hears it within a second', async () => {
    const machine = await online(untilCancelled);
    const run = await openRun(plane);
    const called = run.call('file.read', { path: 'a' });
    await until('the command', () => machine.delivered[0]);
    const start = performance.now();
    assert.equal((await plane.page('POST', `/api/page/runs/${run.run.id}/stop`)).status, 200);
    assert.equal((await called).end?.outcome, 'cancelled');
    assert.ok(performance.now() - start < 1000);
    const { body } = await plane.page('GET', `/api/page/runs/${run.run.id}`);
    assert.deepEqual([body.state, body.endedBecause], ['ended', 'stopped']);
  });

  it('one command is cancelled without touching another', async () => {
    const machine = await online(untilCancelled);
    const run = await openRun(plane);
    const first = run.call('file.read', { path: 'a' });
    const second = run.call('file.read', { path: 'b' });
    await until('both', () => machine.delivered.length === 2);
    const [one, other] = machine.delivered;
    assert.ok(one && other);
    await plane.page('POST', `/api/page/commands/${one.envelope.command}/cancel`);
    await until('the first', () => one.cancelled.aborted);
    assert.ok(!other.cancelled.aborted);
    await plane.page('POST', `/api/page/commands/${other.envelope.command}/cancel`);
    assert.deepEqual([(await first).end?.outcome, (await second).end?.outcome], ['cancelled', 'cancelled']);
  });

  it('what is not a person’s own is absent, and what does not exist answers alike', async () => {
    await online();
    const run = await openRun(plane);
    const { command } = await run.call('file.read', { path: 'a' });
    await plane.context.store.write(async (tx) => {
      const { organisation } = plane.by;
      await tx
        .insertInto('people')
        .values({
          id: stranger,
          organisation,
          login: 's',
          name: 'S',
          role: 'member',
          active: 1,
          password: null,
          createdAt: 0,
        })
        .execute();
      await tx.updateTable('runs').set({ person: stranger }).execute();
    });
    const nobody = `run_${'0'.repeat(32)}`;
    const hidden = await plane.page('GET', `/api/page/runs/${run.run.id}`);
    assert.deepEqual(hidden, await plane.page('GET', `/api/page/runs/${nobody}`));
    assert.equal(hidden.status, 404);
    for (const path of [
      `/api/page/runs/${run.run.id}/stop`,
      `/api/page/commands/${command}/cancel`,
      `/api/page/runs/${run.run.id}/review`,
    ]) {
      assert.equal((await plane.page('POST', path)).status, 404, path);
    }
    assert.equal((await plane.page('GET', `/api/page/commands/${command}/receipts`)).status, 404);
    assert.deepEqual((await plane.page('GET', '/api/page/runs')).body, { runs: [], more: false });
  });

  it('a launch for a foreign agent, project or machine is refused', async () => {
    const good = { agent: plane.agent, project: plane.project, executor: null };
    const lies = {
      agent: `agt_${'0'.repeat(32)}`,
      project: `prj_${'0'.repeat(32)}`,
      executor: `exr_${'0'.repeat(32)}`,
    };
    for (const [field, lie] of Object.entries(lies)) {
      const { status, body } = await plane.page('POST', '/api/page/runs', { ...good, [field]: lie });
      assert.equal(status, 404, field);
      assert.match(body.code, /_ABSENT$/);
    }
    assert.equal((await plane.page('POST', '/api/page/runs', { ...good, more: 1 })).status, 400);
    assert.deepEqual((await plane.page('GET', '/api/page/runs')).body.runs, []);
  });

  it('the end of an agent ends its runs', async () => {
    await online();
    const run = await openRun(plane);
    await plane.context.store.write((tx) => tx.updateTable('agents').set({ endedAt: 1 }).execute());
    await plane.work.sweep();
    const { body } = await plane.page('GET', `/api/page/runs/${run.run.id}`);
    assert.deepEqual([body.state, body.endedBecause], ['ended', 'agent-ended']);
  });
});
