import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { freePort, startServer, stopChild, until } from '../../daemon/demo/children.ts';
import { decode } from '../../helpers/protocol/codec.ts';
import { StoredRecords } from './records.ts';
import { findIn } from './search.ts';
import { PASSWORD, World } from './world.ts';

const STEP_MS = 30_000;

describe('R11 whoever has a copy of the control plane’s database', function () {
  this.timeout(120_000);
  let world: World | undefined;

  before(async () => {
    world = await World.begin({ prepare: (root) => fs.writeFileSync(path.join(root, 'a.txt'), 'hello\n') });
    await world.agent.call('file_write', { path: 'b.txt', content: 'draft' });
  });
  after(() => world?.end());

  it('can be neither side to the other: no private key stands in any byte of it, and no token and no password', () => {
    assert.ok(world);
    const data = path.join(world.folder, 'server', 'data');
    const markers = new Map([
      ['command key', seedIn(path.join(data, 'command-key'))],
      ['machine key', seedIn(path.join(world.places.stateDir, 'key-store'))],
      ['agent token', Buffer.from(world.access.token)],
      ['password', Buffer.from(PASSWORD)],
    ]);
    const names = fs.readdirSync(data).filter((name) => name.startsWith('store.db'));
    assert.ok(names.includes('store.db-wal'), 'the write-ahead log is looked through too');
    assert.deepEqual(
      findIn(
        names.map((name) => [name, fs.readFileSync(path.join(data, name))] as const),
        markers,
      ),
      [],
    );
    assert.equal(findIn(filesOf(path.join(data, 'command-key')), markers).length > 0, true, 'the search finds a key');
  });

  it('commands no machine with it: a server on the stolen files is believed by none, and nothing runs', async () => {
    assert.ok(world);
    const real = world;
    const thief = path.join(real.folder, 'thief');
    const stolen = path.join(thief, 'data');
    fs.mkdirSync(stolen, { recursive: true, mode: 0o700 });
    const data = path.join(real.folder, 'server', 'data');
    // Everything but the folder of the command key, which is more than a thief of the database has.
    for (const name of fs.readdirSync(data))
      if (name !== 'command-key') fs.copyFileSync(path.join(data, name), path.join(stolen, name));
    const before = await real.status();
    const port = await freePort();
    const server = await startServer(real.dist, thief, port);
    try {
      assert.ok(new StoredRecords(stolen).commands().length > 0, 'the stolen database works');
      real.proxy.target = port;
      real.proxy.cut();
      await until('the machine to have met the thief', STEP_MS, () => real.proxy.accepted(port) >= 3);
      const during = await real.status();
      assert.notEqual(during.state, 'online');
      assert.deepEqual(during.ledger, before.ledger);
      assert.equal(during.epoch, before.epoch);
    } finally {
      real.proxy.target = Number(new URL(real.origin).port);
      real.proxy.cut();
      await stopChild(server.process);
    }
    await real.settled();
    assert.deepEqual(fs.readdirSync(real.root), ['a.txt']);
  });
});

/** The private half in a key-store's folder, a record of helpers/key-store/pair.ts. */
function seedIn(folder: string): Buffer {
  const { seed } = decode(fs.readFileSync(path.join(folder, 'key'))) as { seed: Uint8Array };
  return Buffer.from(seed);
}

function filesOf(folder: string): (readonly [string, Buffer])[] {
  return fs.readdirSync(folder).map((name) => [name, fs.readFileSync(path.join(folder, name))] as const);
}
