import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '../../../server/new-id.ts';
import { openSqliteStore } from '../../../server/store/sqlite.ts';
import type { Store, Writer } from '../../../server/store/store.ts';

const addOrganisation = (tx: Writer, name: string) =>
  tx
    .insertInto('organisations')
    .values({ id: newId('org'), name, createdAt: 1 })
    .execute();

describe('embedded store', () => {
  let folder: string;
  let file: string;
  let store: Store;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nessie-store-'));
    file = join(folder, 'store.db');
    store = await openSqliteStore(file);
  });
  afterEach(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });
  const names = async () =>
    (await store.read.selectFrom('organisations').select('name').orderBy('name').execute()).map((row) => row.name);

  it('a job that throws takes back its own rows and leaves those of its neighbours', async () => {
    const outcomes = await Promise.allSettled([
      store.write((tx) => addOrganisation(tx, 'first')),
      store.write(async (tx) => {
        await addOrganisation(tx, 'second');
        throw new Error('no');
      }),
      store.write((tx) => addOrganisation(tx, 'third')),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(await names(), ['first', 'third']);
  });

  it('a job that breaks a constraint half way leaves nothing of itself', async () => {
    await assert.rejects(
      store.write(async (tx) => {
        await addOrganisation(tx, 'half');
        await tx
          .insertInto('teams')
          .values({ id: newId('team'), organisation: newId('org'), name: 't', createdAt: 1 })
          .execute();
      }),
      /FOREIGN KEY/,
    );
    assert.deepEqual(await names(), []);
  });

  it('a reader sees nothing of a job before its commit and all of it once it is durable', async () => {
    let seenInside: string[] = ['unread'];
    await store.write(async (tx) => {
      await addOrganisation(tx, 'new');
      seenInside = await names();
    });
    assert.deepEqual(seenInside, []);
    assert.deepEqual(await names(), ['new']);
  });

  it('hundreds of jobs that arrive together are all done, in order of arrival', async () => {
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 700 }, (_, index) =>
        store.write((tx) => addOrganisation(tx, `n${index}`)).then(() => order.push(index)),
      ),
    );
    assert.deepEqual(
      order,
      Array.from({ length: 700 }, (_, index) => index),
    );
  });

  it('gives bytes back as the bytes that were stored, and keeps its file to its owner', async () => {
    await store.write((tx) =>
      tx
        .insertInto('limits')
        .values({ bucket: Buffer.from([0, 255, 7]), hits: Buffer.alloc(8), expiresAt: 1 })
        .execute(),
    );
    const row = await store.read.selectFrom('limits').selectAll().executeTakeFirstOrThrow();
    assert.deepEqual(row.bucket, Buffer.from([0, 255, 7]));
    assert.equal((await stat(file)).mode & 0o777, 0o600);
  });

  it('what was written is there after a kill, and a second process may write between', async () => {
    const program = `
      import { openSqliteStore } from './server/store/sqlite.ts';
      const store = await openSqliteStore(process.argv[1]);
      for (let index = 0; index < 1000; index += 1) {
        await store.write((tx) => tx.insertInto('organisations').values({ id: 'org_' + index, name: String(index), createdAt: 1 }).execute());
        console.log(index);
      }`;
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program, file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let acknowledged = '';
    for await (const chunk of child.stdout) {
      acknowledged += String(chunk);
      await store.write((tx) => addOrganisation(tx, 'mine'));
      if (acknowledged.split('\n').length > 50) child.kill('SIGKILL');
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    const last = Number(acknowledged.trimEnd().split('\n').at(-1));
    const stored = await names();
    for (let index = 0; index <= last; index += 1)
      assert.ok(stored.includes(String(index)), `row ${index} was acknowledged`);
    assert.deepEqual(await store.faults(), []);
  });

  it('readers cannot write, agree among themselves for as long as they want, and hold no writer up', async () => {
    await assert.rejects(
      store.read
        .insertInto('organisations')
        .values({ id: newId('org'), name: 'x', createdAt: 1 })
        .execute(),
      /readonly/,
    );
    await store.read.transaction().execute(async (snapshot) => {
      const before = await snapshot.selectFrom('organisations').selectAll().execute();
      await store.write((tx) => addOrganisation(tx, 'meanwhile'));
      assert.deepEqual(await snapshot.selectFrom('organisations').selectAll().execute(), before);
    });
    assert.deepEqual(await names(), ['meanwhile']);
  });

  it('a backup is whole, and never replaces a file', async () => {
    await store.write((tx) => addOrganisation(tx, 'kept'));
    const copy = join(folder, 'copy.db');
    await store.backup(copy);
    await assert.rejects(store.backup(copy), /exists already/);
    const other = await openSqliteStore(copy);
    assert.equal((await other.read.selectFrom('organisations').select('name').executeTakeFirstOrThrow()).name, 'kept');
    await other.close();
  });

  it('a store that cannot write says so and changes nothing', async () => {
    await store.close();
    await assert.rejects(store.write((tx) => addOrganisation(tx, 'late')));
    store = await openSqliteStore(file);
    assert.deepEqual(await names(), []);
  });
});
