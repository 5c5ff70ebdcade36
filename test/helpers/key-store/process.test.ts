import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { HelperRefused } from '../../../actors/helper-client.ts';
import { connectKeyStore, signStatement, signStatements } from '../../../actors/key-store.ts';
import type { KeyStoreClient } from '../../../actors/key-store.ts';
import { encode } from '../../../helpers/protocol/codec.ts';
import { encodeFrame } from '../../../helpers/protocol/frame.ts';
import { executorIdSchema } from '../../../helpers/protocol/ids.ts';
import { admitKey } from '../../../helpers/protocol/signed.ts';
import { openStatement } from '../../../helpers/protocol/statements.ts';
import { installRows, startRealRow, uidOf } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';

const asking = { withinMs: 10_000 };
const executor = executorIdSchema.parse(`exr_${'a'.repeat(32)}`);
const fields = { at: 1, executor, epoch: 1, ledgerCount: 0, ledgerHead: Buffer.alloc(32) };

function readAs(uid: number, file: string): number | null {
  const who = ['--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
  return spawnSync('setpriv', [...who, 'cat', file]).status;
}

describe('key-store, a confined process', function () {
  this.timeout(60_000);
  let installation: RealInstallation;
  let folder: string;
  const uid = uidOf(3);
  const clients: KeyStoreClient[] = [];

  before(async () => {
    installation = await installRows('key-store');
  });
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'key-store-'));
    if (uid !== undefined) fs.chownSync(folder, uid, uid);
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
    fs.rmSync(folder, { recursive: true });
  });
  after(() => installation.remove());

  function start() {
    const descriptor = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    const started = startRealRow(installation, { row: 'key-store', descriptors: { 4: descriptor } }, uid);
    fs.closeSync(descriptor);
    const client = connectKeyStore(started.channel);
    clients.push(client);
    return { ...started, client };
  }

  it('a key is made, signs and is there after kill -9, and the process ends when its channel does', async () => {
    const first = start();
    assert.deepEqual(await first.client.request('keystore.status', {}, asking), { state: 'empty' });
    const { publicKey } = await first.client.request('keystore.generate', { purpose: 'machine' }, asking);
    const signed = await signStatement(first.client, 'machine.heartbeat', fields, asking);
    const guard = openStatement('machine.heartbeat', admitKey(publicKey), signed)?.statement.guard ?? -1;
    process.kill(first.pid, 'SIGKILL');
    await first.exited;

    const second = start();
    const again = await signStatement(second.client, 'machine.heartbeat', fields, asking);
    const next = openStatement('machine.heartbeat', admitKey(publicKey), again)?.statement.guard ?? -1;
    assert.ok(guard >= 0 && next > guard);
    second.client.close();
    assert.deepEqual(await second.exited, { by: 'code', code: 0 });
  });

  it('its files belong to its own uid and are for nobody else', async () => {
    const { client } = start();
    await client.request('keystore.generate', { purpose: 'machine' }, asking);
    for (const name of fs.readdirSync(folder)) {
      const stat = fs.lstatSync(path.join(folder, name));
      assert.deepEqual([stat.uid, stat.mode & 0o7777, stat.nlink], [uid ?? process.getuid?.(), 0o600, 1]);
    }
    if (uid === undefined) return;
    assert.equal(readAs(uid, path.join(folder, 'key')), 0);
    assert.notEqual(readAs(uid + 1, path.join(folder, 'key')), 0);
  });

  it('a loosened bit refuses every request and the process lives to say so', async () => {
    const first = start();
    await first.client.request('keystore.generate', { purpose: 'machine' }, asking);
    first.client.close();
    await first.exited;
    fs.chmodSync(path.join(folder, 'key'), 0o644);
    const { client } = start();
    for (const ask of [
      () => client.request('keystore.status', {}, asking),
      () => signStatement(client, 'machine.heartbeat', fields, asking),
    ]) {
      await assert.rejects(ask(), (error) => error instanceof HelperRefused && error.code === 'STORE_UNSAFE');
    }
  });

  it('nonsense on its channel ends it with the code of a violation', async () => {
    for (const nonsense of [
      Buffer.from([0xff, 0xff, 0xff, 0xff]),
      encodeFrame(Buffer.from([0xc1])),
      encodeFrame(encode({ kind: 'request', version: 1, id: 1, type: 'keystore.export', body: {} })),
      encodeFrame(
        encode({ kind: 'request', version: 1, id: 1, type: 'keystore.generate', body: { purpose: 'other' } }),
      ),
      encodeFrame(encode({ kind: 'reply', id: 1, body: {} })),
    ]) {
      const { channel, exited } = start();
      channel.write(nonsense);
      assert.deepEqual(await exited, { by: 'code', code: 64 });
    }
  });

  it('many batches in flight are answered each by its own, all guards different', async () => {
    const { client } = start();
    const { publicKey } = await client.request('keystore.generate', { purpose: 'machine' }, asking);
    const key = admitKey(publicKey);
    const batch = Array.from({ length: 16 }, () => ({ type: 'machine.heartbeat', fields }) as const);
    const batches = await Promise.all(Array.from({ length: 100 }, () => signStatements(client, batch, asking)));
    const guards = batches.flat().map((signed) => openStatement('machine.heartbeat', key, signed)?.statement.guard);
    assert.equal(new Set(guards).size, 1600);
    assert.ok(!guards.includes(undefined));
  });
});
