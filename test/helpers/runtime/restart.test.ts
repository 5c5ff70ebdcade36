import assert from 'node:assert/strict';

import { afterEnding, NO_ENDINGS } from '../../../helpers/runtime/restart.ts';

/** Waits that a row gets that ends `count` times, each after running for `ranMs`; undefined is down. */
function waits(count: number, ranMs: number): (number | undefined)[] {
  const found: (number | undefined)[] = [];
  let endings = NO_ENDINGS;
  let nowMs = 0;
  for (let round = 0; round < count; round += 1) {
    nowMs += ranMs;
    const after = afterEnding(endings, ranMs, nowMs);
    ({ endings } = after);
    found.push(after.waitMs);
    nowMs += after.waitMs ?? 0;
  }
  return found;
}

describe('restarting a row', () => {
  it('waits 0.1 s, doubling to 30 s, while a row ends at once', () => {
    assert.deepEqual(waits(12, 5), [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000]);
  });

  it('waits 0.1 s again after a row had run for a second, and leaves it down after 20 endings in a minute', () => {
    const found = waits(20, 1_500);
    assert.deepEqual(
      found.slice(0, 19),
      Array.from({ length: 19 }, () => 100),
    );
    assert.equal(found[19], undefined);
  });

  it('never leaves a row down that ends less often', () => {
    assert.ok(waits(200, 4_000).every((wait) => wait === 100));
  });
});
