import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { decode, encode } from '../../../helpers/protocol/codec.ts';
import { statements } from '../../../helpers/protocol/statements.ts';
import { freshState } from '../../fakes/fake-executor.ts';
import { machineKey } from '../../fakes/fake-machine.ts';
import { startControlPlane } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';

describe('proofs of a machine', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  it('R3 a proof with any one field changed on its way is refused, and the connection ends', async () => {
    const state = freshState();
    for (const field of Object.keys(statements['machine.session'].shape)) {
      const machine = plane.machine(paired, undefined, state);
      await machine.open();
      const { challenge } = await machine.ask('session.challenge', { executor: paired.executor });
      const fields = {
        at: Date.now(),
        executor: paired.executor,
        challenge,
        nonce: randomBytes(32),
        ...machine.ledger,
        capabilityRevision: 1,
        repaired: false,
        acknowledgedCount: 0,
        acknowledgedHead: Buffer.alloc(32),
      };
      const { payload, signature } = machine.sign('machine.session', fields);
      const stated = decode(payload) as Record<string, unknown>;
      const proof = { payload: encode({ ...stated, [field]: otherThan(stated[field]) }), signature };
      await assert.rejects(machine.ask('session.prove', { proof }), refusedWith('PROOF_INVALID'), field);
      assert.equal(await machine.closed, 1008);
    }
    const whole = plane.machine(paired, undefined, state);
    await whole.open();
    assert.equal((await whole.prove()).verdict, 'online');
  });

  it('S-221 a key rotated by both keys takes over at once; after a second rotation the document of the first is refused, and both retired keys', async () => {
    const machine = plane.machine(paired);
    await machine.open();
    await machine.prove();
    const next = machineKey();
    const fields = {
      at: Date.now(),
      executor: paired.executor,
      oldPublicKey: paired.key.publicKey,
      newPublicKey: next.publicKey,
      rotation: 1,
    };
    const current = machine.sign('machine.rotation', fields);
    const lying = { ...current, signature: randomBytes(64) };
    await assert.rejects(machine.ask('rotation', { current, next: lying }), refusedWith('ROTATION_INVALID'));
    const other = plane.machine({ ...paired, key: next }, undefined, {
      ...machine.state,
      guard: machine.state.guard - 1,
    });
    const signedByNext = other.sign('machine.rotation', fields);
    assert.deepEqual(signedByNext.payload, current.payload);
    const { publicKey } = await machine.ask('rotation', { current, next: signedByNext });
    assert.deepEqual(Buffer.from(publicKey), next.publicKey);
    await assert.rejects(machine.heartbeat(), refusedWith('PROOF_INVALID'));
    const heartbeat = other.sign('machine.heartbeat', {
      at: Date.now(),
      executor: paired.executor,
      epoch: machine.epoch,
      ...machine.ledger,
    });
    assert.ok((await machine.ask('heartbeat', { heartbeat })).at > 0);
    const third = machineKey();
    const onward = { ...fields, oldPublicKey: next.publicKey, newPublicKey: third.publicKey, rotation: 2 };
    const last = plane.machine({ ...paired, key: third }, undefined, { ...other.state });
    const documents = { current: other.sign('machine.rotation', onward), next: last.sign('machine.rotation', onward) };
    await machine.ask('rotation', documents);
    await assert.rejects(
      machine.ask('rotation', { current, next: signedByNext }),
      refusedWith('ROTATION_INVALID'),
      'the document of the first rotation',
    );
    for (const retired of [machine, other]) {
      const { executor } = paired;
      const dead = { at: Date.now(), executor, epoch: machine.epoch, ...machine.ledger };
      const sign = retired.sign('machine.heartbeat', dead);
      await assert.rejects(machine.ask('heartbeat', { heartbeat: sign }), refusedWith('PROOF_INVALID'));
    }
    const again = plane.machine({ ...paired, key: next }, undefined, other.state);
    await again.open();
    await assert.rejects(again.prove(), refusedWith('PROOF_INVALID'), 'a retired key starts no session');
  });
});

/** Another value of the same kind. */
function otherThan(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') return value.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  return randomBytes(32);
}
