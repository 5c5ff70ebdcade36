import assert from 'node:assert/strict';
import { newId } from '../../../server/new-id.ts';
import { ProgressPace } from '../../../server/events/pace.ts';
import type { Progress } from '../../../server/wake.ts';
import { until } from '../control-plane.ts';
import { startGovernance } from '../governance.ts';

const progressOf = (command = newId('cmd')) => {
  const run = newId('run');
  return (done: number): Progress => ({ run, command, operation: 'file.search', done, total: 1000, phase: 'reading' });
};

describe('progress of commands', () => {
  it('a flood of one command is told at most four times a second, the latest last, and holds no other back', async () => {
    const told: { progress: Progress; at: number }[] = [];
    const pace = new ProgressPace((progress) => told.push({ progress, at: performance.now() }));
    const [one, other] = [progressOf(), progressOf()];
    const began = performance.now();
    for (let done = 0; done <= 1000; done += 1) pace.take(one(done));
    assert.deepEqual(
      told.map(({ progress }) => progress.done),
      [0],
      'the first at once',
    );
    pace.take(other(7));
    assert.equal(told.at(-1)?.progress.done, 7);
    await until('the latest', () => told.at(-1)?.progress.done === 1000);
    assert.equal(told.length, 3);
    // A timer may fire a millisecond early by the other clock.
    assert.ok(performance.now() - began >= 248);
    pace.stop();
  });

  it('a flood of a thousand costs an open page at most two looks at its session', async () => {
    const plane = await startGovernance();
    const abort = new AbortController();
    try {
      const { cookie } = plane.owner;
      const stream = await fetch(`${plane.origin}/api/page/events`, { headers: { cookie }, signal: abort.signal });
      assert.equal(stream.status, 200);
      await stream.body?.getReader().read();
      let looks = 0;
      const { read } = plane.context.store;
      const selectFrom = read.selectFrom.bind(read);
      // The overloads of selectFrom are kysely's; the count looks at the name of the table alone.
      Object.assign(read, {
        selectFrom: (table: never) => ((looks += table === 'sessions' ? 1 : 0), selectFrom(table)),
      });
      const progress = progressOf();
      for (let done = 0; done < 1000; done += 1) plane.context.wake.progress(progress(done));
      await until('a look', () => looks > 0);
      assert.ok(looks <= 2, `${looks} looks`);
    } finally {
      abort.abort();
      await plane.stop();
    }
  });
});
