import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

import type { PromoteReply } from '../../../helpers/promote/protocol.ts';
import { accessList, attributesOf, CAPABILITY, setAttribute } from '../../fakes/attributes.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { skipBecause } from '../../skip.ts';

const SECOND_NS = 1_000_000_000n;
const codeOf = (reply: PromoteReply<'promote.apply'>): string =>
  reply.outcome === 'promoted' ? 'promoted' : `${reply.outcome} ${reply.code}`;

describe('what a file has beside its content', function () {
  this.timeout(180_000);
  let installation: RealInstallation;
  let scene: PromotionScene;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  beforeEach(() => {
    scene = new PromotionScene();
    scene.put('file', 'old', 0o640);
    scene.put('tool', 'same', 0o640);
  });
  afterEach(() => scene.remove());

  /** A draft that changes the content of one file and the mode of the other. */
  function draft(lost: readonly string[] = []): void {
    for (const name of ['file', 'tool']) {
      if (lost.length > 0) scene.losses.set(name, lost);
    }
    scene.draftOf({ file: { file: 'new', mode: 0o640 }, tool: { mode: 0o750 } });
  }

  /** What is on a file that only root can put there. */
  const burdens: Readonly<Record<string, (file: Buffer) => void>> = {
    'attribute security.capability': (file) => setAttribute(file, 'security.capability', CAPABILITY),
    group: (file) => fs.chownSync(file, scene.uid ?? -1, 12_345),
    'flag no dump': (file) => void spawnSync('chattr', ['+d', String(file)]),
  };

  it('S-172 user attributes, access list, owner, mode and group are those of the file that was replaced, capabilities of a program never, and what is lost was listed', async () => {
    for (const name of ['file', 'tool']) {
      setAttribute(scene.at(name), 'user.note', 'mine');
      setAttribute(scene.at(name), 'system.posix_acl_access', accessList(12_345));
    }
    const had = attributesOf(scene.at('file'));
    assert.equal(Object.keys(had).length, 2);
    const { uid, gid } = fs.statSync(scene.at('file'));
    const isCapable = scene.uid !== undefined;
    if (isCapable) setAttribute(scene.at('file'), 'security.capability', CAPABILITY);
    draft();
    if (isCapable) assert.equal(codeOf(await scene.apply(installation)), 'refused PROMOTION_CONFLICT');
    draft(isCapable ? ['attribute security.capability'] : []);
    const { changes } = scene.manifest().manifest;
    assert.equal(JSON.stringify(changes[0]).includes('security.capability'), isCapable);
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
    for (const name of ['file', 'tool']) {
      assert.deepEqual(Object.keys(attributesOf(scene.at(name))), Object.keys(had));
      const now = fs.statSync(scene.at(name));
      assert.deepEqual([now.uid, now.gid], [uid, gid]);
    }
    assert.deepEqual(attributesOf(scene.at('file')), had);
    assert.equal(fs.statSync(scene.at('file')).mode & 0o7777, 0o640);
    assert.equal(fs.statSync(scene.at('tool')).mode & 0o7777, 0o750);
  });

  it('the time of a file whose mode alone changes stays', async () => {
    for (const name of ['file', 'tool']) fs.utimesSync(scene.at(name), 1, 2);
    draft();
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
    const timeOf = (name: string): bigint => fs.statSync(scene.at(name), { bigint: true }).mtimeNs;
    assert.equal(timeOf('tool'), 2n * SECOND_NS);
    assert.notEqual(timeOf('file'), 2n * SECOND_NS);
  });

  for (const [burden, put] of Object.entries(burdens)) {
    it(`${burden}: lost where the approval lists it, and otherwise nothing is changed`, async function () {
      if (scene.uid === undefined) skipBecause(this, `root alone puts it there: ${burden}`);
      for (const name of ['file', 'tool']) put(scene.at(name));
      draft();
      const before = scene.listing();
      assert.equal(codeOf(await scene.apply(installation)), 'refused PROMOTION_CONFLICT');
      assert.deepEqual(scene.listing(), before);
      draft(['another thing']);
      assert.equal(codeOf(await scene.apply(installation)), 'refused PROMOTION_CONFLICT');
      draft([burden]);
      assert.equal(codeOf(await scene.apply(installation)), 'promoted');
      for (const name of ['file', 'tool']) {
        assert.deepEqual(attributesOf(scene.at(name)), {});
        assert.equal(fs.statSync(scene.at(name)).gid, scene.uid);
      }
    });
  }

  it('a loss that was approved brings no other one with it', async function () {
    if (scene.uid === undefined) skipBecause(this, 'root alone gives a program capabilities');
    // In this order: a change of owner takes capabilities away.
    fs.chownSync(scene.at('file'), scene.uid, 12_345);
    setAttribute(scene.at('file'), 'security.capability', CAPABILITY);
    draft(['group']);
    assert.equal(codeOf(await scene.apply(installation)), 'refused PROMOTION_CONFLICT');
    draft(['attribute security.capability', 'group']);
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });
});
