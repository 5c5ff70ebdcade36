import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { bundle } from '../../helpers/build/bundle.ts';
import { admitKey } from '../../helpers/protocol/signed.ts';
import { openStatement } from '../../helpers/protocol/statements.ts';
import { startCommandKey } from '../../server/command-key.ts';
import { newId } from '../../server/new-id.ts';
import { openSqliteStore } from '../../server/store/sqlite.ts';
import { installForTest } from '../fixtures/start-role.ts';
import { until } from './control-plane.ts';
import { keyStoreOf } from './key-store-process.ts';

const TOP = resolve(import.meta.dirname, '..', '..');

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A TCP server that listens has an address with a port.
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('server process', function () {
  this.timeout(60_000);
  let installation: Awaited<ReturnType<typeof installForTest>>;
  let built: string;
  let folder: string;
  let config: string;
  let port: number;
  const running: ChildProcess[] = [];

  before(async () => {
    installation = await installForTest({ 'key-store': 'helpers/key-store/main.ts' });
    // The server's packages stay outside its bundle, which therefore lies where they are found.
    built = await mkdtemp(join(TOP, 'node_modules', '.server-test-'));
    await bundle(TOP, join(built, 'dist'), [{ name: 'server', source: 'server/main.ts', packages: 'external' }]);
  });
  after(async () => {
    installation.remove();
    await rm(built, { recursive: true });
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nessie-main-'));
    port = await freePort();
    config = join(folder, 'server.json');
    const settings = { listen: { port }, publicOrigin: `http://127.0.0.1:${port}`, dataFolder: 'data' };
    await writeFile(config, JSON.stringify(settings));
  });
  afterEach(async () => {
    for (const child of running.splice(0)) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    }
    await rm(folder, { recursive: true, force: true });
  });

  const start = (...more: string[]) => {
    const line = [join(built, 'dist', 'server.mjs'), '--installation', installation.installation.folder];
    const child = spawn(process.execPath, [...line, ...more], { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
    running.push(child);
    const said = { out: '', error: '' };
    child.stdout.on('data', (chunk) => (said.out += String(chunk)));
    child.stderr.on('data', (chunk) => (said.error += String(chunk)));
    return { child, said };
  };
  const run = async (...command: string[]) => {
    const { child, said } = start('--config', config, ...command);
    await once(child, 'close');
    const lines = said.out.split('\n').filter((line) => line.startsWith('{'));
    return { code: child.exitCode, lines: lines.map((line) => JSON.parse(line)), ...said };
  };
  const serve = async () => {
    const server = start('--config', config);
    await until('the listening line', () => server.said.out.includes('\n') || server.child.exitCode !== null, 30_000);
    return server;
  };
  const owner = [
    '--organisation',
    'Loch',
    '--team',
    'Shore',
    '--project',
    'Survey',
    '--login',
    'ness',
    '--name',
    'Ness',
  ];

  it('serves, says so in one line of JSON, and ends in order on SIGTERM with its key-store', async () => {
    const { child, said } = await serve();
    const { listening, setup } = JSON.parse(said.out);
    assert.equal(listening, `http://127.0.0.1:${port}`);
    assert.match(setup, /#setup=[\w-]{43}$/);
    assert.deepEqual(await (await fetch(`${listening}/healthz`)).json(), { healthy: true });
    const keys = join(folder, 'data', 'command-key');
    const keyStore = await keyStoreOf(keys);
    assert.notEqual(keyStore, undefined);
    child.kill('SIGTERM');
    await once(child, 'close');
    assert.equal(child.exitCode, 0, said.error);
    await until('the key-store to end', async () => (await keyStoreOf(keys)) === undefined);
    assert.equal((await stat(join(folder, 'data'))).mode & 0o777, 0o700);
    for (const name of ['secret', 'store.db', 'payload-keys.json']) {
      assert.equal((await stat(join(folder, 'data', name))).mode & 0o077, 0, name);
    }
  });

  it('a key-store that is killed is started again with the same key', async () => {
    const { said } = await serve();
    const { listening } = JSON.parse(said.out);
    const fingerprint = async () =>
      (await (await fetch(`${listening}/api/page/session`)).json()).server.commandKeyFingerprint;
    const before = await fingerprint();
    const keys = join(folder, 'data', 'command-key');
    const killed = await keyStoreOf(keys);
    process.kill(Number(killed), 'SIGKILL');
    await until('another key-store', async () => {
      const now = await keyStoreOf(keys);
      return now !== undefined && now !== killed;
    });
    assert.equal(await fingerprint(), before);
  });

  it('signs what the protocol names and nothing else, also after its key-store was killed', async () => {
    const keys = join(folder, 'keys');
    const { mkdir } = await import('node:fs/promises');
    await mkdir(keys, { mode: 0o700 });
    await chmod(folder, 0o755);
    const key = await startCommandKey(installation.installation.folder, keys);
    const fields = { at: 1, executor: newId('exr'), command: newId('cmd'), epoch: 1, envelopeDigest: Buffer.alloc(32) };
    const [signed] = await key.sign([{ type: 'control.leased', fields }]);
    assert.ok(signed);
    const opened = openStatement('control.leased', admitKey(key.publicKey), signed);
    assert.equal(opened?.statement.executor, fields.executor);
    const foreign = {
      type: 'machine.heartbeat',
      fields: { at: 1, executor: newId('exr'), epoch: 1, ledgerCount: 0, ledgerHead: Buffer.alloc(32) },
    };
    await assert.rejects(key.sign([foreign as never]), { code: 'PURPOSE_MISMATCH' });
    process.kill(Number(await keyStoreOf(join(keys, 'command-key'))), 'SIGKILL');
    const again = await until(
      'the key to sign again',
      () => key.sign([{ type: 'control.leased', fields }]).catch(() => undefined),
      10_000,
    );
    const reopened =
      again[0] === undefined ? undefined : openStatement('control.leased', admitKey(key.publicKey), again[0]);
    assert.ok((reopened?.statement.guard ?? 0) > (opened?.statement.guard ?? 0));
    await key.stop();
  });

  it('beside a running server: the owner is made, links are given, a lost password is taken away', async () => {
    const { said } = await serve();
    const { listening } = JSON.parse(said.out);
    const made = await run('set-up', ...owner);
    assert.match(made.lines[0].address, /#sign-in=/);
    assert.equal((await run('set-up', ...owner)).code, 1);
    const enter = async (address: string) =>
      (
        await fetch(`${listening}/api/page/sign-in-by-link`, {
          method: 'POST',
          headers: { origin: listening, 'content-type': 'application/json' },
          body: JSON.stringify({ token: address.split('=')[1] }),
        })
      ).status;
    assert.equal(await enter(made.lines[0].address), 200);
    assert.equal(await enter((await run('sign-in-link', 'ness')).lines[0].address), 200);
    assert.equal(await enter((await run('reset-password', 'ness')).lines[0].address), 200);
    const nobody = await run('reset-password', 'nobody');
    assert.equal(nobody.code, 1);
    assert.match(nobody.error, /PERSON_ABSENT/);
  });

  it('check and audit verify name what is wrong, and a backup holds everything', async () => {
    await run('set-up', ...owner);
    await run('sign-in-link', 'ness');
    assert.equal((await run('check')).code, 0);
    const copy = join(folder, 'copy');
    assert.equal((await run('backup', copy)).code, 0);
    assert.equal((await run('backup', copy)).code, 78, 'a folder that exists');
    const sums = JSON.parse(await readFile(join(copy, 'sums.json'), 'utf8'));
    assert.ok(Object.keys(sums).includes('store.db') && Object.keys(sums).includes('secret'));
    const store = await openSqliteStore(join(folder, 'data', 'store.db'));
    await store.write((tx) => tx.updateTable('audit').set({ person: 'per_other' }).where('sequence', '=', 2).execute());
    await store.close();
    const verified = await run('audit', 'verify');
    assert.equal(verified.code, 1);
    assert.deepEqual(verified.lines[0], { fault: 'altered', sequence: 2 });
    const checked = await run('check');
    assert.equal(checked.code, 1);
    assert.equal(checked.lines.find((line) => line.check === 'audit').ok, false);
    await chmod(join(folder, 'data'), 0o755);
    assert.equal((await run('audit', 'verify')).code, 1);
  });

  it('a server that starts from a backup is the same control plane: same key, same people', async () => {
    const first = await serve();
    const { listening } = JSON.parse(first.said.out);
    await run('set-up', ...owner);
    const fingerprint = async () => {
      const answer = await fetch(`${listening}/api/page/session`);
      const { server, isSetUp } = await answer.json();
      return { key: server.commandKeyFingerprint, isSetUp };
    };
    const before = await fingerprint();
    assert.equal(before.isSetUp, true);
    const copy = join(folder, 'copy');
    assert.equal((await run('backup', copy)).code, 0);
    first.child.kill('SIGTERM');
    await once(first.child, 'close');
    await writeFile(config, JSON.stringify({ listen: { port }, publicOrigin: listening, dataFolder: copy }));
    assert.equal((await run('check')).code, 0);
    await serve();
    assert.deepEqual(await fingerprint(), before);
  });

  it('what a person did wrong is one sentence with its exit code: no stack, no path', async () => {
    const { said } = await serve();
    assert.ok(said.out.length > 0);
    const cases: [string[], number, RegExp][] = [
      [['--config', config], 1, /listen\.port is in use/],
      [[], 64, /--config is missing/],
      [['--config', join(folder, 'absent.json')], 78, /cannot be read as JSON/],
      [['--config', config, 'dance'], 64, /unknown command dance/],
      [['--config', config, 'check', 'more', 'still'], 64, /unexpected: still/],
      [['--config', config, '--colour'], 64, /usage:/],
      [['--config', config, 'sign-in-link'], 64, /LOGIN is missing/],
    ];
    for (const [line, code, says] of cases) {
      const { child, said: told } = start(...line);
      await once(child, 'close');
      assert.equal(child.exitCode, code, `${line.join(' ')}: ${told.error}`);
      assert.match(told.error, says);
      assert.equal(/\n\s+at |node_modules/.test(told.error), false);
      assert.equal(told.error.includes(folder), false, told.error);
    }
  });
});
