import assert from 'node:assert/strict';
import { bind, resolveBundle } from '../../../server/runs/bind.ts';
import { call } from '../../../server/runs/call.ts';
import { findRun, makeRun } from '../../../server/runs/store.ts';
import type { BindingRow, RunRow } from '../../../server/runs/store.ts';
import type { Play } from '../../fakes/fake-executor.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane } from '../control-plane.ts';

/** Opens a run of the plane's agent and binds all that it may use. */
export async function openRun(plane: ControlPlane): Promise<{ run: RunRow; bindings: Map<string, BindingRow> }> {
  const { work, by, agent, project } = plane;
  const context = { person: by.person, agent, project, conversation: 'talk', openedBy: 'agent', chosen: null } as const;
  const run = await work.store.write((tx) => makeRun(work, tx, context));
  const { handles } = await resolveBundle(work, run);
  const presented = [...handles].map(([operation, handle]) => ({
    run: run.id,
    person: run.person,
    agent,
    operation,
    handle,
  }));
  const bindings = await bind(work, presented);
  const bound = await findRun(work.store.read, run.id);
  assert.ok(bound);
  return { run: bound, bindings: new Map(bindings.map((binding) => [binding.operation, binding])) };
}

const read: Play = {
  outcome: 'succeeded',
  result: {
    success: true,
    path: 'a',
    offset: 0,
    byteCount: 4096,
    totalBytes: 4096,
    sha256: 'ab'.repeat(32),
    encoding: 'utf8',
    content: 'x'.repeat(4096),
    truncated: false,
  },
};

describe('calls of a run', () => {
  let plane: ControlPlane;

  beforeEach(async () => {
    plane = await startControlPlane();
  });
  afterEach(() => plane.stop());

  it('a call is leased, run and answered, and its result is the one that the machine signed', async () => {
    const paired = await plane.pair();
    const machine = plane.machine(paired, () => read);
    await machine.online();
    await until('a held work question', () => plane.work.lanes.find(paired.executor));
    const { run, bindings } = await openRun(plane);
    const binding = bindings.get('file.read');
    assert.ok(binding);
    const { end } = await call(plane.work, { run, binding, arguments: { path: 'a' } });
    assert.equal(end?.outcome, 'succeeded');
    const times: number[] = [];
    for (let turn = 0; turn < 200; turn += 1) {
      const start = performance.now();
      const again = await call(plane.work, { run, binding, arguments: { path: 'a' } });
      assert.equal(again.end?.outcome, 'succeeded');
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    console.log('p50', times[100], 'p99', times[197]);
    await machine.close();
  });
});
