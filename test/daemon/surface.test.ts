/*
 * The whole surface of a machine, seen from the wire: what a frame can reach on a real executor and on a real control plane, and
 * how large an answer can become.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { defaultPolicy } from '../../daemon/config.ts';
import { writePolicy } from '../../daemon/cli/set-up.ts';
import { encode } from '../../helpers/protocol/codec.ts';
import { runIdSchema } from '../../helpers/protocol/ids.ts';
import { findOperation, operations, unimplementedOperations } from '../../helpers/protocol/operations.ts';
import type { OperationKey } from '../../helpers/protocol/operations.ts';
import { registry } from '../../helpers/protocol/registry.ts';
import { checkSettings } from '../../server/config.ts';
import { submitDescriptor } from '../../server/descriptors/submit.ts';
import { grantOperation } from '../../server/grants/access.ts';
import { bindForPerson, resolveBundle } from '../../server/runs/bind.ts';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import { freshState } from '../fakes/fake-executor.ts';
import { machineDescriptor } from '../fakes/fake-machine.ts';
import { childrenOf } from '../faults/processes.ts';
import { pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';
import { signDescriptor, startControlPlane } from '../server/control-plane.ts';
import type { ControlPlane, PairedMachine } from '../server/control-plane.ts';
import { refusedWith } from '../server/refused-with.ts';
import { bareRun } from '../server/work-run.ts';

const MIB = 1_048_576;
const anotherRun = () => runIdSchema.parse(`run_${randomBytes(16).toString('hex')}`);
const unknown = ['OPERATION_UNKNOWN', 'OPERATION_NOT_IMPLEMENTED'];

/** Every name that anything here goes by and that is no operation, and those that every object has. */
const otherNames: readonly string[] = [
  ...new Set([
    ...unimplementedOperations,
    ...Object.keys(registry),
    ...operations.flatMap(({ key }) => [key.toUpperCase(), `${key} `, key.replace('.', '_'), `${key}.`]),
    'toString',
    'constructor',
    '__proto__',
    'hasOwnProperty',
    'debug',
    'eval',
    'shell',
    '*',
    '.',
    '\0',
    'file',
  ]),
].filter((name) => findOperation(name) === undefined && name.length <= 64);

