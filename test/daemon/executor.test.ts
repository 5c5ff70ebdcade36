import assert from 'node:assert/strict';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { commandIdSchema, executorIdSchema, runIdSchema } from '../../helpers/protocol/ids.ts';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { envelopeSchema } from '../../helpers/protocol/statements.ts';
import { defaultPolicy } from '../../daemon/config.ts';
import { writePolicy } from '../../daemon/cli/set-up.ts';
import { pairedExecutor, online } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import type { Wanted } from '../fakes/wanted.ts';

const hex = (prefix: string) => `${prefix}_${randomBytes(16).toString('hex')}`;
const anotherRun = () => runIdSchema.parse(hex('run'));

describe('a real executor', function () {
  this.timeout(60_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let end: () => Promise<void>;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
    fs.writeFileSync(path.join(executor.root, 'a.txt'), 'hello\n');
  });
  after(() => end());
  afterEach(async () => {
    plane.beHonest();
    await executor.is('online');
  });

  it('reads a file, writes a draft that this run sees, and leaves the tree alone', async () => {
    const read = await plane.call({ operation: 'file.read', arguments: { path: 'a.txt' } });
    assert.equal(read.ending, 'succeeded');
    assert.equal((read.result as { content: string }).content, 'hello\n');
    const written = await plane.call({ operation: 'file.write', arguments: { path: 'b.txt', content: 'draft' } });
    assert.equal(written.ending, 'succeeded');
    const seen = await plane.call({ operation: 'file.read', arguments: { path: 'b.txt' } });
    assert.equal((seen.result as { content: string }).content, 'draft');
    const other = await plane.call({ operation: 'file.read', arguments: { path: 'b.txt' }, run: anotherRun() });
    assert.equal(other.ending, 'failed');
    assert.deepEqual(fs.readdirSync(executor.root), ['a.txt']);
  });

  it('sends receipts as one chain: accepted after leased, started after accepted, result after started', async () => {
    const told = await plane.call({ operation: 'file.list' });
    assert.deepEqual(
      told.frame.receipts.map(({ type }) => type),
      ['machine.accepted', 'machine.started', 'machine.result'],
    );
  });

  const lies: readonly (readonly [string, Wanted['envelope'] & object, string])[] = [
    ['another executor', { executor: executorIdSchema.parse(hex('exr')) }, 'EXECUTOR_MISMATCH'],
    ['another epoch', { epoch: 999 }, 'EPOCH_STALE'],
    ['another revision', { capabilityRevision: 77 }, 'DESCRIPTOR_STALE'],
    ['another policy', { policyDigest: randomBytes(32) }, 'POLICY_STALE'],
    ['another catalogue', { catalogueDigest: randomBytes(32) }, 'CATALOGUE_MISMATCH'],
    ['a passed expiry', { expiresAt: 1 }, 'COMMAND_EXPIRED'],
    ['a time to come', { notBefore: Date.now() + 3_600_000 }, 'COMMAND_NOT_YET_VALID'],
    ['other arguments than it digests', { argumentsDigest: randomBytes(32) }, 'COMMAND_DIGEST_INVALID'],
    ['an operation that does not exist', { operation: 'shell.run' }, 'OPERATION_UNKNOWN'],
  ];
  for (const [what, envelope, code] of lies) {
    it(`answers an envelope with ${what} by a signed refusal ${code} and runs nothing`, async () => {
      const before = await executor.status();
      const wanted = {
        operation: 'file.write',
        arguments: { path: 'lie.txt', content: 'x' },
        run: anotherRun(),
        envelope,
      };
      const told = await plane.call(wanted);
      assert.equal(told.ending, code);
      assert.deepEqual(
        told.frame.receipts.map(({ type }) => type),
        ['machine.refused'],
      );
      assert.equal((await executor.status()).state, before.state);
    });
  }

  it('ends the connection for an envelope that the pinned key did not sign, and comes back', async () => {
    const { epoch } = plane;
    const frame = plane.frame({ operation: 'file.list' });
    plane.deliver({ ...frame, envelope: { ...frame.envelope, signature: randomBytes(64) } });
    await until('a new session', () => plane.epoch > epoch || undefined);
  });

  it('N-106 ends the connection for a frame that nobody asked for, and runs nothing', async () => {
    const { epoch } = plane;
    const frame = plane.frame({ operation: 'file.write', arguments: { path: 'unasked.txt', content: 'x' } });
    plane.sendRaw(encode({ kind: 'answer', id: 999_999, epoch, body: { commands: [frame] } }));
    await until('a new session', () => plane.epoch > epoch || undefined);
    const listed = await plane.call({ operation: 'file.list' });
    assert.ok(!JSON.stringify(listed.result).includes('unasked'));
  });

  it('N-111 runs one command once, though its envelope comes a hundred times, over two connections and after a restart', async () => {
    fs.writeFileSync(path.join(executor.root, 'log.txt'), '');
    const run = anotherRun();
    const frame = plane.frame({ operation: 'file.append', arguments: { path: 'log.txt', content: 'line\n' }, run });
    for (let repeat = 0; repeat < 50; repeat += 1) plane.deliver(frame);
    const read = () => plane.call({ operation: 'file.read', arguments: { path: 'log.txt' }, run });
    const content = await until(
      'the effect',
      async () => ((await read()).result as { content?: string }).content || undefined,
    );
    assert.equal(content, 'line\n');
    const { epoch } = plane;
    plane.cut();
    await until('a second connection', () => (plane.isConnected && plane.epoch > epoch) || undefined);
    for (let repeat = 0; repeat < 50; repeat += 1) plane.deliver(frame);
    assert.equal(((await read()).result as { content?: string }).content, 'line\n');
    await executor.kill();
    await executor.start();
    await online(plane, executor);
    plane.deliver(frame);
    assert.equal(((await read()).result as { content?: string }).content, 'line\n');
  });

  it('runs one of two commands with one idempotency key, although they came in one delivery', async () => {
    fs.writeFileSync(path.join(executor.root, 'twice.txt'), '');
    const run = anotherRun();
    const wanted = (envelope: Wanted['envelope'] & object): Wanted => ({
      operation: 'file.append',
      arguments: { path: 'twice.txt', content: 'line\n' },
      run,
      envelope,
    });
    const idempotencyKey = hex('key');
    const frames = [plane.frame(wanted({ idempotencyKey })), plane.frame(wanted({ idempotencyKey }))];
    plane.deliver(...frames);
    const second = await until('the second is answered', () =>
      plane.told.find(
        ({ command, ending }) => command === commandOf(frames[1] ?? plane.frame(wanted({}))) && ending !== undefined,
      ),
    );
    assert.equal(second.ending, 'IDEMPOTENCY_CONFLICT');
    const read = await plane.call({ operation: 'file.read', arguments: { path: 'twice.txt' }, run });
    assert.equal((read.result as { content?: string }).content, 'line\n');
  });

  it('N-119 answers the refusal of its result once by a record of it, over restarts too, and is done then', async () => {
    const frame = plane.frame({ operation: 'file.list', run: anotherRun() });
    const lastType = () => plane.told.at(-1)?.frame.receipts.at(-1)?.type;
    plane.lie = (type, fields) => {
      if (type !== 'control.acknowledged' || lastType() !== 'machine.result') return fields;
      // What the machine says next is lost, and its process after it.
      plane.answering = false;
      return { ...fields, verdict: 'refused' };
    };
    plane.deliver(frame);
    const ofCommand = () => plane.told.filter(({ command }) => command === commandOf(frame));
    await until('its result was refused', () => !plane.answering || undefined);
    const ledger = path.join(executor.places.stateDir, 'daemon', 'ledger');
    await until('the record of it', () => readFiles(ledger).includes('RESULT_REFUSED') || undefined);
    for (let restart = 0; restart < 2; restart += 1) {
      await executor.kill();
      plane.beHonest();
      await executor.start();
      await online(plane, executor);
      await until('the record arrives', () => ofCommand().at(-1)?.ending === 'RESULT_REFUSED' || undefined);
      assert.equal((await plane.call({ operation: 'file.list', run: anotherRun() })).ending, 'succeeded');
    }
    const records = ofCommand().filter(({ ending }) => ending === 'RESULT_REFUSED');
    assert.equal(records.length, 1);
  });

  it('R54 does not start a command whose cancel came first', async () => {
    const frame = plane.frame({ operation: 'file.write', arguments: { path: 'never.txt', content: 'x' } });
    const accepted = commandOf(frame);
    plane.cancel = [accepted];
    plane.wake();
    await until(
      'the cancel was heard',
      () => plane.questions.filter((type) => type === 'control').length > 1 || undefined,
    );
    plane.deliver(frame);
    const told = await until('its ending', () => plane.told.find(({ command }) => command === accepted));
    assert.equal(told.ending, 'CANCELLED_BEFORE_START');
    const { run } = envelopeSchema.parse(decode(frame.envelope.payload));
    plane.cancel = [];
    const read = await plane.call({ operation: 'file.read', arguments: { path: 'never.txt' }, run });
    assert.equal(read.ending, 'failed', 'there is no such file in its draft');
  });

  it('denies at once what the owner takes away, and states a new revision for it', async () => {
    const stated = (await executor.status()).revision.stated;
    const policy = defaultPolicy();
    writePolicy(executor.places, { ...policy, operations: { ...policy.operations, deny: ['file.search'] } });
    await until('a new revision', async () => (await executor.status()).revision.stated > stated || undefined);
    const told = await plane.call({ operation: 'file.search', arguments: { query: 'x' }, run: anotherRun() });
    assert.equal(told.ending, 'LOCAL_POLICY_DENIED');
    const still = await plane.call({ operation: 'file.list', run: anotherRun() });
    assert.equal(still.ending, 'succeeded');
    writePolicy(executor.places, policy);
    await until('the policy is back', async () => (await executor.status()).revision.stated > stated + 1 || undefined);
    await until('the descriptor is here', () => (plane.descriptor?.revision ?? 0) > stated + 1 || undefined);
    plane.confirmDescriptor();
    await until('it is confirmed', async () => (await executor.status()).policy.state === 'in-force' || undefined);
  });

  it('permits nothing while policy.json is invalid, and says which key', async () => {
    const file = path.join(executor.places.configDir, 'policy.json');
    const good = fs.readFileSync(file);
    fs.writeFileSync(file, JSON.stringify({ ...defaultPolicy(), version: 9 }));
    const status = await until('it is seen', async () => {
      const { policy } = await executor.status();
      return policy.state === 'invalid' ? policy : undefined;
    });
    assert.match(status.message, /version/);
    const told = await plane.call({ operation: 'file.list', run: anotherRun() });
    assert.equal(told.ending, 'LOCAL_POLICY_DENIED');
    fs.writeFileSync(file, good);
    await until('it is valid again', async () => (await executor.status()).policy.state !== 'invalid' || undefined);
  });

  it('comes back by itself after the connection was cut, and delivers what it owes under the old chain', async () => {
    const frame = plane.frame({
      operation: 'file.write',
      arguments: { path: 'owed.txt', content: 'x', overwrite: true },
    });
    plane.deliver(frame);
    await until('it was told', () => plane.told.find(({ command }) => command === commandOf(frame)));
    const { epoch } = plane;
    plane.cut();
    await until('a new session', () => plane.epoch > epoch || undefined);
  });

  it('believes no control answer of another key and none for another question: it leaves the connection and starts nothing', async () => {
    const { epoch } = plane;
    plane.signingKey = generateKeyPairSync('ed25519').privateKey;
    await until(
      'the daemon leaves a connection whose answers another key signs',
      () => !plane.isConnected || plane.epoch > epoch || undefined,
    );
    const told = plane.told.length;
    plane.deliver(plane.frame({ operation: 'file.write', arguments: { path: 'forged.txt', content: 'x' } }));
    plane.beHonest();
    await until('a proved session', () => (plane.isConnected && plane.epoch > epoch) || undefined);
    assert.equal(plane.told.length, told);
    const second = plane.epoch;
    plane.lie = (type, fields) => (type === 'control.answer' ? { ...fields, nonce: randomBytes(32) } : fields);
    await until(
      'the daemon leaves a connection whose answers are for another question',
      () => !plane.isConnected || plane.epoch > second || undefined,
    );
  });

  it('goes to its error state when it is a copy of an older state, and says so', async () => {
    await executor.stop();
    const ledger = path.join(executor.places.stateDir, 'daemon');
    const copy = path.join(executor.base, 'copy');
    fs.cpSync(ledger, copy, { recursive: true, preserveTimestamps: true });
    await executor.start();
    await online(plane, executor);
    await plane.call({ operation: 'file.list' });
    await executor.stop();
    const owner = fs.statSync(ledger);
    fs.rmSync(ledger, { recursive: true });
    fs.cpSync(copy, ledger, { recursive: true });
    chownTree(ledger, owner.uid, owner.gid);
    fs.chmodSync(ledger, 0o700);
    await executor.start();
    const status = await executor.is('error').catch(async (e) => {
      console.log(executor.log, await executor.status());
      throw e;
    });
    assert.equal(status.fault, 'STATE_COPIED');
    fs.rmSync(ledger, { recursive: true });
    plane.acknowledged = { count: 0, head: new Uint8Array(32) };
    fs.cpSync(copy, ledger, { recursive: true });
    chownTree(ledger, owner.uid, owner.gid);
    await executor.kill();
    await executor.start();
    await online(plane, executor);
  });
});

function commandOf(frame: ReturnType<FakeControlPlane['frame']>) {
  return commandIdSchema.parse((decode(frame.envelope.payload) as { command: string }).command);
}

function readFiles(folder: string): string {
  return fs
    .readdirSync(folder)
    .map((name) => fs.readFileSync(path.join(folder, name), 'latin1'))
    .join('');
}

function chownTree(folder: string, uid: number, gid: number): void {
  fs.chownSync(folder, uid, gid);
  for (const entry of fs.readdirSync(folder, { recursive: true, withFileTypes: true })) {
    fs.lchownSync(path.join(entry.parentPath, entry.name), uid, gid);
  }
}
