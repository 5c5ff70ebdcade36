import assert from 'node:assert/strict';

import { HelperRefused, HelperViolation } from '../../actors/helper-client.ts';
import { connectKeyStore, signStatement, signStatements } from '../../actors/key-store.ts';
import type { KeyStoreClient } from '../../actors/key-store.ts';
import { executorIdSchema } from '../../helpers/protocol/ids.ts';
import { startFakeHelper } from '../fakes/fake-helper.ts';
import type { FakeHelper, FakePeer } from '../fakes/fake-helper.ts';
import type { Request } from '../../helpers/protocol/envelope.ts';

const executor = executorIdSchema.parse(`exr_${'a'.repeat(32)}`);
const fields = { at: 1, executor, epoch: 1, ledgerCount: 0, ledgerHead: Buffer.alloc(32) };
const signed = { payload: Buffer.from('x'), signature: Buffer.alloc(64) };

describe('the view of a key-store', () => {
  let helper: FakeHelper;
  let client: KeyStoreClient;

  async function connect(answer: (request: Request, peer: FakePeer) => void): Promise<void> {
    helper = await startFakeHelper(answer);
    client = connectKeyStore(await helper.connect());
  }
  afterEach(async () => {
    client.close();
    await helper.close();
  });

  it('asks for several statements in one request, without guards, with the current key unless told', async () => {
    await connect(({ id }, peer) => peer.send({ kind: 'reply', id, body: { signed: [signed, signed] } }));
    const statement = { type: 'machine.heartbeat', fields } as const;
    assert.equal((await signStatements(client, [statement, statement], { withinMs: 5000 })).length, 2);
    const { body, key } = helper.requests[0] ?? {};
    assert.deepEqual(body, { key: 'current', statements: [statement, statement] });
    assert.equal(key, undefined, 'signing is never answered from memory');
  });

  it('an answer with another number of statements is a violation', async () => {
    await connect(({ id }, peer) => peer.send({ kind: 'reply', id, body: { signed: [signed, signed] } }));
    await assert.rejects(signStatement(client, 'machine.heartbeat', fields, { withinMs: 5000 }), HelperViolation);
  });

  it('a refusal keeps its code', async () => {
    await connect(({ id }, peer) => peer.send({ kind: 'refusal', id, code: 'KEY_ABSENT', message: 'none' }));
    await assert.rejects(
      signStatement(client, 'machine.heartbeat', fields, { key: 'next', withinMs: 5000 }),
      (error) => error instanceof HelperRefused && error.code === 'KEY_ABSENT',
    );
    assert.deepEqual(
      helper.requests.map(({ body }) => (body as { key: string }).key),
      ['next'],
    );
  });
});
