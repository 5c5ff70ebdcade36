import assert from 'node:assert/strict';
import type { ExecutorId } from '../../../helpers/protocol/ids.ts';
import { signPayload } from '../../../helpers/protocol/signed.ts';
import { encodeStatement } from '../../../helpers/protocol/statements.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { rotateKey } from '../../../server/executors/rotate-key.ts';
import { newId } from '../../../server/new-id.ts';
import { machineKey } from '../../fakes/fake-machine.ts';
import type { MachineKey } from '../../fakes/fake-machine.ts';
import { pairThroughRoutes, PairingMachine, proveOnline, startGovernance } from '../governance.ts';
import type { Governance } from '../governance.ts';

describe('key rotation', () => {
  let plane: Governance;
  let executor: ExecutorId;
  let old: MachineKey;
  const next = machineKey();

  beforeEach(async () => {
    plane = await startGovernance();
    const paired = await pairThroughRoutes(plane, plane.owner);
    ({ executor } = paired);
    old = paired.machine.key;
    await proveOnline(plane, executor);
  });
  afterEach(() => plane.stop());

  interface Wish {
    readonly signers?: readonly [MachineKey, MachineKey];
    readonly fields?: object;
    readonly otherBytes?: boolean;
  }
  const statement = ({ signers = [old, next], fields = {}, otherBytes = false }: Wish = {}) => {
    const at = plane.clock.now();
    const payload = (guard: number) =>
      encodeStatement('machine.rotation', {
        guard,
        at,
        executor,
        oldPublicKey: old.publicKey,
        newPublicKey: next.publicKey,
        rotation: 1,
        ...fields,
      });
    const [first, second] = signers;
    return {
      current: signPayload(first.privateKey, 'machine.rotation', payload(1)),
      next: signPayload(second.privateKey, 'machine.rotation', payload(otherBytes ? 2 : 1)),
    };
  };
  const keyOf = async () =>
    (
      await plane.context.store.read
        .selectFrom('executors')
        .select('publicKey')
        .where('id', '=', executor)
        .executeTakeFirstOrThrow()
    ).publicKey;
  const rotate = (wish?: Wish) => rotateKey(plane.context, executor, statement(wish));

  it('N-069 one transaction signed by both keys; only old, only new, another executor and a replay are refused', async () => {
    const refused: [string, Wish][] = [
      ['only the old key', { signers: [old, machineKey()] }],
      ['only the new key', { signers: [machineKey(), next] }],
      ['the keys exchanged', { signers: [next, old] }],
      ['each over other bytes', { otherBytes: true }],
      ['another executor', { fields: { executor: newId('exr') } }],
      ['a rotation left out', { fields: { rotation: 2 } }],
      ['an old key that is not the current one', { fields: { oldPublicKey: machineKey().publicKey } }],
      ['the key that it has', { signers: [old, old], fields: { newPublicKey: old.publicKey } }],
    ];
    for (const [what, wish] of refused) {
      await assert.rejects(rotate(wish), { code: 'ROTATION_INVALID' }, what);
      assert.deepEqual(await keyOf(), old.publicKey, what);
    }
    const good = statement();
    assert.deepEqual(Buffer.from((await rotateKey(plane.context, executor, good)).publicKey), next.publicKey);
    assert.deepEqual(await keyOf(), next.publicKey);
    const again = await rotateKey(plane.context, executor, good);
    assert.deepEqual(Buffer.from(again.publicKey), next.publicKey, 'a lost answer is given again');
    const third = machineKey();
    const onward = {
      signers: [next, third] as const,
      fields: { oldPublicKey: next.publicKey, newPublicKey: third.publicKey, rotation: 2 },
    };
    await rotate(onward);
    await assert.rejects(rotateKey(plane.context, executor, good), { code: 'ROTATION_INVALID' }, 'replayed later');
    assert.deepEqual(await keyOf(), third.publicKey);
  });

  it('after a rotation the new key proves the machine and the old one does not', async () => {
    await rotate();
    const { fingerprint } = await plane.context.store.read
      .selectFrom('executors')
      .select('fingerprint')
      .where('id', '=', executor)
      .executeTakeFirstOrThrow();
    const proof = (text: string) =>
      changeExecutor(plane.context, executor, { type: 'executor.proved', fingerprint: text });
    await assert.rejects(proof(new PairingMachine('', plane.clock, old).fingerprint), {
      code: 'FINGERPRINT_NOT_CONFIRMED',
    });
    await proof(fingerprint ?? '');
  });

  it('N-068 no key gets a record that it does not have: not by rotation, not by pairing, not after a revocation', async () => {
    const twin = await pairThroughRoutes(plane, plane.owner);
    const taken = { signers: [old, twin.machine.key] as const, fields: { newPublicKey: twin.machine.key.publicKey } };
    await assert.rejects(rotate(taken), { code: 'ROTATION_INVALID' });
    const proof = { type: 'executor.proved', fingerprint: new PairingMachine('', plane.clock).fingerprint } as const;
    await assert.rejects(changeExecutor(plane.context, executor, proof), { code: 'FINGERPRINT_NOT_CONFIRMED' });
    assert.equal((await new PairingMachine(plane.origin, plane.clock, old).start()).body.code, 'KEY_ALREADY_KNOWN');
    await plane.owner.post(`/api/page/executors/${executor}/disconnect`);
    await assert.rejects(rotate(), { code: 'EXECUTOR_UNKNOWN' });
    assert.equal((await new PairingMachine(plane.origin, plane.clock, old).start()).body.code, 'KEY_ALREADY_KNOWN');
  });
});
