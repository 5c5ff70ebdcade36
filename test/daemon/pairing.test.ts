import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { askDaemon } from '../../daemon/cli/owner-client.ts';
import { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import { RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';

describe('a pairing under a control plane that lies', function () {
  this.timeout(60_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;

  beforeEach(async () => {
    plane = new FakeControlPlane();
    executor = new RealExecutor(await plane.listen());
    await executor.start();
  });
  afterEach(async () => {
    await executor.remove();
    await plane.close();
  });

  it('is not paired by an answer that says so before anybody at the machine confirmed', async () => {
    plane.pairing.claimsAtOnce = true;
    await askDaemon(executor.places.stateDir, 'daemon.pair', { flow: 'code', machineName: 'machine' });
    await executor.pairing('offered');
    await until('it was said three times', () => plane.pairing.polls >= 3 || undefined);
    assert.equal((await executor.pairing('offered')).state, 'offered');
    const records = fs.readFileSync(path.join(executor.places.stateDir, 'daemon', 'records.json'), 'utf8');
    assert.equal((JSON.parse(records) as { paired: unknown }).paired, null);
    plane.pairing.claimsAtOnce = false;
    await executor.pairing('claimed');
  });

  it('is not paired by an answer that says so while its person’s confirmation is on no disk', async () => {
    await askDaemon(executor.places.stateDir, 'daemon.pair', { flow: 'code', machineName: 'machine' });
    const { claimDigest } = await executor.pairing('claimed');
    const obstacle = path.join(executor.places.stateDir, 'daemon', 'records.json.new');
    fs.mkdirSync(obstacle);
    await askDaemon(executor.places.stateDir, 'daemon.pair-answer', { answer: 'confirm', claimDigest });
    const polled = (more: number, since = plane.pairing.polls) =>
      until('it was asked again', () => plane.pairing.polls >= since + more || undefined);
    await polled(2);
    plane.pairing.claimsAtOnce = true;
    await polled(2);
    assert.equal((await executor.pairing('claimed')).state, 'claimed');
    plane.pairing.claimsAtOnce = false;
    fs.rmdirSync(obstacle);
    await executor.pairing('paired');
  });
});
