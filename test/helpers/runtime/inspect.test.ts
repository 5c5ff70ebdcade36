import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import type { RemoteInfo, Socket as DgramSocket } from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';

import { inspectTree } from '../../../helpers/runtime/inspect.ts';
import type { Installation } from '../../../helpers/runtime/installation.ts';
import { FIXTURE_ROWS, makeExecutor, runningInstallation, Tree } from '../../fixtures/run-tree.ts';
import { installForTest } from '../../fixtures/start-role.ts';

describe('the inspection of a running tree', () => {
  let built: Installation;
  let installation: Installation;
  let removeInstallation: () => void;
  let base: string;
  let tree: Tree;
  let nameServer: DgramSocket;
  let asked: { readonly question: Buffer; readonly port: number };

  before(async () => {
    ({ installation: built, remove: removeInstallation } = await installForTest({
      ...FIXTURE_ROWS,
      link: 'test/fixtures/roles/outgoing.ts',
    }));
    installation = runningInstallation(built);
    const made = makeExecutor();
    ({ base } = made);
    tree = new Tree(built, made.configuration);
    await tree.ready();
    nameServer = createSocket('udp4');
    nameServer.bind(0, '127.0.0.1');
    await once(nameServer, 'listening');
    // what a datagram socket gives with `message`
    const question = once(nameServer, 'message') as Promise<[Buffer, RemoteInfo]>;
    tree.send(`to link ask ${nameServer.address().port}`);
    const [bytes, { port }] = await question;
    asked = { question: bytes, port };
  });
  after(async () => {
    nameServer.close();
    await tree.stop();
    removeInstallation();
    fs.rmSync(base, { recursive: true });
  });

  const differences = (): readonly string[] => inspectTree(installation, tree.configuration).differences;

  it('finds nothing in a tree that is as the table says, and no process where none runs', () => {
    assert.deepEqual(differences(), []);
    const other = makeExecutor();
    const { supervisor, processes } = inspectTree(installation, other.configuration);
    assert.deepEqual([supervisor, processes], [undefined, []]);
    fs.rmSync(other.base, { recursive: true });
  });

  it('shows the sockets of link as those of an outgoing connection, and none that listens on a network', () => {
    const { processes } = inspectTree(installation, tree.configuration);
    const link = processes.find(({ row }) => row === 'link');
    assert.deepEqual(link?.sockets.map(({ family, isListening }) => [family, isListening]).toSorted(byFamily), [
      ['udp', false],
      ['unix', false],
    ]);
    for (const { sockets } of processes)
      assert.ok(!sockets.some(({ family, isListening }) => isListening && family !== 'unix'));
  });

  it('a name server answers link, which may bind no port for it', async () => {
    const answer = Buffer.concat([asked.question, Buffer.from('c00c000100010000003c0004c0000201', 'hex')]);
    // a response (RFC 1035, section 4.1.1) with one answer, 192.0.2.1
    answer.writeUInt16BE(0x8180, 2);
    answer.writeUInt16BE(1, 6);
    nameServer.send(answer, asked.port, '127.0.0.1');
    assert.match((await tree.heard('link', 'answered')).said, /^answered 192\.0\.2\.1/);
  });

  it('names a process whose record is gone, and one whose recorded rules are not those of the table', () => {
    const pid = tree.pidOf('key-store');
    const record = path.join(tree.configuration.stateDir, 'audit', `${pid}.json`);
    const before = fs.readFileSync(record, 'utf8');
    fs.rmSync(record);
    assert.deepEqual(differences(), [`process ${pid}: no launch recorded this process`, 'key-store does not run']);
    fs.writeFileSync(record, before.replace(/"digest":"[0-9a-f]{4}/, '"digest":"0000'));
    assert.deepEqual(differences(), [`key-store ${pid}: launch recorded other rules than the table gives`]);
    fs.writeFileSync(record, before.replace(/"startTicks":"\d+"/, '"startTicks":"1"'));
    assert.deepEqual(differences(), [`process ${pid}: no launch recorded this process`, 'key-store does not run']);
    fs.writeFileSync(record, before);
  });

  it('names a descriptor that points elsewhere than declared', () => {
    const moved = { ...tree.configuration, root: path.join(base, 'other') };
    fs.mkdirSync(moved.root);
    if (process.getuid?.() === 0) fs.chownSync(moved.root, 65534, 65534);
    const found = inspectTree(installation, moved).differences;
    assert.deepEqual(found, [`workspace ${tree.pidOf('workspace')}: descriptor 4 is a folder, expected root folder`]);
  });

  it('names a row that runs with rules for another origin', () => {
    const found = inspectTree(installation, { ...tree.configuration, origin: 'https://localhost:9999' }).differences;
    assert.deepEqual(found, [`link ${tree.pidOf('link')}: launch recorded other rules than the table gives`]);
  });

  it('says that the supervisor keeps no capability beyond the declared ones', () => {
    const { processes } = inspectTree(installation, tree.configuration);
    const supervisor = processes.find(({ row }) => row === 'supervisor');
    const bits = supervisor?.threads.map(({ capabilities }) => capabilities.permitted);
    const expected = process.getuid?.() === 0 ? 0b1110_0101n : 0n;
    for (const permitted of bits ?? []) assert.equal(permitted, expected);
  });
});

function byFamily(one: readonly unknown[], other: readonly unknown[]): number {
  return String(one[0]).localeCompare(String(other[0]));
}
