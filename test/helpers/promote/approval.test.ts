import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

import { defaultPolicy } from '../../../daemon/config.ts';
import { checkManifest, commandKey, neededConfirmation, openApproval } from '../../../helpers/promote/approval.ts';
import type { Mark } from '../../../helpers/promote/mark.ts';
import { CONFIRMATION_MS, ownerConfirmationSchema, ownerPinSchema } from '../../../helpers/promote/protocol.ts';
import type { OwnerPin } from '../../../helpers/promote/protocol.ts';
import { Stopped } from '../../../helpers/promote/stop.ts';
import { runIdSchema } from '../../../helpers/protocol/ids.ts';
import { encodeStatement, readUnverified } from '../../../helpers/protocol/statements.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';

const rawKey = (key: KeyObject): Buffer => key.export({ format: 'der', type: 'spki' }).subarray(-32);
const other = (digits: number): string => '9'.repeat(digits);
const NOTHING_SEEN: Mark = { sequence: 0, used: [], spent: [], successions: [] };

describe('what a promotion needs before it begins, each alone', () => {
  let scene: PromotionScene;
  let pin: OwnerPin;

  before(() => {
    scene = new PromotionScene({ asCaller: true });
    scene.draftOf({ file: { file: 'new' } });
    pin = ownerPinSchema.parse({
      version: 1,
      executor: `exr_${'1'.repeat(32)}`,
      commandKey: rawKey(scene.key.publicKey).toString('hex'),
      rootIdentity: scene.identity().toString('hex'),
      promotion: 'machine',
    });
  });
  after(() => scene.remove());

  function refuses(code: string, work: () => unknown): void {
    assert.throws(work, (error) => error instanceof Stopped && error.code === code);
  }

  it('an approval is for this executor, this root as pinned and as found, this time, and is new', () => {
    const now = Date.now();
    const signed = scene.approve({ sequence: 7, notBefore: now, expiresAt: now + 100_000 });
    const { promotion } = readUnverified('control.approval', signed);
    const rootIdentity = pin.rootIdentity;
    const good = { pin, mark: NOTHING_SEEN, rootIdentity, now };
    const { key } = commandKey(pin, NOTHING_SEEN, undefined);
    assert.equal(openApproval(key, signed, good).statement.promotion, promotion);
    const elsewhere = scene.approve({ rootIdentity: Buffer.alloc(32, 9) });
    refuses('PROMOTION_UNSAFE_ROOT', () => openApproval(key, elsewhere, good));
    for (const [code, changes] of [
      ['PROMOTION_REJECTED', { pin: { ...pin, executor: `exr_${other(32)}` } }],
      ['PROMOTION_REJECTED', { now: now - 61_000 }],
      ['EXPIRED', { now: now + 100_000 }],
      ['PROMOTION_REJECTED', { mark: { ...NOTHING_SEEN, sequence: 7 } }],
      ['PROMOTION_REJECTED', { mark: { ...NOTHING_SEEN, used: [promotion] } }],
      ['PROMOTION_UNSAFE_ROOT', { pin: { ...pin, rootIdentity: other(64) } }],
    ] as const)
      refuses(code, () => openApproval(key, signed, { ...good, ...changes }));
  });

  it('the draft has the digest, the run and the root that were approved', () => {
    const { manifest, digest } = scene.manifest();
    const approval = readUnverified('control.approval', scene.approve());
    checkManifest(approval, manifest, digest);
    refuses('PROMOTION_REVIEW_STALE', () => checkManifest(approval, manifest, other(64)));
    const run = runIdSchema.parse(`run_${other(32)}`);
    refuses('PROMOTION_REJECTED', () => checkManifest({ ...approval, run }, manifest, digest));
    const elsewhere = { ...approval, rootIdentity: Buffer.alloc(32, 9) };
    refuses('PROMOTION_UNSAFE_ROOT', () => checkManifest(elsewhere, manifest, digest));
  });

  it('a confirmation is of these changes in this root, fresh, used once, and names every guarded path', () => {
    scene.draftOf({ '.git': { folder: 0o755 } });
    const { manifest, digest } = scene.manifest();
    const now = Date.now();
    const good = ownerConfirmationSchema.parse({
      version: 1,
      run: manifest.run,
      manifestDigest: digest,
      rootIdentity: manifest.rootIdentity,
      guarded: ['.git'],
      at: now,
    });
    const needed = (changes: Partial<typeof good>, spent: Mark['spent'] = []): unknown => {
      const circumstances = { pin, policy: defaultPolicy(), mark: { ...NOTHING_SEEN, spent }, now };
      return neededConfirmation(circumstances, { manifest, digest }, { ...good, ...changes });
    };
    assert.deepEqual(needed({}), { manifestDigest: digest, at: now });
    const bad: readonly Partial<typeof good>[] = [
      { run: runIdSchema.parse(`run_${other(32)}`) },
      { manifestDigest: other(64) },
      { rootIdentity: other(64) },
      { guarded: [] },
      { at: now - CONFIRMATION_MS - 1 },
    ];
    for (const changes of bad) refuses('PROMOTION_CONFIRMATION_REQUIRED', () => needed(changes));
    refuses('PROMOTION_CONFIRMATION_REQUIRED', () => needed({}, [{ manifestDigest: digest, at: now }]));
  });

  it('a new command key is named by one statement, of the key that holds now, signed by both', () => {
    const next = generateKeyPairSync('ed25519');
    const signedBy = (key: KeyObject, changes: { oldPublicKey?: Buffer; newPublicKey?: Buffer } = {}) => {
      const keys = { oldPublicKey: rawKey(scene.key.publicKey), newPublicKey: rawKey(next.publicKey), ...changes };
      return scene.sign(
        'control.rotation',
        encodeStatement('control.rotation', { guard: 1, at: 1, rotation: 1, ...keys }),
        key,
      );
    };
    const { privateKey } = scene.key;
    const good = { current: signedBy(privateKey), next: signedBy(next.privateKey) };
    assert.deepEqual(Buffer.from(commandKey(pin, NOTHING_SEEN, good).key.bytes), rawKey(next.publicKey));
    const foreign = { oldPublicKey: rawKey(next.publicKey) };
    const ofAnother = { current: signedBy(privateKey, foreign), next: signedBy(next.privateKey, foreign) };
    refuses('PROMOTION_REJECTED', () => commandKey(pin, NOTHING_SEEN, ofAnother));
    const another = { newPublicKey: rawKey(scene.key.publicKey) };
    const ofTwo = { ...good, next: signedBy(next.privateKey, another) };
    refuses('PROMOTION_REJECTED', () => commandKey(pin, NOTHING_SEEN, ofTwo));
  });
});
