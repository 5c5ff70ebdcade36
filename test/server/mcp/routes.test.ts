import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { FakeWorkspace } from '../../fakes/fake-workspace.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';

/** An unmodified client of the official SDK, connected. */
async function connect(
  plane: ControlPlane,
  token = plane.token,
): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const client = new Client({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(`${plane.origin}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport as never);
  return { client, transport };
}

const textOf = (result: Awaited<ReturnType<Client['callTool']>>): string => {
  const [content] = result.content as { type: string; text: string }[];
  return content?.text ?? '';
};

describe('model clients', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;
  let workspace: FakeWorkspace;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
    workspace = new FakeWorkspace({ 'notes.txt': 'hello' });
  });
  afterEach(() => plane.stop());

  it('an unmodified client of the official SDK lists its tools, reads, writes and reviews', async () => {
    const machine = plane.machine(paired, workspace.play);
    await machine.online();
    const { client } = await connect(plane);
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name).slice(0, 3), ['file_list', 'file_stat', 'file_read']);
    assert.ok(tools.every(({ name }) => /^[A-Za-z0-9_]+$/.test(name)));
    assert.ok(!tools.some(({ name }) => name.includes('promote') || name.includes('difference')));
    const read = await client.callTool({ name: 'file_read', arguments: { path: 'notes.txt' } });
    assert.ok(textOf(read).includes('"content":"hello"'));
    const written = await client.callTool({ name: 'file_write', arguments: { path: 'new.txt', content: 'made' } });
    assert.equal(written.isError, undefined);
    const review = await client.callTool({ name: 'workspace_review', arguments: {} });
    assert.ok(textOf(review).includes('"changeCount":1'));
    const rows = await plane.context.store.read.selectFrom('reviews').selectAll().execute();
    assert.equal(rows.length, 1);
    await client.close();
  });
});
