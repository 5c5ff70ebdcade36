import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { writeConfirmation } from '../../daemon/cli/confirmations.ts';
import { isConfirmedHere } from '../../daemon/confirmations.ts';
import { defaultPolicy } from '../../daemon/config.ts';
import { decode } from '../../helpers/protocol/codec.ts';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import { pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { idOf, newRun, Promotions } from '../fixtures/promotions.ts';
import { until } from '../fixtures/until.ts';

describe('a machine whose owner wrote into policy.json, by hand, that a person there confirms', function () {
  this.timeout(120_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let promotions: Promotions;
  let end: () => Promise<void>;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
    promotions = new Promotions(plane, executor);
    const { stated } = (await executor.status()).revision;
    const policy = { ...defaultPolicy(), promotion: { confirm: 'machine' } };
    fs.writeFileSync(path.join(executor.places.configDir, 'policy.json'), JSON.stringify(policy));
    await until('the daemon saw it', async () => (await executor.status()).revision.stated > stated || undefined);
  });
  after(() => end());

  it('refuses a promotion that the control plane alone approved before it starts, and takes it once a person confirmed it', async () => {
    const run = newRun();
    await promotions.draft(run, 'drafted.txt', 'draft');
    const alone = await promotions.approved(run);
    plane.deliver(alone);
    const refused = await promotions.told(idOf(alone));
    assert.equal(refused.ending, 'PROMOTION_CONFIRMATION_REQUIRED');
    assert.deepEqual(
      refused.frame.receipts.map(({ type }) => type),
      ['machine.refused'],
    );
    assert.deepEqual(fs.readdirSync(executor.root), []);

    const frame = await promotions.approved(run);
    // The arguments that operations.ts gives for workspace.promote.
    const { manifestDigest } = decode(frame.arguments) as { manifestDigest: string };
    const pin = JSON.parse(fs.readFileSync(path.join(executor.places.ownerDir, 'pin.json'), 'utf8')) as {
      rootIdentity: string;
    };
    const { rootIdentity } = pin;
    writeConfirmation(executor.places, { version: 1, run, manifestDigest, rootIdentity, guarded: [], at: Date.now() });
    plane.deliver(frame);
    assert.equal((await promotions.told(idOf(frame))).ending, 'succeeded');
    assert.equal(fs.readFileSync(path.join(executor.root, 'drafted.txt'), 'utf8'), 'draft');
  });

  it('a confirmation of another run, other changes, another root or an hour ago is none, nor is a file that is a link or no JSON', () => {
    const run = newRun();
    const [manifestDigest, rootIdentity] = ['a'.repeat(64), 'b'.repeat(64)];
    const at = Date.now();
    writeConfirmation(executor.places, { version: 1, run, manifestDigest, rootIdentity, guarded: [], at });
    const asked = { run, manifestDigest, rootIdentity, now: at };
    const { configDir, ownerDir } = executor.places;
    assert.equal(isConfirmedHere(configDir, asked), true);
    for (const changed of [
      { run: newRun() },
      { manifestDigest: 'c'.repeat(64) },
      { rootIdentity: 'c'.repeat(64) },
      { rootIdentity: undefined },
      { now: at + 3_600_001 },
    ]) {
      assert.equal(isConfirmedHere(configDir, { ...asked, ...changed }), false, Object.keys(changed)[0]);
    }
    const file = path.join(ownerDir, 'confirmations', `${manifestDigest}.json`);
    fs.renameSync(file, `${file}.real`);
    fs.symlinkSync(`${file}.real`, file);
    assert.equal(isConfirmedHere(configDir, asked), false);
    fs.rmSync(file);
    fs.writeFileSync(file, '{');
    assert.equal(isConfirmedHere(configDir, asked), false);
  });
});
