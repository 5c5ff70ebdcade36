/*
 * What is left on which side when a machine forgets, when a person deletes its folder by hand, and when it is ended from the page.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { isDaemonUp } from '../../../daemon/cli/owner-client.ts';
import { writeSetUp } from '../../../daemon/cli/set-up.ts';
import { until } from '../../../daemon/demo/children.ts';
import { pair } from '../../../daemon/demo/settle.ts';
import { skipBecause } from '../../skip.ts';
import { PATIENCE_MS, World } from './world.ts';

interface Listed {
  readonly executor: string;
  readonly state: string;
  readonly label: string;
  readonly fingerprint: string;
}

describe('what is left of a pairing', function () {
  this.timeout(180_000);
  let world: World;
  let executor: string;

  before(async () => {
    world = await World.begin('forgetting');
    fs.mkdirSync(path.join(world.folder, 'root'));
  });
  after(() => world.end());
  beforeEach(async () => {
    const root = path.join(world.folder, 'root');
    writeSetUp({ places: world.places, origin: world.origin, root });
    await world.startMachine();
    ({ executor } = await pair(world.person, world.places, 'machine'));
    await until('online', PATIENCE_MS, async () => (await recorded())?.state === 'online');
  });

  const recorded = async (): Promise<Listed | undefined> => {
    const { executors } = await world.person.get<{ executors: Listed[] }>('/api/page/executors');
    return executors.find((one) => one.executor === executor);
  };
  const history = async (): Promise<number> => {
    const { entries } = await world.person.get<{ entries: { executor: string | null }[] }>('/api/page/audit');
    return entries.filter((entry) => entry.executor === executor).length;
  };
  const is = (state: string): Promise<unknown> =>
    until(`the record to be ${state}`, PATIENCE_MS, async () => (await recorded())?.state === state);
  const gone = (): void => assert.ok(!fs.existsSync(world.places.stateDir));

  it('N-231 forgetting leaves executor and history on the control plane, offline, for an owner to keep or revoke', async function () {
    if (!['/usr/bin', '/bin'].some((bin) => fs.existsSync(path.join(bin, 'script'))))
      return skipBecause(this, 'the script program');
    const before = await recorded();
    const told = await history();
    assert.ok(told > 0);
    await world.stopMachine();
    const here = ['--in', path.join(world.folder, 'executor'), 'forget'];
    const ran = await world.cli.atTerminal(here, [{ when: /Type default/, type: 'default' }]);
    assert.equal(ran.code, 0, ran.out);
    gone();
    await is('offline');
    const after = await recorded();
    assert.deepEqual([after?.label, after?.fingerprint], [before?.label, before?.fingerprint]);
    assert.ok((await history()) >= told, 'nothing of the history is lost');
    await world.person.post(`/api/page/executors/${executor}/disconnect`);
    await is('revoked');
    assert.ok((await history()) > told);
  });

  it('N-229 forgetting by hand is a folder that is deleted, and ending from the other side a disconnect, each alone and both', async () => {
    await world.stopMachine();
    fs.rmSync(path.join(world.folder, 'executor'), { recursive: true });
    await is('offline');
    const { code, out, error } = await world.cli.run(['--in', path.join(world.folder, 'executor'), 'status']);
    assert.ok(!out.includes(executor), `nothing here knows it: ${code} ${out}${error}`);
    await world.person.post(`/api/page/executors/${executor}/disconnect`);
    await is('revoked');

    const first = executor;
    writeSetUp({ places: world.places, origin: world.origin, root: path.join(world.folder, 'root') });
    await world.startMachine();
    ({ executor } = await pair(world.person, world.places, 'machine'));
    assert.notEqual(executor, first, 'the machine comes back as a new one');
    await is('online');
    await world.person.post(`/api/page/executors/${executor}/disconnect`);
    await until('the machine to end', PATIENCE_MS, async () => !(await isDaemonUp(world.places.stateDir)));
    assert.ok(
      fs.existsSync(path.join(world.places.stateDir, 'key-store')),
      'its own state is there until a person deletes it',
    );
    await world.stopMachine();
    fs.rmSync(path.join(world.folder, 'executor'), { recursive: true });
    assert.equal((await recorded())?.state, 'revoked');
  });
});
