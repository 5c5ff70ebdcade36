import assert from 'node:assert/strict';
import type { AgentId, ExecutorId } from '../../../helpers/protocol/ids.ts';
import { operations } from '../../../helpers/protocol/operations.ts';
import { canonicalBytes } from '../../../helpers/protocol/descriptor.ts';
import { sha256 } from '../../../helpers/protocol/signed.ts';
import { resolve } from '../../../server/availability/store.ts';
import { differencesOf } from '../../../server/descriptors/rules.ts';
import { submitDescriptor } from '../../../server/descriptors/submit.ts';
import { machineDescriptor, machineKey } from '../../fakes/fake-machine.ts';
import {
  confirmQuickly,
  confirmWaiting,
  pairThroughRoutes,
  proveOnline,
  startGovernance,
  submit,
} from '../governance.ts';
import type { Governance, PairingMachine } from '../governance.ts';

const keys = operations.map(({ key }) => key);
const without = (...missing: string[]) => keys.filter((key) => !missing.includes(key));

describe('descriptor review', () => {
  let plane: Governance;
  let executor: ExecutorId;
  let machine: PairingMachine;
  let agent: AgentId;

  beforeEach(async () => {
    plane = await startGovernance();
    ({ executor, machine } = await pairThroughRoutes(plane, plane.owner, { scope: 'organization' }));
    await proveOnline(plane, executor);
    await confirmQuickly(plane, executor);
    agent = (await plane.owner.post('/api/page/agents', { name: 'a' })).body.agent;
    await plane.owner.put(`/api/page/executors/${executor}/agents/${agent}`, { access: 'on' });
    await proveOnline(plane, executor);
  });
  afterEach(() => plane.stop());

  const available = async (operation: string) => {
    const { person, project } = plane.account;
    const answer = await resolve(plane.context, plane.context.store.read, {
      person,
      agent,
      operation,
      origin: { project },
      executor,
    });
    return answer.available ? 'available' : answer.reason;
  };
  const refused = async (descriptor: object, statement: object = {}, key = machine.key) => {
    const bytes = canonicalBytes(descriptor);
    const fields = { executor, revision: 2, descriptorDigest: sha256(bytes), ...statement };
    const signed = machine.sign('machine.descriptor', fields, key);
    return submitDescriptor(plane.context, executor, { descriptor: bytes, signed }).then(
      () => 'taken',
      (error: { code: string; message: string }) => `${error.code} ${error.message}`,
    );
  };
  const matrix = () => Promise.all(keys.map(available));

  it('N-080 revisions only go forward: lower, same with other bytes, same with the same bytes', async () => {
    await submit(plane, executor, machine, machineDescriptor({ revision: 3 }));
    await assert.rejects(submit(plane, executor, machine, machineDescriptor({ revision: 2 })), {
      code: 'DESCRIPTOR_ROLLBACK',
    });
    await assert.rejects(submit(plane, executor, machine, machineDescriptor({ revision: 3, rootName: 'x' })), {
      code: 'REVISION_CONFLICT',
    });
    assert.equal(await submit(plane, executor, machine, machineDescriptor({ revision: 3 })), 'pending');
    assert.equal((await plane.context.store.read.selectFrom('descriptors').selectAll().execute()).length, 2);
  });

  it('N-082 submitting a descriptor creates no authority: no answer of the resolver changes to available', async () => {
    const { project, person } = plane.account;
    const stranger = (await plane.owner.post('/api/page/agents', { name: 'b' })).body.agent;
    await submit(plane, executor, machine, machineDescriptor({ revision: 2 }));
    for (const operation of keys) {
      const question = { person, agent: stranger, operation, origin: { project }, executor };
      assert.equal((await resolve(plane.context, plane.context.store.read, question)).available, false, operation);
    }
  });

  it('N-083 a new revision is never active on arrival', async () => {
    const before = await matrix();
    const wider = machineDescriptor({
      revision: 2,
      limits: { resultBytes: 400_000, runtimeMs: 300_000, concurrentCommands: 64 },
    });
    assert.equal(await submit(plane, executor, machine, wider), 'pending');
    assert.deepEqual(await matrix(), before);
    const { body } = await plane.owner.get(`/api/page/executors/${executor}/descriptor`);
    assert.equal(body.confirmed.revision, 1);
    assert.equal(body.pending.revision, 2);
  });

  it('N-084 an entitled person sees each changed fact and confirms the latest; others and older ones are refused', async () => {
    const guest = await plane.invite('guest');
    await submit(
      plane,
      executor,
      machine,
      machineDescriptor({ revision: 2, rootName: 'second', promotion: 'machine', operations: without('file.chmod') }),
    );
    const { pending } = (await plane.owner.get(`/api/page/executors/${executor}/descriptor`)).body;
    assert.deepEqual(pending.differences, [
      { fact: 'operations', before: 'file.chmod', after: null },
      { fact: 'promotion', before: 'page', after: 'machine' },
      { fact: 'revision', before: '1', after: '2' },
      { fact: 'rootName', before: 'project', after: 'second' },
    ]);
    assert.deepEqual(pending.operations, { added: [], removed: ['file.chmod'] });
    const path = `/api/page/executors/${executor}/descriptor`;
    const wish = { revision: 2, digest: pending.digest, answer: 'confirm', password: 'four unrelated words' };
    assert.equal((await guest.post(path, wish)).body.code, 'NOT_ADMINISTRATOR');
    await submit(plane, executor, machine, machineDescriptor({ revision: 3 }));
    assert.equal((await plane.owner.post(path, wish)).body.code, 'REVISION_SUPERSEDED');
    assert.equal((await plane.owner.post(path, { ...wish, revision: 3 })).body.code, 'DESCRIPTOR_CHANGED');
    assert.equal((await plane.owner.post(path, { ...wish, revision: 4 })).body.code, 'REVISION_ABSENT');
    assert.equal((await confirmWaiting(plane.owner, executor)).status, 200);
  });

  it('activating a revision needs the current password: none, wrong, right', async () => {
    await submit(plane, executor, machine, machineDescriptor({ revision: 2 }));
    const path = `/api/page/executors/${executor}/descriptor`;
    const { revision, digest } = (await plane.owner.get(path)).body.pending;
    assert.equal((await plane.owner.post(path, { revision, digest, answer: 'confirm' })).body.code, 'REQUEST_INVALID');
    assert.equal((await confirmWaiting(plane.owner, executor, 'not the password')).body.code, 'PASSWORD_WRONG');
    assert.equal((await plane.owner.get(path)).body.confirmed.revision, 1);
    assert.equal((await confirmWaiting(plane.owner, executor)).status, 200);
    assert.equal((await plane.owner.get(path)).body.confirmed.revision, 2);
  });

  it('refusing needs no password, and a refused revision never comes into force', async () => {
    await submit(plane, executor, machine, machineDescriptor({ revision: 2, rootName: 'x' }));
    const path = `/api/page/executors/${executor}/descriptor`;
    const { revision, digest } = (await plane.owner.get(path)).body.pending;
    assert.equal((await plane.owner.post(path, { revision, digest, answer: 'refuse' })).status, 200);
    assert.equal((await plane.owner.get(path)).body.pending, null);
    assert.equal(
      (await plane.owner.post(path, { revision, digest, answer: 'confirm', password: 'four unrelated words' })).body
        .code,
      'STATE_TRANSITION_INVALID',
    );
    assert.equal((await plane.owner.get(path)).body.confirmed.revision, 1);
  });

  it('N-085 a newly announced operation starts denied, also one that comes back', async () => {
    await submit(plane, executor, machine, machineDescriptor({ revision: 2, operations: without('file.write') }));
    await confirmQuickly(plane, executor);
    await submit(plane, executor, machine, machineDescriptor({ revision: 3 }));
    await confirmQuickly(plane, executor);
    await proveOnline(plane, executor);
    assert.equal(await available('file.write'), 'operation_ungranted');
    assert.equal(await available('file.read'), 'available');
  });

  it('S-225 a lower revision and other content under a known one are refused; a newer one waits, and what it adds is denied until it is confirmed and granted', async () => {
    await submit(plane, executor, machine, machineDescriptor({ revision: 3, operations: without('file.write') }));
    await confirmQuickly(plane, executor);
    await proveOnline(plane, executor);
    const before = await matrix();
    assert.notEqual(await available('file.write'), 'available');
    const lower = submit(plane, executor, machine, machineDescriptor({ revision: 2 }));
    await assert.rejects(lower, { code: 'DESCRIPTOR_ROLLBACK' });
    const other = submit(plane, executor, machine, machineDescriptor({ revision: 3 }));
    await assert.rejects(other, { code: 'REVISION_CONFLICT' });
    assert.equal(await submit(plane, executor, machine, machineDescriptor({ revision: 4 })), 'pending');
    assert.deepEqual(await matrix(), before, 'nothing became available by arriving');
    assert.equal((await confirmWaiting(plane.owner, executor)).status, 200);
    await proveOnline(plane, executor);
    assert.equal(await available('file.write'), 'operation_ungranted');
  });

  it('N-088 what the machine no longer permits is refused at once under the older descriptor', async () => {
    await submit(plane, executor, machine, machineDescriptor({ revision: 2, operations: without('file.write') }));
    assert.equal(await available('file.write'), 'local_policy_denied');
    assert.equal(await available('file.read'), 'available');
    const path = `/api/page/executors/${executor}/descriptor`;
    const { revision, digest } = (await plane.owner.get(path)).body.pending;
    await plane.owner.post(path, { revision, digest, answer: 'refuse' });
    assert.equal(await available('file.write'), 'local_policy_denied');
    await submit(plane, executor, machine, machineDescriptor({ revision: 3 }));
    assert.equal(await available('file.write'), 'available');
  });

  it('a descriptor of another key, executor, shape or protocol version is refused and names both versions', async () => {
    const good = machineDescriptor({ revision: 2 });
    assert.match(await refused(good, {}, machineKey()), /^DESCRIPTOR_INVALID/);
    assert.match(await refused(good, { executor: `exr_${'0'.repeat(32)}` }), /^DESCRIPTOR_INVALID/);
    assert.match(await refused(good, { revision: 3 }), /^DESCRIPTOR_INVALID/);
    assert.match(await refused(good, { descriptorDigest: Buffer.alloc(32) }), /^DESCRIPTOR_INVALID/);
    assert.match(await refused({ ...good, hostPath: '/home/ness' }), /^DESCRIPTOR_INVALID/);
    assert.match(
      await refused({ ...good, protocolVersion: 2 }),
      /speaks protocol version 2, this control plane version 1/,
    );
    assert.equal(await refused(good), 'taken');
  });

  it('differences name every fact once, lists entry by entry', () => {
    const before = machineDescriptor();
    assert.deepEqual(differencesOf(before, before), []);
    const first = differencesOf(undefined, before);
    assert.ok(first.every((difference) => difference.before === null));
    assert.equal(first.filter(({ fact }) => fact === 'operations').length, keys.length);
    assert.deepEqual(differencesOf(before, machineDescriptor({ limits: { ...before.limits, runtimeMs: 60_000 } })), [
      { fact: 'limits.runtimeMs', before: '30000', after: '60000' },
    ]);
  });
});
