import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import * as ed25519 from '@noble/ed25519';
import { writePolicy } from '../../daemon/cli/set-up.ts';
import { defaultPolicy } from '../../daemon/config.ts';
import { FENCE_JUMP_LIMIT } from '../../daemon/rules.ts';
import { Ledger } from '../../daemon/ledger/ledger.ts';
import { LedgerDamaged, readMark, readSegment } from '../../daemon/ledger/segment.ts';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { bindingIdSchema, executorIdSchema, runIdSchema } from '../../helpers/protocol/ids.ts';
import { operations, unimplementedOperations } from '../../helpers/protocol/operations.ts';
import { signedBytes } from '../../helpers/protocol/signed.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import { envelopeSchema } from '../../helpers/protocol/statements.ts';
import type { CommandEnvelope } from '../../helpers/protocol/statements.ts';
import type { CommandFrame } from '../../server/protocol.ts';
import { readLedger } from '../faults/records.ts';
import { online, pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import type { Wanted } from '../fakes/wanted.ts';

const hex = (prefix: string) => `${prefix}_${randomBytes(16).toString('hex')}`;
const newRun = () => runIdSchema.parse(hex('run'));
const envelopeOf = (frame: CommandFrame): CommandEnvelope => envelopeSchema.parse(decode(frame.envelope.payload));

describe('two gates: a control plane that signs what it likes, and a machine that decides', function () {
  this.timeout(60_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let end: () => Promise<void>;

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
    fs.writeFileSync(path.join(executor.root, 'counter.txt'), '');
  });
  after(() => end());
  afterEach(async () => {
    plane.beHonest();
    await executor.is('online');
  });

  /** A write whose text nobody else writes, so that it can be looked for. */
  const writing = (more: Partial<Wanted> = {}) => {
    const marker = randomBytes(12).toString('hex');
    const wanted: Wanted = {
      operation: 'file.write',
      arguments: { path: 'a.txt', content: marker },
      run: newRun(),
      ...more,
    };
    return { marker, wanted };
  };
  /** Whether a draft or the tree holds the text. */
  const happened = (marker: string): boolean =>
    [path.join(executor.places.stateDir, 'drafts'), executor.root].some((folder) =>
      fs
        .readdirSync(folder, { recursive: true, withFileTypes: true })
        .some((entry) => entry.isFile() && fs.readFileSync(path.join(entry.parentPath, entry.name)).includes(marker)),
    );
  const ledger = () => readLedger(executor.places.stateDir).memory;
  const phaseOf = (frame: CommandFrame) => ledger().commands.get(envelopeOf(frame).command)?.phase;
  const endingOf = (frame: CommandFrame): Promise<string> =>
    until('its ending', () => plane.told.findLast(({ command }) => command === envelopeOf(frame).command)?.ending);
  const appending = (run: ReturnType<typeof newRun>, line: string): Wanted => ({
    operation: 'file.append',
    arguments: { path: 'counter.txt', content: `${line}\n` },
    run,
  });
  const counterOf = async (run: ReturnType<typeof newRun>): Promise<unknown> =>
    (
      (await plane.call({ operation: 'file.read', arguments: { path: 'counter.txt' }, run })).result as {
        content: string;
      }
    ).content;

  it('R25 a command that is expired, early, for another run, machine, tool, argument or mode is refused under its own code, one without a proof ends the connection, and none runs', async () => {
    const known = writing();
    const tied = plane.frame(known.wanted);
    plane.deliver(tied);
    assert.equal(await endingOf(tied), 'succeeded');
    assert.ok(happened(known.marker));
    const { binding, fence } = envelopeOf(tied);
    const other = encode({ path: 'a.txt', content: 'other' });
    const lies: readonly (readonly [string, Partial<CommandEnvelope>, Partial<CommandFrame>])[] = [
      ['COMMAND_EXPIRED', { expiresAt: Date.now() - 1000 }, {}],
      ['COMMAND_NOT_YET_VALID', { notBefore: Date.now() + 3_600_000 }, {}],
      ['COMMAND_RUN_INVALID', { binding, fence }, {}],
      ['EXECUTOR_MISMATCH', { executor: executorIdSchema.parse(hex('exr')) }, {}],
      ['OPERATION_UNKNOWN', { operation: 'file.exec' }, {}],
      ['COMMAND_DIGEST_INVALID', {}, { arguments: other }],
      ['MODE_UNSUPPORTED', { mode: 'background' }, {}],
    ];
    for (const [code, envelope, sent] of lies) {
      const { marker, wanted } = writing({ envelope });
      const frame = { ...plane.frame(wanted), ...sent };
      plane.deliver(frame);
      assert.equal(await endingOf(frame), code);
      assert.ok(!happened(marker), code);
    }
    for (const nothing of [new Uint8Array(0), new Uint8Array(64)]) {
      const { marker, wanted } = writing();
      const frame = plane.frame(wanted);
      const { epoch } = plane;
      plane.deliver({ ...frame, envelope: { ...frame.envelope, signature: nothing } });
      await until('a new session', () => plane.epoch > epoch || undefined);
      assert.equal(phaseOf(frame), undefined);
      assert.ok(!happened(marker));
      await executor.is('online');
    }
  });

  it('R23 arguments and content that were changed after the verdict are refused, and nothing of either copy runs', async () => {
    for (const changed of ['arguments', 'content'] as const) {
      const { marker, wanted } = writing();
      const theirs = randomBytes(12).toString('hex');
      const bytes = changed === 'arguments' ? encode({ path: 'a.txt', content: theirs }) : Buffer.from(theirs);
      const frame = { ...plane.frame(wanted), [changed]: bytes };
      plane.deliver(frame);
      assert.equal(
        await endingOf(frame),
        changed === 'arguments' ? 'COMMAND_DIGEST_INVALID' : 'CONTENT_DIGEST_INVALID',
      );
      assert.deepEqual([happened(marker), happened(theirs)], [false, false]);
    }
  });

  it('R26 R52 S-192 one digest is consumed once: twenty copies at once, another valid signature, a new connection and a restart add nothing', async () => {
    const run = newRun();
    const line = randomBytes(8).toString('hex');
    const frame = plane.frame(appending(run, line));
    const second = { ...frame, envelope: signedAgain(frame.envelope, plane) };
    assert.notDeepEqual(second.envelope.signature, frame.envelope.signature);
    plane.deliver(...Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? frame : second)));
    assert.equal(await endingOf(frame), 'succeeded');
    plane.deliver(second);
    assert.equal(await counterOf(run), `${line}\n`);
    const { epoch } = plane;
    plane.cut();
    await until('a new session', () => plane.epoch > epoch || undefined);
    await executor.is('online');
    plane.deliver(frame, second);
    assert.equal(await counterOf(run), `${line}\n`);
    await executor.kill();
    await executor.start();
    await online(plane, executor);
    const { command, idempotencyKey } = envelopeOf(frame);
    const renewed = [{ command }, { idempotencyKey }].map((envelope) =>
      plane.frame({ ...appending(run, line), envelope }),
    );
    plane.deliver(frame, second, ...renewed);
    assert.equal(await endingOf(renewed[1] ?? frame), 'IDEMPOTENCY_CONFLICT');
    assert.equal(await counterOf(run), `${line}\n`);
  });

  it('the second signature of that test is one that the machine takes', async () => {
    const { marker, wanted } = writing();
    const frame = plane.frame(wanted);
    const again = { ...frame, envelope: signedAgain(frame.envelope, plane) };
    plane.deliver(again);
    assert.equal(await endingOf(frame), 'succeeded');
    assert.ok(happened(marker));
  });

  it('S-204 an idempotency key with other arguments is refused, and the refusal stands in the ledger under its own code', async () => {
    const first = writing();
    const idempotencyKey = hex('key');
    const wanted = { ...first.wanted, envelope: { idempotencyKey } };
    const frame = plane.frame(wanted);
    plane.deliver(frame);
    assert.equal(await endingOf(frame), 'succeeded');
    const { marker } = writing();
    const other = plane.frame({ ...wanted, arguments: { path: 'b.txt', content: marker } });
    plane.deliver(other);
    assert.equal(await endingOf(other), 'IDEMPOTENCY_CONFLICT');
    assert.ok(!happened(marker));
    assert.deepEqual(codesInLedger(executor).get(envelopeOf(other).command), 'IDEMPOTENCY_CONFLICT');
  });

  it('S-206 a fence that is lower, leaps, or has other content is refused, twice in a row too, and the same command again is answered alike', async () => {
    const { wanted } = writing();
    const first = plane.frame(wanted);
    plane.deliver(first);
    assert.equal(await endingOf(first), 'succeeded');
    const { fence, idempotencyKey } = envelopeOf(first);
    const leap = 2 ** 40;
    assert.ok(leap > FENCE_JUMP_LIMIT);
    const lies: readonly (readonly [string, Partial<CommandEnvelope>, Partial<Wanted>])[] = [
      ['FENCE_STALE', { fence: fence - 1 || fence + 1 }, {}],
      ['FENCE_STALE', { fence: leap }, { run: newRun() }],
      ['FENCE_STALE', { fence: leap }, { run: newRun() }],
      ['BINDING_INVALID', { fence, binding: bindingIdSchema.parse(hex('bnd')) }, {}],
      ['IDEMPOTENCY_CONFLICT', { fence, idempotencyKey }, {}],
    ];
    for (const [code, envelope, more] of lies) {
      const { marker, wanted: lying } = writing({ run: wanted.run ?? newRun(), ...more, envelope });
      const frame = plane.frame(lying);
      plane.deliver(frame);
      assert.equal(await endingOf(frame), code);
      assert.ok(!happened(marker));
    }
    const before = plane.told.filter(({ command }) => command === envelopeOf(first).command);
    plane.deliver(first);
    const next = plane.frame({ ...wanted, arguments: { path: 'next.txt', content: 'x' } });
    plane.deliver(next);
    assert.equal(await endingOf(next), 'succeeded');
    const after = plane.told.filter(({ command }) => command === envelopeOf(first).command);
    assert.ok(after.slice(before.length).every(({ ending }) => ending === 'succeeded'));
  });

  it('R32 no valid proof passes what the owner of the machine denies, operation by operation', async () => {
    const policy = defaultPolicy();
    const { revision } = await executor.status();
    writePolicy(executor.places, {
      ...policy,
      operations: { ...policy.operations, deny: operations.map(({ key }) => key) },
    });
    await until('it is seen', async () => (await executor.status()).revision.stated > revision.stated || undefined);
    for (const { key, caller } of operations) {
      const told = await plane.call({ operation: key, run: newRun(), byPerson: caller !== 'agent' });
      assert.equal(told.ending, 'LOCAL_POLICY_DENIED', key);
      assert.deepEqual(
        told.frame.receipts.map(({ type }) => type),
        ['machine.refused'],
        key,
      );
    }
    writePolicy(executor.places, policy);
    await until('it is back', async () => (await executor.status()).revision.stated > revision.stated + 1 || undefined);
    await until('it was told', () => (plane.descriptor?.revision ?? 0) > revision.stated + 1 || undefined);
    plane.confirmDescriptor();
    await until('it is confirmed', async () => (await executor.status()).policy.state === 'in-force' || undefined);
    assert.equal((await plane.call({ operation: 'file.list' })).ending, 'succeeded');
  });

  it('R34 a tool that the machine does not have is refused; nothing is fetched, asked for or run in its place', async () => {
    const asked = new Set<string>();
    const { length } = plane.questions;
    const calls = plane.calls.length;
    for (const operation of [...unimplementedOperations, 'shell.run', 'file.reads', 'toString']) {
      const { marker, wanted } = writing({ operation });
      const told = await plane.call(wanted);
      assert.match(told.ending ?? '', /^OPERATION_(UNKNOWN|NOT_IMPLEMENTED)$/, operation);
      assert.ok(!happened(marker), operation);
    }
    for (const question of plane.questions.slice(length)) asked.add(question);
    assert.deepEqual(
      [...asked].filter((type) => !['work', 'control', 'receipts', 'heartbeat'].includes(type)),
      [],
    );
    assert.equal(plane.calls.length, calls, 'link asked for nothing beside the channel');
  });

  it('R51 a receipt leaves the machine only once it stands in the ledger: acceptance before the start, the start before the result', async () => {
    const arrived: string[] = [];
    const unrecorded: string[] = [];
    plane.heard = ({ receipts }) => {
      const bytes = Buffer.concat(ledgerFiles(executor).map((file) => fs.readFileSync(file)));
      for (const { type, signed } of receipts) {
        if (!arrived.includes(type)) arrived.push(type);
        if (!bytes.includes(Buffer.from(signed.signature))) unrecorded.push(type);
      }
    };
    const { wanted } = writing();
    assert.equal((await plane.call(wanted)).ending, 'succeeded');
    plane.heard = () => undefined;
    assert.deepEqual(arrived, ['machine.accepted', 'machine.started', 'machine.result']);
    assert.deepEqual(unrecorded, []);
  });

  it('R40 every decision, refusals too, is in a ledger that is refused with a bit changed, wherever that was tried', async () => {
    const permitted = plane.frame(writing().wanted);
    const refused = plane.frame(writing({ envelope: { policyDigest: randomBytes(32) } }).wanted);
    const denied = plane.frame(writing({ operation: 'file.exec' }).wanted);
    plane.deliver(permitted, refused, denied);
    for (const frame of [permitted, refused, denied]) await endingOf(frame);
    await executor.kill();
    const codes = codesInLedger(executor);
    assert.deepEqual(
      [permitted, refused, denied].map((frame) => codes.get(envelopeOf(frame).command)),
      ['accepted', 'POLICY_STALE', 'OPERATION_UNKNOWN'],
    );
    const copy = path.join(executor.base, 'ledger-copy');
    fs.cpSync(path.dirname(ledgerFiles(executor)[0] ?? ''), copy, { recursive: true });
    const file = path.join(copy, path.basename(ledgerFiles(executor).at(-1) ?? ''));
    const bytes = fs.readFileSync(file);
    await Ledger.open(copy).close();
    const low = fs.readFileSync(path.join(copy, 'low-mark'));
    for (let at = 0; at < bytes.length; at += 211) {
      const altered = Buffer.from(bytes);
      altered.writeUInt8(altered.readUInt8(at) ^ 1, at);
      fs.writeFileSync(file, altered);
      fs.writeFileSync(path.join(copy, 'low-mark'), low);
      assert.throws(() => Ledger.open(copy), LedgerDamaged, `a bit of byte ${at}`);
    }
    await executor.start();
    await online(plane, executor);
  });
});

