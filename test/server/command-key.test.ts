import assert from 'node:assert/strict';
import { chmod, mkdtemp, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startCommandKey } from '../../server/command-key.ts';
import type { KeptCommandKey } from '../../server/command-key.ts';
import { newId } from '../../server/new-id.ts';
import { FakeWorkspace } from '../fakes/fake-workspace.ts';
import { installForTest } from '../fixtures/start-role.ts';
import { PASSWORD, startControlPlane, until } from './control-plane.ts';
import type { ControlPlane, PairedMachine } from './control-plane.ts';
import { keyStoreOf } from './key-store-process.ts';
import { done, openRun } from './work-run.ts';

describe('a control plane whose key-store is killed', function () {
  this.timeout(60_000);
  let installation: Awaited<ReturnType<typeof installForTest>>;
  let folder: string;
  let keys: string;
  let key: KeptCommandKey;
  let plane: ControlPlane;
  let paired: PairedMachine;
  let workspace: FakeWorkspace;
  let client: Client;

  before(async () => {
    installation = await installForTest({ 'key-store': 'helpers/key-store/main.ts' });
  });
  after(() => installation.remove());
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nessie-keys-'));
    await chmod(folder, 0o755);
    keys = join(folder, 'command-key');
    key = await startCommandKey(installation.installation.folder, folder);
    plane = await startControlPlane({ signer: key, password: PASSWORD });
    paired = await plane.pair();
    workspace = new FakeWorkspace({ 'notes.txt': 'hello' });
    client = new Client({ name: 'test', version: '1' });
  });
  afterEach(async () => {
    await client.close();
    await plane.stop();
    await key.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const kill = async () => process.kill(Number(await keyStoreOf(keys)), 'SIGKILL');
  /** Where the folder of its key is not one, a key-store cannot be started. */
  const keepAway = async () => {
    await rename(keys, `${keys}.away`);
    await writeFile(keys, '');
    process.kill(Number(await keyStoreOf(`${keys}.away`)), 'SIGKILL');
  };
  const letBack = async () => {
    await unlink(keys);
    await rename(`${keys}.away`, keys);
  };
  const signs = async () => {
    const fields = { at: 1, executor: newId('exr'), command: newId('cmd'), epoch: 1, envelopeDigest: Buffer.alloc(32) };
    return key.sign([{ type: 'control.leased', fields }]).catch(() => undefined);
  };
  const connect = async () => {
    const requestInit = { headers: { authorization: `Bearer ${plane.token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${plane.origin}/mcp`), { requestInit }));
    await client.listTools();
  };
  const read = async () => {
    const result = await client.callTool({ name: 'file_read', arguments: { path: 'notes.txt' } });
    const [content] = result.content as { text: string }[];
    return { text: content?.text ?? '', isError: result.isError === true };
  };

  it('answers every call while its key-store is started again, over the connection that its machine has', async () => {
    const machine = plane.machine(paired, workspace.play);
    await machine.online();
    await connect();
    for (let round = 0; round < 4; round += 1) {
      const before = Array.from({ length: 10 }, read);
      await kill();
      const after = Array.from({ length: 10 }, read);
      for (const { text, isError } of await Promise.all([...before, ...after])) {
        assert.ok(!isError && text.includes('hello'), text);
      }
    }
    assert.equal(plane.work.lanes.find(paired.executor)?.epoch, machine.epoch);
  });

  it('refuses in words, to a model and on the page, while no key-store can be started, and goes on by itself', async () => {
    const machine = plane.machine(paired, workspace.play);
    await machine.online();
    await connect();
    const run = await openRun(plane);
    await run.call('file.write', { path: 'notes.txt', content: 'new', overwrite: true });
    const review = await plane.page('POST', `/api/page/runs/${run.run.id}/review`);
    const { body } = await plane.page('POST', `/api/page/reviews/${review.body.review}/promotion`);
    const approve = () => plane.page('POST', `/api/page/promotions/${body.promotion}/approve`, { password: PASSWORD });
    await keepAway();
    const [told, page] = await Promise.all([read(), approve()]);
    assert.ok(told.isError);
    assert.match(told.text, /nothing ran: UNAVAILABLE\. The control plane cannot sign now.*Try again in a moment\./);
    assert.deepEqual([page.status, page.body.code, page.body.remedy], [503, 'UNAVAILABLE', 'Try again in a moment.']);
    await letBack();
    await until('the key to sign again', signs, 30_000);
    machine.cut();
    await plane.machine(paired, workspace.play, machine.state).online();
    assert.ok(!(await read()).isError);
    assert.equal((await approve()).status, 200, 'what was approved in vain may be approved again');
  });

  it('gives out what was queued meanwhile once it signs again', async () => {
    const machine = plane.machine(paired, () => done);
    await machine.connect();
    const run = await openRun(plane);
    const queued = await run.start('file.mkdir', { path: 'd' });
    await keepAway();
    const asked = machine.ask('work', { capacity: 8 });
    // Answered after the question before it is held.
    await machine.heartbeat();
    await assert.rejects(run.start('file.mkdir', { path: 'e' }), { code: 'UNAVAILABLE' });
    await letBack();
    await until('the next command', () => run.start('file.mkdir', { path: 'f' }).catch(() => undefined), 30_000);
    const given = (await asked).commands.map((frame) => machine.receive(frame).envelope.command);
    assert.equal(given.length, 2);
    assert.equal(given[0], queued);
  });
});
