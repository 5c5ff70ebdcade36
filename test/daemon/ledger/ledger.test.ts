import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { randomBytes } from 'node:crypto';
import { Ledger, SEGMENT_LIMIT_BYTES } from '../../../daemon/ledger/ledger.ts';
import { LedgerDamaged } from '../../../daemon/ledger/segment.ts';
import type { CommandFacts, LedgerRecord } from '../../../daemon/ledger/records.ts';
import { bindingIdSchema, commandIdSchema, runIdSchema } from '../../../helpers/protocol/ids.ts';

const START = 1_800_000_000_000;
const id = (prefix: string) => `${prefix}_${randomBytes(16).toString('hex')}`;
const signed = () => ({ payload: randomBytes(180), signature: randomBytes(64) });

function facts(overrides: Partial<CommandFacts> = {}): CommandFacts {
  return {
    command: commandIdSchema.parse(id('cmd')),
    run: runIdSchema.parse(id('run')),
    originDigest: randomBytes(32),
    agent: null,
    operation: 'file.read',
    binding: bindingIdSchema.parse(id('bnd')),
    fence: 7,
    epoch: 1,
    maximumRuntimeMs: 1000,
    expiresAt: START + 25_000,
    idempotencyKey: id('key'),
    requestDigest: randomBytes(32),
    envelopeDigest: randomBytes(32),
    leasedDigest: randomBytes(32),
    ...overrides,
  };
}

function whole(command: CommandFacts, at = START): LedgerRecord[] {
  const resultDigest = randomBytes(32);
  return [
    { kind: 'accepted', at, facts: command, receipt: signed() },
    { kind: 'started', at, command: command.command, receipt: signed() },
    {
      kind: 'ended',
      at,
      command: command.command,
      ended: { outcome: 'succeeded', code: null, resultDigest },
      receipt: { type: 'machine.result', signed: signed() },
    },
    { kind: 'acknowledged', at, command: command.command, acknowledged: signed() },
  ];
}

describe('ledger', () => {
  let folder: string;
  const open = () => Ledger.open(folder);
  const segment = () => path.join(folder, fs.readdirSync(folder).find((name) => name.endsWith('.log')) ?? '');
  const damage = (code: string) => (error: unknown) => error instanceof LedgerDamaged && error.code === code;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'ledger-'));
  });
  afterEach(() => fs.rmSync(folder, { recursive: true }));

  it('is the same after it was closed and opened', async () => {
    const first = open();
    const command = facts();
    await first.append(...whole(command).slice(0, 2));
    const { count, head } = first.standing;
    await first.close();
    const second = open();
    assert.equal(second.standing.count, count);
    assert.deepEqual(Buffer.from(second.standing.head), Buffer.from(head));
    assert.equal(second.memory.commands.get(command.command)?.phase, 'started');
    assert.equal(second.memory.byIdempotencyKey(command.idempotencyKey)?.facts.command, command.command);
    await second.close();
  });

  it('forgets a record that a crash cut at any byte, and nothing before it', async () => {
    const ledger = open();
    await ledger.append(...whole(facts()).slice(0, 1));
    const kept = ledger.standing.count;
    const sizeBefore = fs.statSync(segment()).size;
    await ledger.close();
    const lowMark = fs.readFileSync(path.join(folder, 'low-mark'));
    const again = open();
    await again.append(...whole(facts()).slice(0, 1));
    await again.close();
    const bytes = fs.readFileSync(segment());
    for (let cut = sizeBefore; cut < bytes.length; cut += 1) {
      fs.writeFileSync(segment(), bytes.subarray(0, cut));
      fs.writeFileSync(path.join(folder, 'low-mark'), lowMark);
      const reopened = open();
      assert.equal(reopened.standing.count, kept, `cut at byte ${cut}`);
      await reopened.close();
    }
  });

  it('refuses to open when durable records were cut away', async () => {
    const ledger = open();
    await ledger.append(...whole(facts()));
    await ledger.close();
    fs.truncateSync(segment(), fs.statSync(segment()).size - 400);
    assert.throws(open, damage('LEDGER_CUT'));
  });

  it('refuses to open when its segments are gone', async () => {
    const ledger = open();
    await ledger.append(...whole(facts()));
    await ledger.close();
    fs.rmSync(segment());
    assert.throws(open, damage('LEDGER_ABSENT'));
  });

  it('refuses to open with one bit changed anywhere', async () => {
    const ledger = open();
    await ledger.append(...whole(facts()));
    await ledger.close();
    const bytes = fs.readFileSync(segment());
    for (let at = 0; at < bytes.length; at += 7) {
      const altered = Buffer.from(bytes);
      altered[at] = (altered[at] ?? 0) ^ 0x10;
      fs.writeFileSync(segment(), altered);
      assert.throws(open, LedgerDamaged, `bit of byte ${at}`);
    }
  });

  it('appends nothing more after a write failed, says why, and tells its daemon once, whoever met it', async () => {
    let told = 0;
    const ledger = Ledger.open(folder, () => {
      told += 1;
    });
    fs.closeSync(fs.openSync(segment(), 'r'));
    // The descriptor that the ledger writes to is taken away, as a file system that turns read-only would.
    const descriptors = fs.readdirSync('/proc/self/fd').filter((fd) => linkOf(fd) === segment());
    for (const fd of descriptors) fs.closeSync(Number(fd));
    const standIn = fs.openSync('/dev/full', 'w');
    await assert.rejects(ledger.append(...whole(facts())), damage('LEDGER_UNWRITABLE'));
    await assert.rejects(ledger.append(...whole(facts())), damage('LEDGER_UNWRITABLE'));
    assert.equal(told, 1);
    fs.closeSync(standIn);
  });

  it('stays bounded while commands come, and never forgets one that is not expired', async () => {
    let now = START;
    const ledger = Ledger.open(folder);
    const unexpired: CommandFacts[] = [];
    for (let round = 0; round < 60; round += 1) {
      const batch = Array.from({ length: 200 }, () => facts({ expiresAt: now + 25_000 }));
      await ledger.append(...batch.flatMap((command) => whole(command, now)));
      if (now > START + 60 * 25_000 - 100_000) unexpired.push(...batch);
      now += 25_000;
    }
    const size = fs.readdirSync(folder).reduce((sum, name) => sum + fs.statSync(path.join(folder, name)).size, 0);
    assert.ok(size < SEGMENT_LIMIT_BYTES * 4, `ledger of ${size} bytes`);
    const { count, head } = ledger.standing;
    await ledger.close();
    const again = open();
    assert.equal(again.standing.count, count);
    assert.deepEqual(Buffer.from(again.standing.head), Buffer.from(head));
    for (const command of unexpired) assert.ok(again.memory.commands.has(command.command));
    assert.ok(again.memory.commands.size < 3000, `${again.memory.commands.size} commands remembered`);
    await again.close();
  });

  it('knows its head at every recent count, so that a copy can be told from a continuation', async () => {
    const ledger = open();
    const heads: [number, Buffer][] = [];
    for (let index = 0; index < 20; index += 1) {
      await ledger.append(...whole(facts()).slice(0, 1));
      heads.push([ledger.standing.count, Buffer.from(ledger.standing.head)]);
    }
    for (const [count, head] of heads) assert.deepEqual(Buffer.from(ledger.memory.headAt(count) ?? []), head);
    assert.equal(ledger.memory.headAt(ledger.standing.count + 1), undefined);
    await ledger.close();
  });
});

function linkOf(fd: string): string {
  try {
    return fs.readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // The descriptor of the listing itself is gone by now.
    return '';
  }
}