function ledgerFiles(executor: RealExecutor): string[] {
  const folder = path.join(executor.places.stateDir, 'daemon', 'ledger');
  const names = fs.readdirSync(folder).filter((name) => name.endsWith('.log'));
  return names.toSorted().map((name) => path.join(folder, name));
}

/** What the ledger's own bytes say of each command: `accepted`, or the code of its refusal. */
function codesInLedger(executor: RealExecutor): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of ledgerFiles(executor)) {
    const bytes = fs.readFileSync(file);
    for (const { record } of readSegment(bytes, readMark(bytes)?.previousHead ?? new Uint8Array(32)).placed) {
      if (record.kind === 'accepted') found.set(record.facts.command, 'accepted');
      if (record.kind === 'refused') found.set(record.facts.command, record.code);
    }
  }
  return found;
}

/** Another valid signature of the same key over the same statement: with a nonce of its own (RFC 8032 derives it, and need not). */
function signedAgain({ payload }: Signed, plane: FakeControlPlane): Signed {
  const { d = '' } = plane.signingKey.export({ format: 'jwk' });
  const half = createHash('sha512').update(Buffer.from(d, 'base64url')).digest().subarray(0, 32);
  half.writeUInt8(half.readUInt8(0) & 248, 0);
  half.writeUInt8((half.readUInt8(31) & 127) | 64, 31);
  const { BASE } = ed25519.Point;
  const order = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;
  const number = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes.toReversed()).toString('hex')}`);
  const bytes = (value: bigint): Buffer =>
    Buffer.from(Buffer.from(value.toString(16).padStart(64, '0'), 'hex').toReversed());
  const secret = number(half) % order;
  const nonce = number(randomBytes(64)) % order;
  const point = BASE.multiply(nonce).toBytes();
  const hash = createHash('sha512').update(point).update(BASE.multiply(secret).toBytes());
  const challenge = number(hash.update(signedBytes('control.command', Buffer.from(payload))).digest()) % order;
  return { payload, signature: Buffer.concat([point, bytes((nonce + challenge * secret) % order)]) };
}
