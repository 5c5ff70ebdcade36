import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { defaultPolicy, policyDigest } from '../../daemon/config.ts';
import { DaemonRecords, RecordsUnwritable } from '../../daemon/records.ts';
import { Standing } from '../../daemon/standing.ts';

const policy = defaultPolicy();
const digest = policyDigest(policy);
const revision = (rootIdentity: string) => ({
  descriptor: 'AAAA',
  policy,
  policyDigest: digest.toString('hex'),
  rootIdentity,
});

describe('what a machine knows of itself, where its records cannot be written', () => {
  let folder: string;
  let records: DaemonRecords;
  let standing: Standing;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'records-'));
    records = new DaemonRecords(folder);
    standing = new Standing(records);
  });
  afterEach(() => fs.rmSync(folder, { recursive: true }));

  // A folder where the new file is made: root and everybody else alike cannot replace it.
  const obstacle = () => path.join(folder, 'records.json.new');
  const block = () => fs.mkdirSync(obstacle());
  const unblock = () => fs.rmdirSync(obstacle());
  const confirmed = () => standing.confirmed?.revision;
  const afterRestart = () => new Standing(new DaemonRecords(folder));

  it('an unrecorded confirmation permits nothing, and counts once it is said again and written', () => {
    const { revision: first } = standing.state(revision('a'.repeat(64)));
    standing.rootIdentity = 'a'.repeat(64);
    block();
    assert.throws(() => standing.confirm(first, digest), RecordsUnwritable);
    assert.equal(confirmed(), undefined);
    unblock();
    assert.equal(afterRestart().confirmed, undefined);
    standing.confirm(first, digest);
    assert.equal(confirmed(), first);
    assert.equal(afterRestart().confirmed?.revision, first);
  });

  it('an unrecorded revision is not stated, and its number is given to the next one', () => {
    const { revision: first } = standing.state(revision('a'.repeat(64)));
    block();
    assert.throws(() => standing.state(revision('b'.repeat(64))), RecordsUnwritable);
    assert.deepEqual([standing.stated?.revision, standing.stated?.rootIdentity], [first, 'a'.repeat(64)]);
    unblock();
    assert.equal(standing.state(revision('c'.repeat(64))).revision, first + 1);
    assert.equal(afterRestart().stated?.rootIdentity, 'c'.repeat(64));
  });

  it('a repair that cannot be recorded is none', () => {
    block();
    assert.throws(() => standing.keepRepair(), RecordsUnwritable);
    assert.equal(standing.repaired, false);
    assert.equal(afterRestart().repaired, false);
  });

  it('a repair is used up before its proof leaves: where that cannot be recorded, none leaves', () => {
    standing.keepRepair();
    assert.equal(afterRestart().repaired, true);
    block();
    assert.throws(() => standing.useRepair(), RecordsUnwritable);
    assert.equal(standing.repaired, true);
    unblock();
    standing.useRepair();
    assert.equal(standing.repaired, false);
    assert.equal(afterRestart().repaired, false);
  });

  it('the sentence names the remedy and no path', () => {
    block();
    assert.throws(
      () => records.change({ repaired: true }),
      (error: unknown) => {
        assert.ok(error instanceof RecordsUnwritable);
        assert.match(error.message, /make room/);
        assert.ok(!error.message.includes(folder));
        return true;
      },
    );
  });
});
