import assert from 'node:assert/strict';

import { HelperGone, HelperViolation } from '../../actors/helper-client.ts';
import { connectWorkspace, operate } from '../../actors/workspace.ts';
import type { WorkspaceCall, WorkspaceClient } from '../../actors/workspace.ts';
import { runIdSchema } from '../../helpers/protocol/ids.ts';
import { startFakeHelper } from '../fakes/fake-helper.ts';
import type { FakeHelper } from '../fakes/fake-helper.ts';

const call = {
  call: 'cmd_1',
  run: runIdSchema.parse(`run_${'a'.repeat(32)}`),
  operation: 'file.mkdir',
  arguments: { path: 'a', createParents: false },
  withinMs: 1000,
  ignore: ['.env'],
} satisfies WorkspaceCall<'file.mkdir'>;

describe('the view of workspace', () => {
  let helper: FakeHelper;
  let client: WorkspaceClient;

  async function connect(result: unknown): Promise<void> {
    helper = await startFakeHelper(({ id }, peer) => peer.send({ kind: 'reply', id, body: { result } }));
    client = connectWorkspace(await helper.connect());
  }
  afterEach(async () => {
    client.close();
    await helper.close();
  });

  it('a success and a failure come through, each in the shape of its operation', async () => {
    await connect({ success: true, path: 'a' });
    assert.deepEqual(await operate(client, call), { success: true, path: 'a' });
    client.close();
    await helper.close();
    await connect({ success: false, code: 'DRAFT_LIMIT', message: 'full' });
    assert.deepEqual(await operate(client, call), { success: false, code: 'DRAFT_LIMIT', message: 'full' });
  });

  it('what changes the draft carries its command as idempotency key, what reads does not', async () => {
    await connect({ success: false, code: 'WORKSPACE_DENIED' });
    await operate(client, call);
    await operate(client, { ...call, operation: 'file.stat', arguments: { path: 'a' } });
    assert.deepEqual(
      helper.requests.map(({ key }) => key),
      ['cmd_1', undefined],
    );
  });

  const wrong: Record<string, unknown> = {
    'a success of another operation': { success: true, path: 'a', byteCount: 1, sha256: 'a'.repeat(64) },
    'an unknown failure': { success: false, code: 'WHATEVER' },
    nothing: null,
    'a success with a host path beside': { success: true, path: 'a', host: '/' },
  };
  for (const [what, result] of Object.entries(wrong)) {
    it(`${what} is a violation and ends the connection`, async () => {
      await connect(result);
      await assert.rejects(operate(client, call), HelperViolation);
      await assert.rejects(operate(client, call), HelperGone);
    });
  }
});
