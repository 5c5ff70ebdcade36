import assert from 'node:assert/strict';
import { findExecutor } from '../../../server/executors/store.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { freshState, QuestionRefused } from '../../fakes/fake-executor.ts';
import { machineKey } from '../../fakes/fake-machine.ts';
import { startControlPlane } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';

const refusedWith = (code: string) => (error: unknown) => error instanceof QuestionRefused && error.code === code;

describe('session of a machine', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  const state = async () => {
    const row = await findExecutor(plane.context.store.read, paired.executor);
    return { state: row?.state, epoch: row?.epoch, fault: row?.fault };
  };

  it('a proof over a fresh challenge raises the epoch and makes the executor online', async () => {
    const before = await state();
    const machine = plane.machine(paired);
    await machine.open();
    const session = await machine.prove();
    assert.equal(session.verdict, 'online');
    assert.deepEqual(await state(), { state: 'online', epoch: (before.epoch ?? 0) + 1, fault: null });
    assert.equal(session.epoch, (before.epoch ?? 0) + 1);
    await machine.close();
  });
});
