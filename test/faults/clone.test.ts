import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { askDaemon, isDaemonUp } from '../../daemon/cli/owner-client.ts';
import { placesIn } from '../../daemon/cli/places.ts';
import { startExecutor, stopChild, until } from '../../daemon/demo/children.ts';
import type { DaemonStatus } from '../../daemon/protocol.ts';
import { World } from './world.ts';

const STEP_MS = 60_000;

describe('two daemons of one key', function () {
  this.timeout(180_000);
  let world: World | undefined;

  before(async () => {
    world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, 'a.txt'), 'hello\n') });
  });
  after(() => world?.end());

  it('S-208 N-504 are found out at the first crossed counter: both stop and say so, and a repair of the right one leads back, once', async () => {
    assert.ok(world);
    const real = world;
    await real.stopExecutor();
    const clone = placesIn(path.join(real.folder, 'clone'));
    // With owners and times, as a disk image has them.
    execFileSync('cp', ['-a', path.join(real.folder, 'executor'), path.join(real.folder, 'clone')]);
    const configuration = path.join(clone.stateDir, 'supervisor.json');
    const chosen = JSON.parse(fs.readFileSync(configuration, 'utf8')) as Record<string, unknown>;
    fs.writeFileSync(
      configuration,
      JSON.stringify({ ...chosen, stateDir: clone.stateDir, configDir: clone.configDir }),
    );
    await real.startExecutor();
    await real.settled();
    await real.agent.call('file_read', { path: 'a.txt' });

    const start = () => startExecutor(real.dist, clone.stateDir, path.join(real.folder, 'clone'));
    const cloneStatus = (): Promise<DaemonStatus> => askDaemon(clone.stateDir, 'daemon.status', {});
    const bothStop = async () => {
      await until('the clone to answer its owner', STEP_MS, () => isDaemonUp(clone.stateDir));
      await until('the clone to stop', STEP_MS, async () => (await cloneStatus()).state === 'error');
      assert.equal((await cloneStatus()).fault, 'STATE_COPIED');
      await until('the control plane to tell a person', STEP_MS, async () => {
        const { executors } = await real.person.get<{ executors: { executor: string; state: string }[] }>(
          '/api/page/executors',
        );
        return executors.some(({ executor, state }) => executor === real.executorId && state === 'error');
      });
      await until('the original to stop too', STEP_MS, async () => (await real.status()).state === 'error');
      assert.equal((await real.status()).fault, 'EXECUTOR_IN_ERROR');
      const refused = await real.agent.call('file_read', { path: 'a.txt' });
      assert.ok(refused.failed, 'nothing is given to a machine of which there are two');
    };
    let child = start();
    try {
      await bothStop();
      const remedy = /EXECUTOR_IN_ERROR.*Stop every other daemon.*repair` on the machine that is the right one/s;
      assert.match(says(real, 'status'), remedy);
      assert.match(says(real, 'doctor'), remedy);
      await stopChild(child);
      await real.stopExecutor();
      await real.startExecutor();
      await until(
        'a restart to be no repair',
        STEP_MS,
        async () => (await real.status()).fault === 'EXECUTOR_IN_ERROR',
      );

      await askDaemon(real.places.stateDir, 'daemon.repair', { journal: 'leave' });
      await real.settled();

      child = start();
      await bothStop();
    } finally {
      await stopChild(child);
    }
  });
});

/** What a command of the owner prints, whatever it ends with. */
function says({ dist, folder }: World, command: string): string {
  const line = [path.join(dist, 'cli.mjs'), '--in', path.join(folder, 'executor'), command];
  return spawnSync(process.execPath, line, {
    encoding: 'utf8',
    env: { ...process.env, NESSIE_ALLOW_LOOPBACK_HTTP: '1' },
  }).stdout;
}
