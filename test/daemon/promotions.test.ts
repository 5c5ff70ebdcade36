import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import { signal } from '../faults/processes.ts';
import { pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { idOf, newRun, Promotions } from '../fixtures/promotions.ts';
import { until } from '../fixtures/until.ts';

describe('a promotion on a real executor', function () {
  this.timeout(120_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let promotions: Promotions;
  let end: () => Promise<void>;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
    promotions = new Promotions(plane, executor);
  });
  after(() => end());
  afterEach(async () => {
    plane.beHonest();
    await executor.is('online');
  });

  const inRoot = (name: string): boolean => fs.existsSync(path.join(executor.root, name));

  for (const [what, runtimeMs] of [
    ['a cancel', 20_000],
    ['its time limit', 500],
  ] as const) {
    it(`that takes long to end after ${what} ends as it truly was, not as unknown`, async () => {
      const run = newRun();
      await promotions.draft(run, `${run}.txt`, 'draft');
      const frame = await promotions.approved(run, { maximumRuntimeMs: runtimeMs });
      plane.deliver(frame);
      const promote = await promotions.freeze();
      if (runtimeMs > 1000) await promotions.cancel(idOf(frame));
      await until(
        'the grace to pass',
        async () => (await executor.traced()).includes(graceOf(idOf(frame))) || undefined,
      );
      signal(promote, 'SIGCONT');
      const { ending } = await promotions.told(idOf(frame));
      assert.ok(ending === 'succeeded' || ending === 'cancelled' || ending === 'expired', `ended ${ending}`);
      assert.equal(inRoot(`${run}.txt`), ending === 'succeeded');
    });
  }
});

/** What a trace line says of a command whose helper did not stop in time. */
function graceOf(command: string): string {
  return `"actor":"command-${command}","event":{"type":"xstate.after.stopGrace`;
}
