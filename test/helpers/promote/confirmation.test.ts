import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { defaultPolicy } from '../../../daemon/config.ts';
import { encode } from '../../../helpers/protocol/codec.ts';
import { sha256 } from '../../../helpers/protocol/signed.ts';
import { encodeStatement } from '../../../helpers/protocol/statements.ts';
import type { PromoteReply } from '../../../helpers/promote/protocol.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';

const codeOf = (reply: PromoteReply<'promote.apply'>): string => ('code' in reply ? reply.code : reply.outcome);
const rawKey = (key: KeyObject): Buffer => Buffer.from(key.export({ format: 'der', type: 'spki' }).subarray(-32));

describe('what the machine itself must confirm', function () {
  this.timeout(180_000);
  let installation: RealInstallation;
  let scene: PromotionScene;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  beforeEach(() => {
    scene = new PromotionScene();
  });
  afterEach(() => scene.remove());

  it('with promotion = machine nothing is applied without the confirmation of a person there', async () => {
    scene.promotion = 'machine';
    scene.pin();
    scene.draftOf({ file: { file: 'new' } });
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    assert.deepEqual(fs.readdirSync(scene.root), []);
    scene.confirm();
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });

  describe('of the pin and policy.json the stricter holds', () => {
    const machine = { ...defaultPolicy(), promotion: { confirm: 'machine', why: '' } } as const;

    it('machine in policy.json, by hand, is enough: the approval of the control plane alone changes nothing, whatever the pin and the daemon say', async () => {
      scene.draftOf({ file: { file: 'new' } });
      scene.policy(machine);
      assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
      assert.deepEqual(fs.readdirSync(scene.root), []);
      scene.confirm();
      assert.equal(codeOf(await scene.apply(installation)), 'promoted');
    });

    it('an edit counts that came after promote was started', async () => {
      scene.draftOf({ file: { file: 'new' } });
      const edit = (): void => {
        const edited = path.join(scene.configuration, 'policy.json.edited');
        fs.writeFileSync(edited, JSON.stringify(machine), { mode: 0o600 });
        scene.give(edited);
        fs.renameSync(edited, path.join(scene.configuration, 'policy.json'));
      };
      const reply = await scene.apply(installation, { approval: scene.approve() }, edit);
      assert.equal(codeOf(reply), 'PROMOTION_CONFIRMATION_REQUIRED');
    });

    it('page in policy.json widens nothing while the pin says machine', async () => {
      scene.promotion = 'machine';
      scene.pin();
      scene.draftOf({ file: { file: 'new' } });
      assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    });

    const unusable: readonly (readonly [string, (file: string) => void])[] = [
      ['is missing', (file) => fs.rmSync(file)],
      ['is no JSON', (file) => fs.writeFileSync(file, '{')],
      [
        'has a key that no policy has',
        (file) => fs.writeFileSync(file, JSON.stringify({ ...machine, confirm: 'page' })),
      ],
      ['can be written by others', (file) => fs.chmodSync(file, 0o666)],
      ['is a link', (file) => linkInstead(file)],
      [
        'denies promotions',
        () => scene.policy({ operations: { allow: [...allowed], deny: ['workspace.promote'], why: '' } }),
      ],
      ['does not allow promotions', () => scene.policy({ operations: { allow: ['file.read'], deny: [], why: '' } })],
    ];
    const allowed = defaultPolicy().operations.allow;
    for (const [sentence, damage] of unusable) {
      it(`a policy.json that ${sentence} permits no promotion`, async () => {
        scene.draftOf({ file: { file: 'new' } });
        damage(path.join(scene.configuration, 'policy.json'));
        assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_REJECTED');
        assert.deepEqual(fs.readdirSync(scene.root), []);
        fs.rmSync(path.join(scene.configuration, 'policy.json'), { force: true });
        scene.policy();
        assert.equal(codeOf(await scene.apply(installation)), 'promoted');
      });
    }

    function linkInstead(file: string): void {
      fs.renameSync(file, `${file}.real`);
      fs.symlinkSync('policy.json.real', file);
    }
  });

  it('S-148 a guarded entry needs it too, and by its own name', async () => {
    scene.folderAt('.git');
    scene.folderAt('.git/hooks');
    scene.draftOf({ file: { file: 'new' }, '.git/hooks/pre-commit': { file: '#!/bin/sh\n', mode: 0o755 } });
    const refused = await scene.apply(installation);
    assert.deepEqual(refused, {
      outcome: 'refused',
      code: 'PROMOTION_CONFIRMATION_REQUIRED',
      path: '.git/hooks/pre-commit',
    });
    scene.confirm({ guarded: [] });
    assert.deepEqual(await scene.apply(installation), refused);
    scene.confirm({ guarded: ['file'] });
    assert.deepEqual(await scene.apply(installation), refused);
    scene.confirm({ guarded: ['.git/hooks/pre-commit'] });
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });

  const HOUR_MS = 3_600_000;
  const altered: readonly (readonly [string, Record<string, unknown>])[] = [
    ['that is older than an hour', { at: Date.now() - HOUR_MS - 1000 }],
    ['of a time to come', { at: Date.now() + 2 * HOUR_MS }],
    ['without a time', { at: undefined }],
    ['of another run', { run: `run_${'9'.repeat(32)}` }],
    ['of another manifest', { manifestDigest: '9'.repeat(64) }],
    ['of another root', { rootIdentity: '9'.repeat(64) }],
  ];
  for (const [sentence, changes] of altered) {
    it(`a confirmation ${sentence} counts for nothing`, async () => {
      scene.promotion = 'machine';
      scene.pin();
      scene.draftOf({ file: { file: 'new' } });
      scene.confirm(changes);
      assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    });
  }

  it('a confirmation serves one promotion: the same changes again, and a copy of the file put back, need a new one', async () => {
    scene.promotion = 'machine';
    scene.pin();
    scene.put('file', 'old');
    scene.draftOf({ file: { file: 'new' } });
    scene.confirm();
    const file = path.join(scene.owner, 'confirmations', `${scene.manifest().digest}.json`);
    const copy = fs.readFileSync(file);
    const { at } = JSON.parse(copy.toString()) as { at: number };
    const { digest } = scene.manifest();
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
    scene.put('file', 'old');
    scene.draftOf({ file: { file: 'new' } });
    assert.equal(scene.manifest().digest, digest, 'they are the same changes');
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    fs.rmSync(file);
    fs.writeFileSync(file, copy, { mode: 0o600 });
    scene.give(file);
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    scene.confirm({ at: at - 1 });
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    assert.equal(fs.readFileSync(scene.at('file'), 'utf8'), 'old');
    scene.confirm({ at: at + 1 });
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });

  it('a confirmation is used up by an apply that found a conflict, and kept by an approval that was refused before', async () => {
    scene.promotion = 'machine';
    scene.pin();
    scene.put('file', 'old');
    scene.draftOf({ file: { file: 'new' } });
    scene.confirm();
    const stale = { approval: scene.approve({ expiresAt: Date.now() - 1 }) };
    assert.equal(codeOf(await scene.apply(installation, stale)), 'EXPIRED');
    scene.put('file', 'edited');
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFLICT');
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
  });

  it('a mark of the version before confirmations were used up still holds what it knows', async () => {
    scene.draftOf({ file: { file: 'new' } });
    const approval = scene.approve();
    const payload = encode({ version: 1, sequence: 1, used: [], successions: [] });
    const file = path.join(scene.own, 'mark');
    fs.writeFileSync(file, Buffer.concat([sha256(payload), payload]), { mode: 0o600 });
    scene.give(file);
    assert.equal(codeOf(await scene.apply(installation, { approval })), 'PROMOTION_REJECTED');
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });

  it('a confirmation that others could have written, or that is a link or no confirmation, leaves the promotion undone', async () => {
    scene.promotion = 'machine';
    scene.pin();
    scene.draftOf({ file: { file: 'new' } });
    scene.confirm();
    const file = path.join(scene.owner, 'confirmations', `${scene.manifest().digest}.json`);
    fs.chmodSync(file, 0o666);
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    fs.chmodSync(file, 0o600);
    fs.renameSync(file, `${file}.real`);
    fs.symlinkSync(path.basename(`${file}.real`), file);
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    fs.rmSync(file);
    fs.writeFileSync(file, '{}', { mode: 0o600 });
    scene.give(file);
    assert.equal(codeOf(await scene.apply(installation)), 'PROMOTION_CONFIRMATION_REQUIRED');
    assert.deepEqual(fs.readdirSync(scene.root), []);
    scene.confirm();
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });

  describe('a new command key', () => {
    const next = generateKeyPairSync('ed25519');
    const stranger = generateKeyPairSync('ed25519');

    /** A statement of the change, signed by whoever is given. */
    function rotation(current: KeyObject, following: KeyObject, newKey = rawKey(next.publicKey)) {
      const statement = {
        guard: 1,
        at: 1,
        oldPublicKey: rawKey(scene.key.publicKey),
        newPublicKey: newKey,
        rotation: 1,
      };
      const payload = encodeStatement('control.rotation', statement);
      return {
        current: scene.sign('control.rotation', payload, current),
        next: scene.sign('control.rotation', payload, following),
      };
    }

    it('is taken beside a statement that both keys signed, and the old one counts no longer', async () => {
      scene.draftOf({ file: { file: 'one' } });
      const pinRotation = rotation(scene.key.privateKey, next.privateKey);
      const approval = scene.approve({}, next.privateKey);
      assert.equal(codeOf(await scene.apply(installation, { approval })), 'PROMOTION_REJECTED');
      assert.equal(codeOf(await scene.apply(installation, { approval, pinRotation })), 'promoted');
      scene.draftOf({ file: { file: 'two' } });
      assert.equal(codeOf(await scene.apply(installation, { approval: scene.approve() })), 'PROMOTION_REJECTED');
      const second = scene.approve({}, next.privateKey);
      assert.equal(codeOf(await scene.apply(installation, { approval: second })), 'promoted');
    });

    it('is refused when one of the two did not sign, or signed another statement', async () => {
      scene.draftOf({ file: { file: 'one' } });
      const { privateKey: old } = scene.key;
      const good = rotation(old, next.privateKey);
      const bad = [
        rotation(next.privateKey, next.privateKey),
        rotation(old, old),
        rotation(stranger.privateKey, next.privateKey),
        rotation(old, next.privateKey, rawKey(stranger.publicKey)),
        { current: good.current, next: rotation(old, next.privateKey, rawKey(scene.key.publicKey)).next },
      ];
      for (const pinRotation of bad) {
        const approval = scene.approve({}, next.privateKey);
        assert.equal(codeOf(await scene.apply(installation, { approval, pinRotation })), 'PROMOTION_REJECTED');
      }
      assert.deepEqual(fs.readdirSync(scene.root), []);
    });
  });
});
