import assert from 'node:assert/strict';
import { createApp } from '../../../server/app.ts';
import { startWork } from '../../../server/commands/start-work.ts';
import { startControlPlane } from '../control-plane.ts';
import type { ControlPlane } from '../control-plane.ts';

describe('sessions of model clients', () => {
  let plane: ControlPlane;
  beforeEach(async () => {
    plane = await startControlPlane();
  });
  afterEach(() => plane.stop());

  const post = async (origin: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${origin}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${plane.token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(body),
    });
    const { status } = response;
    return { status, id: response.headers.get('mcp-session-id'), text: await response.text() };
  };
  const initializeAt = (origin: string) => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    return post(origin, { jsonrpc: '2.0', id: 1, method: 'initialize', params });
  };

  it('a session that cannot be taken up again fails alone, and is tried again', async () => {
    const opened = await initializeAt(plane.origin);
    const { id } = opened;
    assert.ok(id);
    const { initialize } = await plane.context.store.read
      .selectFrom('mcpSessions')
      .select('initialize')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    const keep = (text: string) =>
      plane.context.store.write((tx) =>
        tx.updateTable('mcpSessions').set({ initialize: text }).where('id', '=', id).execute(),
      );
    await plane.halt();
    await keep('no JSON');
    const work = await startWork(plane.context);
    const app = await createApp(plane.context, work);
    const origin = await app.listen({ host: '127.0.0.1', port: 0 });
    const ask = (session: string) =>
      post(origin, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { 'mcp-session-id': session });
    try {
      assert.equal((await ask(id)).status, 500);
      assert.equal((await initializeAt(origin)).status, 200, 'another client is not kept out');
      await keep(initialize);
      assert.equal((await ask(id)).status, 200, 'the next request takes it up');
    } finally {
      await work.stop();
      await app.close();
    }
  });

  it('an agent opens sixty runs in an hour and thirty-two at once; beyond it initialize says so, and uncounted it is refused', async () => {
    const initialize = () => initializeAt(plane.origin);
    const { store } = plane.context;
    const endAll = () =>
      store.write(async (tx) => {
        const ended = { state: 'ended' as const, endedBecause: 'closed-by-client' as const, endedAt: 1 };
        await tx.updateTable('runs').set(ended).execute();
        await tx.updateTable('mcpSessions').set({ endedAt: 1 }).execute();
      });
    for (let index = 0; index < 32; index += 1) assert.equal((await initialize()).status, 200, `run ${index + 1}`);
    const crowded = await initialize();
    assert.equal(crowded.status, 429);
    assert.match(crowded.text, /RUN_LIMIT: This agent has 32 runs under way\..*stop a run on the page/);
    assert.equal((await store.read.selectFrom('runs').select('id').execute()).length, 32);
    await endAll();
    // A try that found no room counts too.
    for (let index = 33; index < 60; index += 1) assert.equal((await initialize()).status, 200, `run ${index + 1}`);
    const often = await initialize();
    assert.equal(often.status, 429);
    assert.match(often.text, /RATE_LIMITED: .*60 in 60 minutes.*Wait/);
    await endAll();
    plane.clock.offsetMs += 3_600_001;
    assert.equal((await initialize()).status, 200);
    await store.write((tx) => tx.schema.dropTable('limits').execute());
    const uncounted = await initialize();
    assert.equal(uncounted.status, 503);
    assert.match(uncounted.text, /UNAVAILABLE/);
  });
});
