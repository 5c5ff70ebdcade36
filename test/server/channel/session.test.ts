import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { canonicalBytes } from '../../../helpers/protocol/descriptor.ts';
import { sha256, signPayload } from '../../../helpers/protocol/signed.ts';
import type { Signed } from '../../../helpers/protocol/signed.ts';
import { machineStatements } from '../../../helpers/protocol/statements.ts';
import type { MachineStatementType } from '../../../helpers/protocol/statements.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import { findExecutor } from '../../../server/executors/store.ts';
import { freshState } from '../../fakes/fake-executor.ts';
import type { FakeState } from '../../fakes/fake-executor.ts';
import { machineKey } from '../../fakes/fake-machine.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';

const copyOf = (state: FakeState): FakeState => ({ guard: state.guard, heads: [...state.heads] });

describe('session of a machine', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
  });
  afterEach(() => plane.stop());

  const standing = async () => {
    const row = await findExecutor(plane.context.store.read, paired.executor);
    assert.ok(row);
    return row;
  };

  describe('N-059 a connection is claimed by a fresh challenge', () => {
    it('a proof over a fresh challenge raises the epoch and makes the executor online', async () => {
      const before = await standing();
      const machine = plane.machine(paired);
      await machine.open();
      const session = await machine.prove();
      assert.equal(session.verdict, 'online');
      assert.equal(session.epoch, before.epoch + 1);
      const { state, epoch } = await standing();
      assert.deepEqual({ state, epoch }, { state: 'online', epoch: before.epoch + 1 });
    });

    it('a challenge serves once, within a minute', async () => {
      const first = plane.machine(paired);
      await first.open();
      const once = await first.ask('session.challenge', { executor: paired.executor });
      const claim = () =>
        first.sign('machine.session', {
          at: plane.clock.now(),
          executor: paired.executor,
          challenge: once.challenge,
          nonce: randomBytes(32),
          ...first.ledger,
          capabilityRevision: 1,
          repaired: false,
          acknowledgedCount: 0,
          acknowledgedHead: Buffer.alloc(32),
        });
      await first.ask('session.prove', { proof: claim() });
      const { epoch } = await standing();
      const second = plane.machine(paired, undefined, first.state);
      await second.open();
      await second.ask('session.challenge', { executor: paired.executor });
      await assert.rejects(second.ask('session.prove', { proof: claim() }), refusedWith('PROOF_INVALID'));
      assert.equal((await standing()).epoch, epoch, 'a challenge that was used claims nothing');
      const late = plane.machine(paired);
      await late.open();
      const { challenge, acknowledgedCount } = await late.ask('session.challenge', { executor: paired.executor });
      plane.clock.offsetMs += 61_000;
      const fields = {
        at: plane.clock.now(),
        executor: paired.executor,
        challenge,
        nonce: randomBytes(32),
        ...late.ledger,
        capabilityRevision: 1,
        repaired: false,
        acknowledgedCount,
        acknowledgedHead: Buffer.alloc(32),
      };
      await assert.rejects(
        late.ask('session.prove', { proof: late.sign('machine.session', fields) }),
        refusedWith('CHALLENGE_EXPIRED'),
      );
      const bare = plane.machine(paired);
      await bare.open();
      await assert.rejects(
        bare.ask('session.prove', { proof: bare.sign('machine.session', fields) }),
        refusedWith('CHALLENGE_EXPIRED'),
      );
    });

    it('of two daemons the first is fenced at once, and its next question is refused', async () => {
      const state = freshState();
      const first = plane.machine(paired, undefined, state);
      await first.open();
      await first.prove();
      assert.equal((await first.askControl()).standing, 'accepting');
      const held = first.askControl();
      held.catch(() => undefined);
      const second = plane.machine(paired, undefined, copyOf(state));
      second.state.guard += 1000;
      await second.open();
      assert.equal((await second.prove()).verdict, 'online');
      assert.equal((await held).standing, 'fenced');
      assert.equal(await first.closed, 1008);
    });
  });

  it('R7 a wrong key, a foreign challenge and an unknown name are refused alike, and the connection ends', async () => {
    const wrongKey = plane.machine({ ...paired, key: machineKey() });
    await wrongKey.open();
    await assert.rejects(wrongKey.prove(), refusedWith('PROOF_INVALID'));
    assert.equal(await wrongKey.closed, 1008);
    const foreign = plane.machine(paired);
    await foreign.open();
    await assert.rejects(foreign.prove({ challenge: randomBytes(32) }), refusedWith('PROOF_INVALID'));
    const unknown = plane.machine({ ...paired, executor: `exr_${'0'.repeat(32)}` as never });
    await unknown.open();
    await assert.rejects(unknown.prove(), refusedWith('PROOF_INVALID'));
    assert.equal((await standing()).state, 'pending_pairing');
  });

  describe('N-058 what a machine signs', () => {
    it('a signature of one purpose is refused for every other', async () => {
      const types = Object.keys(machineStatements) as MachineStatementType[];
      const resigned = (signed: Signed, type: MachineStatementType): Signed =>
        signPayload(paired.key.privateKey, type, signed.payload);
      const live = plane.machine(paired);
      await live.connect();
      const { executor } = paired;
      const at = Date.now();
      const heartbeat = live.sign('machine.heartbeat', { at, executor, epoch: live.epoch, ...live.ledger });
      const bytes = canonicalBytes({ ...paired.descriptor, revision: 2 });
      const stated = live.sign('machine.descriptor', { at, executor, revision: 2, descriptorDigest: sha256(bytes) });
      for (const type of types) {
        if (type !== 'machine.heartbeat')
          await assert.rejects(
            live.ask('heartbeat', { heartbeat: resigned(heartbeat, type) }),
            refusedWith('PROOF_INVALID'),
            type,
          );
        if (type !== 'machine.descriptor')
          await assert.rejects(live.ask('descriptor', { descriptor: bytes, signed: resigned(stated, type) }), type);
      }
      assert.ok((await live.ask('heartbeat', { heartbeat })).at > 0, 'signed for its own purpose it counts');
      assert.deepEqual(await live.ask('descriptor', { descriptor: bytes, signed: stated }), { state: 'pending' });
      for (const type of types.filter((name) => name !== 'machine.session')) {
        const machine = plane.machine(paired, undefined, live.state);
        await machine.open();
        const { challenge, acknowledgedCount } = await machine.ask('session.challenge', { executor });
        const proof = machine.sign('machine.session', {
          at: Date.now(),
          executor,
          challenge,
          nonce: randomBytes(32),
          ...machine.ledger,
          capabilityRevision: 1,
          repaired: false,
          acknowledgedCount,
          acknowledgedHead: Buffer.alloc(32),
        });
        const foreign = resigned(proof, type);
        await assert.rejects(machine.ask('session.prove', { proof: foreign }), refusedWith('PROOF_INVALID'), type);
        assert.equal(await machine.closed, 1008, type);
      }
    });

    it('signed time may differ by 60 s and not by 61', async () => {
      let guard = 0;
      for (const [seconds, refused] of [
        [59, false],
        [-59, false],
        [61, true],
        [-61, true],
      ] as const) {
        guard += 100;
        const machine = plane.machine(paired, undefined, { guard, heads: [Buffer.alloc(32)] });
        await machine.open();
        const proved = machine.prove({ at: Date.now() + seconds * 1000 });
        if (refused) await assert.rejects(proved, refusedWith('CLOCK_SKEW'));
        else assert.equal((await proved).verdict, 'online');
      }
    });
  });

  it('an old copy of the state is told by its ledger, and both sides say so', async () => {
    const state = freshState();
    const machine = plane.machine(paired, undefined, state);
    await machine.open();
    await machine.prove();
    const copy = copyOf(state);
    machine.record(
      'machine.heartbeat',
      machine.sign('machine.heartbeat', {
        at: Date.now(),
        executor: paired.executor,
        epoch: machine.epoch,
        ...machine.ledger,
      }),
    );
    await machine.heartbeat();
    await machine.close();
    copy.guard += 5000;
    const old = plane.machine(paired, undefined, copy);
    await old.open();
    assert.equal((await old.prove()).verdict, 'ledger-behind');
    assert.equal(await old.closed, 1008);
    const row = await standing();
    assert.deepEqual([row.state, row.fault], ['error', 'state-copied']);
  });

  it('a clone whose ledger forked, or whose key counted backwards, is told', async () => {
    const state = freshState();
    const machine = plane.machine(paired, undefined, state);
    await machine.open();
    await machine.prove();
    machine.record(
      'machine.heartbeat',
      machine.sign('machine.heartbeat', {
        at: Date.now(),
        executor: paired.executor,
        epoch: machine.epoch,
        ...machine.ledger,
      }),
    );
    await machine.heartbeat();
    await machine.close();
    const forked = copyOf(state);
    forked.guard += 10;
    forked.heads[1] = randomBytes(32);
    const fork = plane.machine(paired, undefined, forked);
    await fork.open();
    assert.equal((await fork.prove()).verdict, 'ledger-forked');
    const other = await plane.pair();
    const first = plane.machine(other);
    await first.open();
    await first.prove();
    await first.close();
    const backwards = plane.machine(other, undefined, freshState());
    await backwards.open();
    assert.equal((await backwards.prove()).verdict, 'ledger-forked');
  });

  it('a clone is not let in by a challenge from before the newest record of the original was known', async () => {
    const state = freshState();
    const machine = plane.machine(paired, undefined, state);
    await machine.connect();
    const forked = copyOf(state);
    forked.guard += 10;
    forked.heads.push(randomBytes(32), randomBytes(32));
    const fork = plane.machine(paired, undefined, forked);
    await fork.open();
    const more = async (): Promise<void> => {
      const fields = { at: Date.now(), executor: paired.executor, epoch: machine.epoch, ...machine.ledger };
      machine.record('machine.heartbeat', machine.sign('machine.heartbeat', fields));
      await machine.heartbeat();
    };
    await assert.rejects(fork.prove({}, more), refusedWith('CHALLENGE_EXPIRED'));
    const again = plane.machine(paired, undefined, forked);
    await again.open();
    assert.equal((await again.prove()).verdict, 'ledger-forked');
  });

  it('an executor in error is told so by a signed verdict, gets no session, and one repair leads back', async () => {
    const state = freshState();
    const machine = plane.machine(paired, undefined, state);
    await machine.connect();
    const damage = () =>
      changeExecutor(plane.context, paired.executor, { type: 'executor.damaged', fault: 'ledger-damaged' });
    await damage();
    const { epoch } = await standing();
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const again = plane.machine(paired, undefined, state);
      const session = await again.connect();
      assert.deepEqual([session.verdict, session.epoch], ['in-error', epoch]);
      assert.equal(await again.closed, 1008);
    }
    assert.deepEqual([(await standing()).state, (await standing()).epoch], ['error', epoch], 'asking changes nothing');
    const repaired = plane.machine(paired, undefined, state);
    await repaired.open();
    assert.equal((await repaired.prove({ repaired: true })).verdict, 'online');
    const row = await standing();
    assert.deepEqual([row.state, row.fault], ['online', null]);
    assert.equal((await repaired.heartbeat()).at > 0, true);
    await damage();
    assert.equal((await plane.machine(paired, undefined, state).connect()).verdict, 'in-error');
  });

  it('the original of a detected clone is told so, and a repair leads the original back and not the clone', async () => {
    const state = freshState();
    const original = plane.machine(paired, undefined, state);
    await original.connect();
    const clone = copyOf(state);
    const fields = { at: Date.now(), executor: paired.executor, epoch: original.epoch, ...original.ledger };
    original.record('machine.heartbeat', original.sign('machine.heartbeat', fields));
    await original.heartbeat();
    const proves = async (of: FakeState, repaired = false) => {
      const machine = plane.machine(paired, undefined, of);
      await machine.open();
      return (await machine.prove({ repaired })).verdict;
    };
    assert.equal(await proves(clone), 'ledger-behind');
    assert.equal(await proves(state), 'in-error');
    assert.equal(await proves(clone, true), 'ledger-behind');
    assert.equal(await proves(state, true), 'online');
    assert.equal(await proves(clone, true), 'ledger-behind');
    assert.equal(await proves(state), 'in-error');
  });

  it('a revoked executor is told by a signed verdict and gets no session', async () => {
    const state = freshState();
    const machine = plane.machine(paired, undefined, state);
    await machine.online();
    await changeExecutor(plane.context, paired.executor, { type: 'executor.disconnect', by: 'administrator' });
    assert.equal(await machine.closed, 1008);
    const again = plane.machine(paired, undefined, state);
    await again.open();
    assert.equal((await again.prove()).verdict, 'revoked');
    assert.equal(await again.closed, 1008);
    assert.equal((await standing()).state, 'revoked');
  });

  it('a machine with a newer descriptor is asked for it, and it waits for review', async () => {
    const newer = { ...paired, descriptor: { ...paired.descriptor, revision: 2, daemonVersion: '0.2.0' } };
    const machine = plane.machine(newer);
    await machine.open();
    assert.equal((await machine.prove()).verdict, 'descriptor-needed');
    assert.deepEqual(await machine.announce(), { state: 'pending' });
    assert.equal((await standing()).confirmedRevision, 1);
    await assert.rejects(
      machine.announce({ ...paired.descriptor, daemonVersion: '0.3.0' }),
      refusedWith('DESCRIPTOR_ROLLBACK'),
    );
    await assert.rejects(
      machine.announce({ ...newer.descriptor, daemonVersion: '0.3.0' }),
      refusedWith('REVISION_CONFLICT'),
    );
    assert.deepEqual(await machine.announce(), { state: 'pending' });
  });

  it('N-209 heartbeats keep it online; an unsigned, foreign, old or repeated one does not count', async () => {
    const machine = plane.machine(paired);
    await machine.open();
    await machine.prove();
    const start = (await standing()).lastSeenAt;
    plane.clock.offsetMs += 30_000;
    const fields = { executor: paired.executor, epoch: machine.epoch, ...machine.ledger };
    const good = machine.sign('machine.heartbeat', { at: plane.clock.now(), ...fields });
    await machine.ask('heartbeat', { heartbeat: good });
    const after = (await standing()).lastSeenAt;
    assert.ok(after !== null && start !== null && after >= start + 30_000);
    plane.clock.offsetMs += 10_000;
    await assert.rejects(machine.ask('heartbeat', { heartbeat: good }), refusedWith('PROOF_INVALID'));
    const unsigned = { payload: good.payload, signature: randomBytes(64) };
    await assert.rejects(machine.ask('heartbeat', { heartbeat: unsigned }), refusedWith('PROOF_INVALID'));
    const old = machine.sign('machine.heartbeat', { at: plane.clock.now() - 61_000, ...fields });
    await assert.rejects(machine.ask('heartbeat', { heartbeat: old }), refusedWith('CLOCK_SKEW'));
    const foreign = machine.sign('machine.heartbeat', { at: plane.clock.now(), ...fields, epoch: machine.epoch - 1 });
    await assert.rejects(machine.ask('heartbeat', { heartbeat: foreign }), refusedWith('CONNECTION_FENCED'));
    assert.equal((await standing()).lastSeenAt, after);
  });

  it('after sixty seconds of silence it is durably offline; a goodbye says so at once', async () => {
    const machine = plane.machine(paired);
    await machine.open();
    await machine.prove();
    plane.clock.offsetMs += 59_000;
    await plane.work.sweep();
    assert.equal((await standing()).state, 'online');
    plane.clock.offsetMs += 2000;
    await plane.work.sweep();
    assert.equal((await standing()).state, 'offline');
    plane.clock.offsetMs = 0;
    const again = plane.machine(paired, undefined, machine.state);
    await again.open();
    await again.prove();
    await again.close();
    await until('offline after a goodbye', async () => (await standing()).state === 'offline');
  });
});
