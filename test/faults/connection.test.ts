import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { until } from '../../daemon/demo/children.ts';
import { World } from './world.ts';

const STEP_MS = 60_000;
const CUTS = 100;
/** How long the control plane cannot be reached, in ms: enough for six attempts that each wait longer. */
const AWAY_MS = 12_000;

describe('a connection that fails', function () {
  this.timeout(240_000);
  let world: World | undefined;

  before(async () => {
    world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, 'a.txt'), 'hello\n') });
  });
  afterEach(() => world?.thawAll());
  after(() => world?.end());

  it('N-510 the daemon returns by itself after a fence, a restart of the control plane and 100 cuts, with growing, jittered waits', async () => {
    assert.ok(world);
    const real = world;
    const daemon = real.pidOf('daemon');
    const access = `/api/page/executors/${real.executorId}/agents/${real.access.agent}`;
    await real.person.put(access, { access: 'off' });
    await real.person.put(access, { access: 'on' });
    await real.settled();

    await real.kill('server');
    await real.recover();
    await real.settled();

    for (let cut = 0; cut < CUTS; cut += 1) {
      const { epoch } = await real.status();
      real.proxy.cut();
      await until('a new session', STEP_MS, async () => (await real.status()).epoch > epoch);
    }
    await real.settled();

    const waits = [await waitsWhileAway(real), await waitsWhileAway(real)];
    for (const each of waits) {
      assert.ok(each.length >= 4, `${each.length} attempts`);
      // An attempt costs time too; what must grow is the wait, from a quarter of a second to several.
      assert.ok((each.at(-1) ?? 0) > 3 * (each[0] ?? 0), `waits of ${each.join(', ')} ms grow`);
    }
    assert.notDeepEqual(waits[0]?.map(tens), waits[1]?.map(tens), 'two rows of waits are not the same');
    assert.equal(real.pidOf('daemon'), daemon, 'the daemon was never started again');
  });
});

/** Waits between attempts, in ms, while nobody answers; the machine is back when it resolves. */
async function waitsWhileAway(world: World): Promise<number[]> {
  const { refused } = world.proxy;
  const before = refused.length;
  world.proxy.refuse();
  const began = performance.now();
  await until('the attempts', STEP_MS, () => performance.now() - began > AWAY_MS);
  world.proxy.pass();
  await world.settled();
  const times = refused.slice(before);
  return times.slice(1).map((time, index) => Math.round(time - (times[index] ?? 0)));
}

function tens(ms: number): number {
  return Math.round(ms / 10);
}