describe('the surface of a machine', function () {
  this.timeout(120_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let end: () => Promise<void>;
  let server: ControlPlane;
  let paired: PairedMachine;
  const state = freshState();

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
    server = await startControlPlane();
    paired = await server.pair();
  });
  after(async () => {
    await end();
    await server.stop();
  });
  afterEach(async () => {
    plane.beHonest();
    await executor.is('online');
  });

  const supervisor = (): number => {
    const status = fs.readFileSync(`/proc/${executor.pidOf('daemon')}/status`, 'utf8');
    return Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
  };
  const tree = (): number[] => [supervisor(), ...childrenOf(supervisor()).map(({ pid }) => pid)];

  it('N-004 of all names that a frame can carry exactly the closed list reaches a handler, and every other one is refused on both sides', async () => {
    for (const { key, caller } of operations) {
      const wanted = { operation: key, run: anotherRun(), byPerson: caller === 'person' };
      const told = await plane.call(wanted);
      assert.ok(!unknown.includes(String(told.ending)), `${key}: ${told.ending}`);
      const other = await plane.call({ ...wanted, run: anotherRun(), byPerson: caller !== 'person' });
      if (caller === 'person') assert.equal(other.ending, 'OPERATION_CALLER_INVALID', key);
    }
    for (const operation of otherNames) {
      const told = await plane.call({ operation, run: anotherRun() });
      assert.ok(unknown.includes(String(told.ending)), `${operation}: ${told.ending}`);
      assert.deepEqual(
        told.frame.receipts.map(({ type }) => type),
        ['machine.refused'],
        operation,
      );
    }
    // What a control plane can say at all is an answer: every other kind of frame ends the connection.
    for (const kind of ['question', 'request', 'event', 'call', 'debug', 'answer ', '__proto__']) {
      const { epoch } = plane;
      plane.sendRaw(encode({ kind, id: 1, epoch, body: {}, type: 'workspace.operate' }));
      await until(`a new session after a frame of kind ${kind}`, () => plane.epoch > epoch || undefined);
      await executor.is('online');
    }
    const run = await bareRun(server);
    const machine = server.machine(paired, undefined, state);
    await machine.connect();
    const { handles } = await resolveBundle(server.work, run);
    const offered = operations.filter(({ caller }) => caller === 'agent').map(({ key }) => key);
    assert.deepEqual([...handles.keys()].toSorted(), offered.toSorted());
    for (const name of otherNames) {
      const granted = grantOperation(server.context, server.by, paired.executor, server.agent, name);
      await assert.rejects(granted, refusedWith('OPERATION_NOT_IMPLEMENTED'), name);
      await assert.rejects(bindForPerson(server.work, run, name as OperationKey), name);
    }
    machine.cut();
  });

  it('N-029 N-045 the four coding names without an implementation are refused as that in a grant, in a descriptor and in a command', async () => {
    for (const operation of ['coding.attach', 'coding.prompt', 'coding.interrupt', 'coding.close']) {
      const told = await plane.call({ operation, run: anotherRun() });
      assert.equal(told.ending, 'OPERATION_NOT_IMPLEMENTED');
      const byPerson = await plane.call({ operation, run: anotherRun(), byPerson: true });
      assert.equal(byPerson.ending, 'OPERATION_NOT_IMPLEMENTED');
      const granted = grantOperation(server.context, server.by, paired.executor, server.agent, operation);
      await assert.rejects(granted, refusedWith('OPERATION_NOT_IMPLEMENTED'));
      const stated = machineDescriptor({ revision: 2, operations: ['file.read', operation] });
      const submitted = signDescriptor({ ...paired, descriptor: stated });
      const taken = submitDescriptor(server.context, paired.executor, submitted);
      await assert.rejects(taken, refusedWith('OPERATION_NOT_IMPLEMENTED'));
    }
    const kept = await server.context.store.read.selectFrom('descriptors').select('revision').execute();
    assert.deepEqual(kept, [{ revision: 1 }]);
  });

  it('N-005 an altered command runs nothing, and an operation over 100 MB answers within its limit and in bounded memory', async () => {
    const run = anotherRun();
    const write = () => plane.frame({ operation: 'file.write', arguments: { path: 'altered.txt', content: 'x' }, run });
    const flipped = (bytes: Uint8Array): Uint8Array => {
      const other = Uint8Array.from(bytes);
      other[other.length >> 1] = (other[other.length >> 1] ?? 0) ^ 1;
      return other;
    };
    for (const alter of [
      (frame: ReturnType<typeof write>) => ({ ...frame, arguments: flipped(frame.arguments) }),
      (frame: ReturnType<typeof write>) => ({ ...frame, content: Buffer.from('more') }),
    ]) {
      const before = plane.told.length;
      plane.deliver(alter(write()));
      const told = await until('its refusal', () => plane.told[before]);
      assert.match(String(told.ending), /_DIGEST_INVALID$/);
    }
    for (const part of ['payload', 'signature'] as const) {
      for (const statement of ['envelope', 'leased'] as const) {
        const { epoch } = plane;
        const before = plane.told.length;
        const frame = write();
        plane.deliver({ ...frame, [statement]: { ...frame[statement], [part]: flipped(frame[statement][part]) } });
        await until('an end of the connection or a refusal', () => {
          return plane.epoch > epoch || plane.told.length > before || undefined;
        });
        await executor.is('online');
      }
    }
    const listed = await plane.call({ operation: 'file.list', run });
    assert.ok(!JSON.stringify(listed.result).includes('altered'), 'nothing of it ran');

    fs.writeFileSync(path.join(executor.root, 'large.txt'), Buffer.alloc(100 * MIB, 'a needle in each line of it\n'));
    for (let folder = 0; folder < 20; folder += 1)
      fs.writeFileSync(path.join(executor.root, `part${folder}.txt`), Buffer.alloc(MIB, `needle ${'x'.repeat(300)}\n`));
    const peak = (pid: number): number =>
      Number(/^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
    const before = new Map(tree().map((pid) => [pid, peak(pid)]));
    for (const wanted of [
      { operation: 'file.read', arguments: { path: 'large.txt', maxBytes: 262_144 } },
      { operation: 'file.stat', arguments: { path: 'large.txt' } },
      { operation: 'file.search', arguments: { query: 'needle', maxMatches: 200 } },
      { operation: 'file.append', arguments: { path: 'large.txt', content: 'more' } },
    ] as const) {
      const told = await plane.call({ ...wanted, run }, 30_000);
      assert.ok(told.ending === 'succeeded' || wanted.operation === 'file.append', wanted.operation);
      const limit = findOperation(wanted.operation)?.resultLimitBytes ?? 0;
      assert.ok((told.frame.result?.length ?? 0) <= limit, wanted.operation);
    }
    for (const [pid, megabytes] of before)
      assert.ok(peak(pid) - megabytes < 64, `process ${pid} grew by ${peak(pid) - megabytes} MiB`);
    for (const name of fs.readdirSync(executor.root)) fs.rmSync(path.join(executor.root, name));
  });

  it('N-110 work under a stale policy is refused: another revision than the confirmed one, or a key that the owner has closed', async () => {
    const revision = plane.confirmed.revision;
    for (const capabilityRevision of [revision + 1, revision - 1].filter((number) => number > 0)) {
      const told = await plane.call({ operation: 'file.list', run: anotherRun(), envelope: { capabilityRevision } });
      assert.equal(told.ending, 'DESCRIPTOR_STALE');
    }
    const stated = (await executor.status()).revision.stated;
    const policy = defaultPolicy();
    const write = async (operation: 'deny' | 'allow', above: number): Promise<void> => {
      const deny = operation === 'deny' ? ['file.search'] : [];
      writePolicy(executor.places, { ...policy, operations: { ...policy.operations, deny } });
      await until('a new revision', async () => (await executor.status()).revision.stated > above || undefined);
    };
    await write('deny', stated);
    const search = () => plane.call({ operation: 'file.search', arguments: { query: 'x' }, run: anotherRun() });
    assert.equal((await search()).ending, 'LOCAL_POLICY_DENIED');
    assert.equal((await plane.call({ operation: 'file.list', run: anotherRun() })).ending, 'succeeded');
    await until('the descriptor is here', () => (plane.descriptor?.revision ?? 0) > stated || undefined);
    plane.confirmDescriptor();
    await until('it is confirmed', async () => (await executor.status()).policy.state === 'in-force' || undefined);
    assert.equal((await search()).ending, 'LOCAL_POLICY_DENIED');
    const old = await plane.call({
      operation: 'file.list',
      run: anotherRun(),
      envelope: { capabilityRevision: stated },
    });
    assert.equal(old.ending, 'DESCRIPTOR_STALE');
    await write('allow', stated + 1);
    await until('the descriptor is here', () => (plane.descriptor?.revision ?? 0) > stated + 1 || undefined);
    plane.confirmDescriptor();
    await until('it is confirmed', async () => (await executor.status()).policy.state === 'in-force' || undefined);
    assert.equal((await search()).ending, 'succeeded');
  });

  it('N-020 no setting, variable or stored row adds an operation or gives one another name', async () => {
    const { store } = server.context;
    const machine = server.machine(paired, undefined, state);
    await machine.connect();
    const added = { operation: 'shell.run' };
    await store.write(async (tx) => {
      const { agent } = server;
      const made = { agent, createdAt: 1, createdBy: server.by.person };
      await tx
        .insertInto('grants')
        .values({ executor: paired.executor, ...made, ...added })
        .execute();
      await tx
        .insertInto('toolGrants')
        .values({ agent, grantedAt: 1, grantedBy: server.by.person, ...added })
        .execute();
      const { document } = await tx.selectFrom('descriptors').select('document').executeTakeFirstOrThrow();
      const more = document.replace('"file.list"', '"file.list","shell.run"');
      assert.notEqual(more, document);
      await tx.updateTable('descriptors').set({ document: more }).execute();
      await tx.updateTable('grants').set({ operation: 'file.peek' }).where('operation', '=', 'file.read').execute();
    });
    const { handles } = await resolveBundle(server.work, await bareRun(server));
    const without = operations.filter(({ key, caller }) => caller === 'agent' && key !== 'file.read');
    assert.deepEqual([...handles.keys()].toSorted(), without.map(({ key }) => key).toSorted());
    machine.cut();
    const settings = { listen: {}, publicOrigin: 'http://127.0.0.1:1', dataFolder: '/', operations: ['shell.run'] };
    assert.throws(() => checkSettings(settings));
    const policy = path.join(executor.places.configDir, 'policy.json');
    const good = fs.readFileSync(policy);
    const allow = { ...defaultPolicy(), operations: { allow: ['file.list', 'shell.run'], deny: [], why: '' } };
    fs.writeFileSync(policy, JSON.stringify(allow));
    await until('it is seen', async () => (await executor.status()).policy.state === 'invalid' || undefined);
    assert.notEqual((await plane.call({ operation: 'shell.run', run: anotherRun() })).ending, 'succeeded');
    fs.writeFileSync(policy, good);
    await until('it is valid again', async () => (await executor.status()).policy.state !== 'invalid' || undefined);
    const used = ['daemon', 'helpers', 'server', 'actors', 'machines'].flatMap((top) => [...variablesIn(top)]);
    assert.deepEqual([...new Set(used.filter((name) => /operation|tool|debug/i.test(name)))], []);
  });

  it('N-081 the descriptor holds facts of a closed shape and no host path', async () => {
    const text = JSON.stringify(plane.descriptor);
    assert.ok(plane.descriptor);
    for (const planted of [executor.base, executor.root, executor.places.stateDir, executor.places.configDir])
      assert.ok(!text.includes(planted), planted);
    assert.ok(!text.includes(path.basename(executor.base)), 'no folder above the root');
    assert.equal(plane.descriptor.rootName, 'root');
    const submit = (more: object) => {
      const descriptor = { ...machineDescriptor({ revision: 2 }), ...more };
      return submitDescriptor(server.context, paired.executor, signDescriptor({ ...paired, descriptor }));
    };
    const { platform, limits, sandbox } = machineDescriptor();
    for (const more of [
      { root: '/home/somebody' },
      { platform: { ...platform, host: 'name' } },
      { limits: { ...limits, path: '/' } },
      { sandbox: { ...sandbox, device: '/dev/kvm' } },
    ])
      await assert.rejects(submit(more), refusedWith('DESCRIPTOR_INVALID'), Object.keys(more).join());
    assert.deepEqual(await submit({}), { state: 'pending' });
  });
});

/** Names of the environment that sources below a folder read. */
function* variablesIn(top: string): Generator<string> {
  const folder = path.resolve(import.meta.dirname, '..', '..', top);
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
    const text = fs.readFileSync(path.join(entry.parentPath, entry.name), 'utf8');
    for (const [, name] of text.matchAll(/\benv(?:ironment)?\['([A-Z_]+)'\]/g)) if (name !== undefined) yield name;
  }
}
