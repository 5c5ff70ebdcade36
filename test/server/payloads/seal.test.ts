import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeyRing, KeyRingRefused } from '../../../server/payloads/key-ring.ts';
import { PAYLOAD_LIMIT_BYTES } from '../../../server/payloads/rules.ts';
import { PayloadUnreadable, seal, unseal } from '../../../server/payloads/seal.ts';

describe('sealed payloads', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nessie-payloads-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('opens for its own command and direction and for no other', async () => {
    const ring = await KeyRing.open(folder, 0);
    const sealed = seal(ring, 'cmd_a', 'result', Buffer.from('planted-content'));
    assert.equal(unseal(ring, 'cmd_a', 'result', sealed).toString(), 'planted-content');
    assert.ok(!sealed.sealed.includes('planted'));
    assert.throws(() => unseal(ring, 'cmd_b', 'result', sealed), PayloadUnreadable);
    assert.throws(() => unseal(ring, 'cmd_a', 'arguments', sealed), PayloadUnreadable);
  });

  it('does not open after any one bit of it was flipped', async () => {
    const ring = await KeyRing.open(folder, 0);
    const sealed = seal(ring, 'cmd_a', 'result', Buffer.from('x'));
    for (let at = 0; at < sealed.sealed.length * 8; at += 1) {
      const altered = Buffer.from(sealed.sealed);
      altered.writeUInt8(altered.readUInt8(at >> 3) ^ (1 << (at & 7)), at >> 3);
      assert.throws(() => unseal(ring, 'cmd_a', 'result', { ...sealed, sealed: altered }), PayloadUnreadable);
    }
    assert.throws(() => unseal(ring, 'cmd_a', 'result', { ...sealed, sealed: Buffer.alloc(3) }), PayloadUnreadable);
  });

  it('seals up to the limit and refuses one byte more', async () => {
    const ring = await KeyRing.open(folder, 0);
    const largest = randomBytes(PAYLOAD_LIMIT_BYTES);
    assert.deepEqual(unseal(ring, 'cmd_a', 'result', seal(ring, 'cmd_a', 'result', largest)), largest);
    assert.throws(() => seal(ring, 'cmd_a', 'result', Buffer.alloc(PAYLOAD_LIMIT_BYTES + 1)), RangeError);
  });

  it('keeps an older key for what it sealed and destroys it when nothing needs it', async () => {
    const ring = await KeyRing.open(folder, 0);
    const sealed = seal(ring, 'cmd_a', 'result', Buffer.from('x'));
    const next = await ring.rotate(1);
    assert.notEqual(next, sealed.keyId);
    const again = await KeyRing.open(folder, 2);
    assert.equal(again.current, next);
    assert.equal(unseal(again, 'cmd_a', 'result', sealed).toString(), 'x');
    assert.deepEqual(await again.prune(new Set([sealed.keyId])), []);
    assert.deepEqual(await again.prune(new Set()), [sealed.keyId]);
    assert.throws(() => unseal(again, 'cmd_a', 'result', sealed), PayloadUnreadable);
    assert.deepEqual((await KeyRing.open(folder, 3)).ids, [next]);
  });

  it('a key that another process made is used from the next look on, and is never written over', async () => {
    const running = await KeyRing.open(folder, 0);
    const other = await KeyRing.open(folder, 1);
    const next = await other.rotate(2);
    await running.refresh();
    assert.equal(running.current, next);
    const third = await other.rotate(3);
    await running.prune(new Set([next]));
    assert.deepEqual((await KeyRing.open(folder, 4)).ids.toSorted(), [next, third].toSorted());
  });

  it('refuses a ring that others can read, that is a link or that is damaged, and leaves it as it is', async () => {
    const path = join(folder, 'payload-keys.json');
    await KeyRing.open(folder, 0);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await chmod(path, 0o640);
    await assert.rejects(KeyRing.open(folder, 0), /mode 640, expected 600/);
    await chmod(path, 0o600);
    await writeFile(path, '{"version":1}');
    await assert.rejects(KeyRing.open(folder, 0), KeyRingRefused);
    assert.equal(await readFile(path, 'utf8'), '{"version":1}');
    await rename(path, join(folder, 'elsewhere'));
    await symlink('elsewhere', path);
    await assert.rejects(KeyRing.open(folder, 0), /symbolic link/);
  });
});
