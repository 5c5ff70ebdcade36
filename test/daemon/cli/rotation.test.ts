import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { askDaemon } from '../../../daemon/cli/owner-client.ts';
import { until } from '../../../daemon/demo/children.ts';
import { attach, hasStrace } from '../../fakes/killer.ts';
import { skipBecause } from '../../skip.ts';
import { PATIENCE_MS, World } from './world.ts';

describe('a rotation that is cut', function () {
  this.timeout(300_000);
  let world: World;

  before(async () => {
    world = await World.begin('rotation');
    await world.pairMachine();
  });
  after(() => world.end());

  const online = (): Promise<string> =>
    until('the machine is online', PATIENCE_MS, async () => {
      const { state, fingerprint } = await askDaemon(world.places.stateDir, 'daemon.status', {});
      return state === 'online' && fingerprint !== null ? fingerprint : undefined;
    });
  const rotate = (): Promise<string> =>
    askDaemon(world.places.stateDir, 'daemon.rotate-key', {}).then(({ fingerprint }) => fingerprint);

  async function cutByKeyStore(step: string): Promise<'cut' | 'done'> {
    const [call, number] = step.split(':');
    const tracer = await attach(world.pidOf('key-store'), [`${call}:signal=SIGKILL:when=${number}`], ['rename']);
    const outcome = await rotate().then(
      () => 'done' as const,
      () => 'cut' as const,
    );
    await tracer.detach();
    await world.cutMachine();
    return outcome;
  }
  async function cutEverything(afterMs: number): Promise<void> {
    const cut = rotate().catch(() => 'cut');
    await wait(afterMs);
    await world.killMachine();
    await cut;
    await world.startMachine();
  }
  async function cutControlPlane(afterMs: number): Promise<void> {
    const cut = rotate().catch(() => 'cut');
    await wait(afterMs);
    await world.cutControlPlane();
    await cut;
  }
  async function goesOn(before: string, what: string): Promise<void> {
    const now = await online();
    const next = await until('the key is rotated', PATIENCE_MS, () => rotate().catch(() => undefined));
    assert.ok(next !== before && next !== now, what);
    assert.deepEqual(fs.readdirSync(path.join(world.places.stateDir, 'key-store')).toSorted(), ['guards', 'key'], what);
  }

  it('is settled by the next session that can record it, where the new fingerprint could not be written', async () => {
    const before = await online();
    const status = () => askDaemon(world.places.stateDir, 'daemon.status', {});
    const { publicKey: old } = await status();
    const obstacle = path.join(world.places.stateDir, 'daemon', 'records.json.new');
    fs.mkdirSync(obstacle);
    const rotated = rotate();
    await until('the key is the next one', PATIENCE_MS, async () => ![old, null].includes((await status()).publicKey));
    assert.equal((await status()).fingerprint, before, 'what no disk holds is not said');
    fs.rmdirSync(obstacle);
    const after = await rotated;
    assert.notEqual(after, before);
    assert.equal(await online(), after);
  });

  it('N-548 a kill of key-store at each of its calls, of the whole machine, or of the control plane leaves one usable key: the machine comes back by itself and rotates again', async function () {
    if (!hasStrace()) return skipBecause(this, 'the strace program');
    let cuts = 0;
    const steps = ['fsync:1', 'rename:1', 'fsync:2', 'rename:2', 'fsync:3', 'fsync:4'];
    for (const step of steps) {
      const before = await online();
      if ((await cutByKeyStore(step)) === 'cut') cuts += 1;
      await goesOn(before, `key-store at ${step}`);
    }
    // strace counts calls for each thread: a call of the pool on another thread may not be the n-th there.
    assert.ok(cuts >= 3, `${cuts} of ${steps.length} were cut`);
    for (const afterMs of [0, 4, 12]) {
      const before = await online();
      await cutEverything(afterMs);
      await goesOn(before, `everything after ${afterMs} ms`);
    }
    for (const afterMs of [0, 6, 18]) {
      const before = await online();
      await cutControlPlane(afterMs);
      await goesOn(before, `control plane after ${afterMs} ms`);
    }
  });
});
