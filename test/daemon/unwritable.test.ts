import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { askDaemon } from '../../daemon/cli/owner-client.ts';
import { CliFailure } from '../../daemon/cli/failure.ts';
import { writePolicy } from '../../daemon/cli/set-up.ts';
import { defaultPolicy } from '../../daemon/config.ts';
import { pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';

describe('a real executor whose records cannot be written', function () {
  this.timeout(60_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let end: () => Promise<void>;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
  });
  after(() => end());

  const obstacle = () => path.join(executor.places.stateDir, 'daemon', 'records.json.new');
  const block = () => fs.mkdirSync(obstacle());
  const unblock = () => fs.rmdirSync(obstacle());
  const revision = async () => (await executor.status()).revision;
  const noted = () => executor.log.match(/"RECORDS_UNWRITABLE"/g)?.length ?? 0;
  const untilNoted = async (what: string) => {
    const before = noted();
    plane.wake();
    await until(what, () => noted() > before || undefined);
  };
  const list = async () => (await plane.call({ operation: 'file.list' })).ending;

  it('states no revision and takes no confirmation that it cannot record, says so, and does both once it can', async () => {
    const before = await revision();
    const policy = defaultPolicy();
    block();
    writePolicy(executor.places, { ...policy, operations: { ...policy.operations, deny: ['file.search'] } });
    await until('the change is told', () => noted() > 0 || undefined);
    await untilNoted('it is tried again when the control plane is heard');
    assert.deepEqual(await revision(), before);
    assert.equal(plane.descriptor?.revision, before.stated, 'nothing was submitted');
    assert.equal(await list(), 'succeeded');

    unblock();
    plane.wake();
    await until('the revision arrives', () => (plane.descriptor?.revision ?? 0) > before.stated || undefined);
    block();
    plane.confirmDescriptor();
    await untilNoted('the confirmation is told');
    assert.equal((await revision()).confirmed, before.confirmed);
    assert.equal(await list(), 'DESCRIPTOR_STALE', 'nothing runs under a confirmation that is on no disk');

    unblock();
    plane.wake();
    await until('it is recorded', async () => (await revision()).confirmed > before.confirmed || undefined);
    assert.equal(await list(), 'succeeded');
  });

  it('takes no repair that it cannot record, and tells of a recorded one in one proof alone', async () => {
    plane.lie = (type, fields) => (type === 'control.session' ? { ...fields, verdict: 'ledger-forked' } : fields);
    plane.cut();
    await executor.is('error');
    plane.beHonest();
    const repair = () => askDaemon(executor.places.stateDir, 'daemon.repair', { journal: 'leave' });
    block();
    await assert.rejects(
      repair(),
      (error: unknown) => error instanceof CliFailure && /RECORDS_UNWRITABLE/.test(error.message),
    );
    assert.equal((await executor.status()).state, 'error');
    unblock();

    plane.answering = false;
    await repair();
    block();
    const proofs = plane.proofs.length;
    plane.answering = true;
    plane.cut();
    await until(
      'it says why it does not connect',
      () => /NOT_CONNECTED.*records in the state folder/.test(executor.log) || undefined,
    );
    assert.equal(plane.proofs.length, proofs, 'no proof left');
    unblock();
    await executor.is('online');
    plane.cut();
    await until('a second session', () => plane.proofs.length >= proofs + 2 || undefined);
    assert.deepEqual(
      plane.proofs.slice(proofs, proofs + 2).map(({ repaired }) => repaired),
      [true, false],
    );
  });
});
