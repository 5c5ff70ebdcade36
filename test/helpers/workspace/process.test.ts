import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { HelperClient } from '../../../actors/helper-client.ts';
import { workspaceRefusals, workspaceRequests } from '../../../helpers/workspace/protocol.ts';
import { startRealRow, uidOf, type RealInstallation } from '../../fakes/real-row.ts';
import { installForTest } from '../../fixtures/start-role.ts';
import { newRun, sha256, treeDigest } from './bench.ts';

const contract = { requests: workspaceRequests, events: {}, refusals: workspaceRefusals };
const asking = { withinMs: 20_000 };

describe('workspace, a confined process', function () {
  this.timeout(60_000);
  let installation: RealInstallation;
  let base: string;
  const uid = uidOf(7);
  const clients: HelperClient<typeof contract>[] = [];

  before(async () => {
    const sources = { workspace: 'helpers/workspace/main.ts', 'workspace-worker': 'helpers/workspace/worker.ts' };
    const made = await installForTest(sources);
    installation = { folder: made.installation.folder, remove: made.remove };
  });
  beforeEach(() => {
    base = fs.mkdtempSync(path.join(os.tmpdir(), 'workspace-'));
    fs.chmodSync(base, 0o755);
    for (const name of ['project', 'drafts']) fs.mkdirSync(path.join(base, name), { mode: 0o700 });
    fs.writeFileSync(path.join(base, 'project/a.txt'), 'alpha\n');
    fs.writeFileSync(path.join(base, 'project/large'), Buffer.alloc(3_000_000, 'large '));
    for (const name of ['project', 'drafts', 'project/a.txt', 'project/large']) {
      if (uid !== undefined) fs.chownSync(path.join(base, name), uid, uid);
    }
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
    fs.rmSync(base, { recursive: true });
  });
  after(() => installation.remove());

  const open = (name: string): number =>
    fs.openSync(path.join(base, name), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);

  function start() {
    const [root, drafts] = [open('project'), open('drafts')];
    const started = startRealRow(installation, { row: 'workspace', descriptors: { 4: root, 5: drafts } }, uid);
    fs.closeSync(root);
    fs.closeSync(drafts);
    const client = new HelperClient(started.channel, contract);
    clients.push(client);
    const run = newRun();
    const operate = async (operation: string, args: unknown): Promise<Record<string, unknown>> => {
      const body = {
        call: `${operation} ${JSON.stringify(args)}`.slice(0, 128),
        run,
        operation,
        arguments: args,
        withinMs: 15_000,
        ignore: [],
      };
      const { result } = await client.request('workspace.operate', body, asking);
      assert.ok(!JSON.stringify(result).includes(base), 'an answer holds a host path');
      // every result is one object
      return result as Record<string, unknown>;
    };
    return { ...started, client, run, operate };
  }

  it('reads, writes drafts, searches and compares in its pool, and changes nothing of the root', async () => {
    const before = treeDigest(path.join(base, 'project'));
    const { client, run, operate } = start();
    const root = await client.request('workspace.root', {}, asking);
    assert.deepEqual([root.rootName, root.changed], ['project', false]);
    assert.equal((await operate('file.read', { path: 'a.txt' }))['content'], 'alpha\n');
    assert.equal(
      (await operate('file.stat', { path: 'large' }))['sha256'],
      sha256(Buffer.alloc(3_000_000, 'large ')),
      'hashed in the pool',
    );
    for (const [operation, args] of [
      ['file.write', { path: 'made/new.txt', content: 'new', createParents: true }],
      ['file.append', { path: 'large', content: 'end' }],
      ['file.rename', { from: 'a.txt', to: 'b.txt' }],
      ['file.chmod', { path: 'b.txt', executable: true }],
      ['file.delete', { path: 'made/new.txt' }],
      ['file.mkdir', { path: 'made/folder' }],
      ['workspace.review', {}],
    ] as const) {
      const result = await operate(operation, args);
      assert.equal(result['success'], true, `${operation}: ${JSON.stringify(result)}`);
    }
    const found = await operate('file.search', { query: 'alph.$', syntax: 'pattern' });
    assert.deepEqual(found['matches'], [{ path: 'b.txt', line: 1, column: 1, text: 'alpha' }]);
    const shown = await client.request('workspace.difference', { run, change: 0, ignore: [] }, asking);
    assert.equal(shown.difference.shown, 'text');
    assert.equal(treeDigest(path.join(base, 'project')), before);
  });

  it('a draft is there after kill -9, and the process ends when its channel does', async () => {
    const first = start();
    await first.operate('file.write', { path: 'new.txt', content: 'kept' });
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const second = start();
    const { drafts } = await second.client.request('workspace.drafts', {}, asking);
    assert.deepEqual(
      drafts.map(({ run, changeCount }) => [run, changeCount]),
      [[first.run, 1]],
    );
    assert.deepEqual(await second.client.request('workspace.discard', { run: first.run }, asking), { discarded: true });
    second.client.close();
    assert.deepEqual(await second.exited, { by: 'code', code: 0 });
  });
});
