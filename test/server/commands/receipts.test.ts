import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { encode } from '../../../helpers/protocol/codec.ts';
import type { CommandId } from '../../../helpers/protocol/ids.ts';
import { verifyReceiptChain } from '../../../helpers/protocol/receipt-chain.ts';
import type { ReceiptExport } from '../../../helpers/protocol/receipt-chain.ts';
import { admitKey, sha256, statementDigest } from '../../../helpers/protocol/signed.ts';
import { openStatement } from '../../../helpers/protocol/statements.ts';
import { exportReceipts } from '../../../server/commands/export.ts';
import type { Delivered, FakeExecutor, Receipt } from '../../fakes/fake-executor.ts';
import { machineKey } from '../../fakes/fake-machine.ts';
import { startControlPlane } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { refusedWith } from '../refused-with.ts';
import { deliver, openRun, storedCommand } from '../work-run.ts';
import type { OpenRun } from '../work-run.ts';

const mkdir = { success: true, path: 'd' };
const receiptOf = ({ type, signed }: Receipt) => ({ type, signed });

describe('receipts of a command', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;
  let machine: FakeExecutor;
  let run: OpenRun;

  beforeEach(async () => {
    plane = await startControlPlane();
    paired = await plane.pair();
    machine = plane.machine(paired);
    await machine.connect();
    run = await openRun(plane);
  });
  afterEach(() => plane.stop());

  const send = (id: CommandId, receipts: readonly Receipt[], result?: Uint8Array, late = false) =>
    machine.ask('receipts', { command: id, receipts: receipts.map(receiptOf), late, ...(result ? { result } : {}) });
  const chain = (delivered: Delivered, result: unknown = mkdir, outcome: 'succeeded' | 'failed' = 'succeeded') => {
    const accepted = machine.receipt('machine.accepted', delivered, delivered.leasedDigest);
    const started = machine.receipt('machine.started', delivered, accepted.digest);
    const bytes = encode(result);
    return { accepted, started, ended: machine.ending(delivered, started.digest, outcome, bytes), bytes };
  };
  /** Reconnects under a new epoch with the same key and ledger. */
  const reconnect = async (): Promise<void> => {
    machine.cut();
    await machine.closed;
    machine = plane.machine(paired, undefined, machine.state);
    await machine.connect();
  };

  it('an envelope says everything that a command must not be separated from', async () => {
    const { delivered } = await deliver(machine, run);
    const { envelope, frame } = delivered;
    const binding = run.bindings.get('file.mkdir');
    assert.ok(binding);
    assert.equal(envelope.executor, paired.executor);
    assert.equal(envelope.run, run.run.id);
    assert.deepEqual(envelope.origin, {
      person: plane.by.person,
      agent: plane.agent,
      conversation: 'talk',
      project: plane.project,
    });
    assert.deepEqual([envelope.binding, envelope.fence, envelope.epoch], [binding.id, binding.fence, machine.epoch]);
    assert.equal(envelope.capabilityRevision, 1);
    assert.equal(Buffer.from(envelope.policyDigest).toString('hex'), paired.descriptor.policyDigest);
    assert.equal(Buffer.from(envelope.catalogueDigest).toString('hex'), paired.descriptor.catalogueDigest);
    assert.deepEqual(Buffer.from(envelope.argumentsDigest), sha256(frame.arguments));
    assert.deepEqual(Buffer.from(envelope.contentDigest), sha256(frame.content));
    assert.deepEqual([envelope.operation, envelope.mode], ['file.mkdir', 'foreground']);
    assert.equal(envelope.maximumRuntimeMs, 20_000);
    assert.equal(envelope.expiresAt - envelope.notBefore, 30_000);
  });

  it('each receipt by itself moves the command one step, and the last is countersigned', async () => {
    const { delivered, called, id } = await deliver(machine, run);
    const { accepted, started, ended, bytes } = chain(delivered);
    assert.equal((await storedCommand(plane, id)).state, 'leased');
    assert.deepEqual(await send(id, [accepted]), {});
    assert.equal((await storedCommand(plane, id)).state, 'accepted');
    assert.deepEqual(await send(id, [started]), {});
    assert.equal((await storedCommand(plane, id)).state, 'started');
    const { acknowledged } = await send(id, [ended], bytes);
    assert.ok(acknowledged);
    const statement = openStatement('control.acknowledged', machine.control, acknowledged)?.statement;
    assert.equal(statement?.verdict, 'settled');
    assert.deepEqual(Buffer.from(statement.receiptDigest), ended.digest);
    assert.deepEqual((await called).end, { outcome: 'succeeded', gate: null, code: null, result: mkdir });
  });

  it('the same frame again gets the same bytes and changes nothing', async () => {
    const { delivered, id } = await deliver(machine, run);
    const { accepted, started, ended, bytes } = chain(delivered);
    const first = await send(id, [accepted, started, ended], bytes);
    const before = await storedCommand(plane, id);
    for (let turn = 0; turn < 3; turn += 1) {
      assert.deepEqual(await send(id, [accepted, started, ended], bytes), first);
      assert.deepEqual(await send(id, [ended], bytes), first);
    }
    assert.deepEqual(await storedCommand(plane, id), before);
  });

  it('S-210 a second result for a finished command is refused and the first stays', async () => {
    const { delivered, called, id } = await deliver(machine, run);
    const { accepted, started, ended, bytes } = chain(delivered);
    await send(id, [accepted, started, ended], bytes);
    const before = [await storedCommand(plane, id), await exportReceipts(plane.context.store.read, id)];
    const other = encode({ success: false, code: 'WORKSPACE_DENIED' });
    const second = machine.ending(delivered, started.digest, 'failed', other);
    await assert.rejects(send(id, [second], other), refusedWith('RECEIPT_OUT_OF_ORDER'));
    const behind = machine.ending(delivered, ended.digest, 'failed', other);
    await assert.rejects(send(id, [behind], other), refusedWith('RESULT_DUPLICATE'));
    assert.deepEqual([await storedCommand(plane, id), await exportReceipts(plane.context.store.read, id)], before);
    assert.deepEqual((await called).end?.result, mkdir);
  });

  it('a receipt out of order, twice in a chain, or with a broken link is refused and moves nothing', async () => {
    const { delivered, id } = await deliver(machine, run);
    const { accepted, started, ended, bytes } = chain(delivered);
    await assert.rejects(send(id, [started]), refusedWith('RECEIPT_OUT_OF_ORDER'));
    await assert.rejects(send(id, [ended], bytes), refusedWith('RECEIPT_OUT_OF_ORDER'));
    await assert.rejects(send(id, [started, accepted]), refusedWith('RECEIPT_OUT_OF_ORDER'));
    await assert.rejects(send(id, [accepted, ended], bytes), refusedWith('RECEIPT_OUT_OF_ORDER'));
    const again = machine.receipt('machine.accepted', delivered, accepted.digest);
    await assert.rejects(send(id, [accepted, again]), refusedWith('RECEIPT_OUT_OF_ORDER'));
    const astray = machine.receipt('machine.accepted', delivered, randomBytes(32));
    await assert.rejects(send(id, [astray]), refusedWith('RECEIPT_OUT_OF_ORDER'));
    assert.equal((await storedCommand(plane, id)).state, 'leased');
    const early = encode({ success: true, path: 'd' });
    const success = machine.ending(delivered, delivered.leasedDigest, 'succeeded', early);
    await assert.rejects(send(id, [success], early), refusedWith('RECEIPT_OUT_OF_ORDER'));
  });

  it('S-209 a receipt out of order, a second time, for a command that nobody was given, or of another connection is refused and moves nothing', async () => {
    const { delivered, id } = await deliver(machine, run);
    const { accepted, started, ended, bytes } = chain(delivered);
    await assert.rejects(send(id, [started, accepted]), refusedWith('RECEIPT_OUT_OF_ORDER'));
    await assert.rejects(send(id, [ended], bytes), refusedWith('RECEIPT_OUT_OF_ORDER'));
    const older = { epoch: delivered.envelope.epoch - 1 };
    const other = machine.receipt('machine.accepted', delivered, delivered.leasedDigest, older);
    await assert.rejects(send(id, [other]), refusedWith('RECEIPT_FOREIGN'));
    const queued = await run.start('file.mkdir', { path: 'q' });
    const early = machine.receipt('machine.accepted', delivered, delivered.leasedDigest, { command: queued });
    await assert.rejects(send(queued, [early]), refusedWith('RECEIPT_FOREIGN'));
    const states = async () => [(await storedCommand(plane, id)).state, (await storedCommand(plane, queued)).state];
    assert.deepEqual(await states(), ['leased', 'queued']);
    await send(id, [accepted]);
    const again = machine.receipt('machine.accepted', delivered, accepted.digest);
    await assert.rejects(send(id, [again]), refusedWith('RECEIPT_OUT_OF_ORDER'));
    assert.deepEqual(await states(), ['accepted', 'queued']);
  });

  it('S-216 a new connection of the same machine cannot answer what an older one accepted: without its chain it is refused, and the outcome is unknown', async () => {
    const { delivered, called, id } = await deliver(machine, run);
    const { accepted } = chain(delivered);
    await send(id, [accepted]);
    await reconnect();
    assert.equal((await called).end?.outcome, 'unknown');
    const bytes = encode(mkdir);
    for (const epoch of [machine.epoch, delivered.envelope.epoch]) {
      const first = machine.receipt('machine.accepted', delivered, delivered.leasedDigest, { epoch });
      const started = machine.receipt('machine.started', delivered, first.digest, { epoch });
      const ended = machine.receipt('machine.result', delivered, started.digest, {
        epoch,
        ...machine.ledger,
        outcome: 'succeeded',
        resultDigest: sha256(bytes),
      });
      for (const late of [false, true]) {
        await assert.rejects(send(id, [first, started, ended], bytes, late));
        await assert.rejects(send(id, [ended], bytes, late));
      }
    }
    const { state, outcome } = await storedCommand(plane, id);
    assert.deepEqual([state, outcome], ['unknown', 'unknown']);
  });

  it('a receipt that the paired key did not sign, or for another result, is refused', async () => {
    const { delivered, id } = await deliver(machine, run);
    const { accepted, started, ended } = chain(delivered);
    const forged = { ...accepted, signed: { ...accepted.signed, signature: randomBytes(64) } };
    await assert.rejects(send(id, [forged]), refusedWith('RECEIPT_INVALID'));
    const other = plane.machine({ ...paired, key: machineKey() });
    await assert.rejects(
      send(id, [other.receipt('machine.accepted', delivered, delivered.leasedDigest)]),
      refusedWith('RECEIPT_INVALID'),
    );
    await assert.rejects(send(id, [{ ...accepted, type: 'machine.started' }]), refusedWith('RECEIPT_INVALID'));
    await assert.rejects(
      send(id, [accepted, started, ended], encode({ success: true, path: 'e' })),
      refusedWith('RECEIPT_INVALID'),
    );
    await assert.rejects(send(id, [accepted, started, ended]), refusedWith('RECEIPT_INVALID'));
  });

  it('a receipt of an unknown command, another machine, another envelope or another epoch is foreign', async () => {
    const { delivered, id } = await deliver(machine, run);
    const accepted = machine.receipt('machine.accepted', delivered, delivered.leasedDigest);
    const nobody = `cmd_${'0'.repeat(32)}` as CommandId;
    await assert.rejects(send(nobody, [accepted]), refusedWith('RECEIPT_FOREIGN'));
    for (const lie of [
      { envelopeDigest: randomBytes(32) },
      { epoch: delivered.envelope.epoch + 1 },
      { command: nobody },
    ]) {
      const lying = machine.receipt('machine.accepted', delivered, delivered.leasedDigest, lie);
      await assert.rejects(send(id, [lying]), refusedWith('RECEIPT_FOREIGN'));
    }
    const twin = await plane.pair();
    const other = plane.machine(twin);
    await other.connect();
    const stolen = other.receipt('machine.accepted', delivered, delivered.leasedDigest);
    await assert.rejects(
      other.ask('receipts', { command: id, receipts: [receiptOf(stolen)], late: false }),
      refusedWith('RECEIPT_FOREIGN'),
    );
    assert.equal((await storedCommand(plane, id)).state, 'leased');
  });

  const refusals: Record<string, { code: string; outcome: string }> = {
    'by policy': { code: 'LOCAL_POLICY_DENIED', outcome: 'refused' },
    'because it was cancelled before the start': { code: 'CANCELLED_BEFORE_START', outcome: 'cancelled' },
    'because it came too late': { code: 'COMMAND_EXPIRED', outcome: 'expired' },
  };
  for (const [why, { code, outcome }] of Object.entries(refusals)) {
    it(`a command that the machine refuses ${why} ends as ${outcome}, with the machine’s code`, async () => {
      const { delivered, called, id } = await deliver(machine, run);
      const refused = machine.receipt('machine.refused', delivered, delivered.leasedDigest, { code });
      const { acknowledged } = await send(id, [refused]);
      assert.ok(acknowledged);
      const { end } = await called;
      assert.deepEqual([end?.outcome, end?.code], [outcome, code]);
      assert.equal(end?.gate, outcome === 'refused' ? 'machine' : end?.gate);
    });
  }

  it('a result that is too large or of another shape is refused, replaced once by a refusal record, then closed', async () => {
    for (const wrong of [
      { success: true, path: 'd', more: 1 },
      { success: true, path: 'x'.repeat(70_000) },
    ]) {
      const { delivered, called, id } = await deliver(machine, run);
      const { accepted, started, ended, bytes } = chain(delivered, wrong);
      const { acknowledged } = await send(id, [accepted, started, ended], bytes);
      assert.ok(acknowledged);
      assert.equal(openStatement('control.acknowledged', machine.control, acknowledged)?.statement.verdict, 'refused');
      assert.equal((await storedCommand(plane, id)).state, 'replacing');
      const replacement = machine.receipt('machine.refused', delivered, ended.digest, { code: 'RESULT_INVALID' });
      const second = await send(id, [replacement]);
      assert.ok(second.acknowledged);
      assert.equal(
        openStatement('control.acknowledged', machine.control, second.acknowledged)?.statement.verdict,
        'settled',
      );
      assert.equal((await called).end?.outcome, 'failed');
      const again = machine.receipt('machine.refused', delivered, replacement.digest, { code: 'RESULT_INVALID' });
      await assert.rejects(send(id, [again]), refusedWith('RESULT_DUPLICATE'));
    }
  });

  it('N-118 a cut connection leaves the outcome unknown in every state; a late chain settles it once', async () => {
    for (const told of [0, 1, 2] as const) {
      const { delivered, called, id } = await deliver(machine, run);
      const { accepted, started, ended, bytes } = chain(delivered);
      const known = [accepted, started].slice(0, told);
      if (known.length > 0) await send(id, known);
      await reconnect();
      assert.equal((await called).end?.outcome, 'unknown');
      assert.equal((await storedCommand(plane, id)).state, 'unknown');
      assert.deepEqual(await send(id, [accepted, started], undefined, true), {});
      assert.equal((await storedCommand(plane, id)).state, 'unknown');
      const first = await send(id, [accepted, started, ended], bytes, true);
      assert.ok(first.acknowledged);
      assert.equal((await storedCommand(plane, id)).outcome, 'succeeded');
      assert.deepEqual(await send(id, [accepted, started, ended], bytes, true), first);
      const other = machine.ending(delivered, ended.digest, 'failed', bytes);
      await assert.rejects(send(id, [other], bytes, true), refusedWith('RESULT_DUPLICATE'));
    }
  });

  it('a late chain that does not begin with this command’s own lease settles nothing', async () => {
    const { delivered, id } = await deliver(machine, run);
    const { accepted } = chain(delivered);
    await send(id, [accepted]);
    await reconnect();
    const other = machine.receipt('machine.accepted', delivered, delivered.leasedDigest);
    const started = machine.receipt('machine.started', delivered, other.digest);
    const bytes = encode(mkdir);
    const ended = machine.ending(delivered, started.digest, 'succeeded', bytes);
    await assert.rejects(send(id, [other, started, ended], bytes, true), refusedWith('RECEIPT_OUT_OF_ORDER'));
    const loose = machine.ending(delivered, randomBytes(32), 'succeeded', bytes);
    await assert.rejects(send(id, [loose], bytes, true), refusedWith('RECEIPT_OUT_OF_ORDER'));
    assert.equal((await storedCommand(plane, id)).state, 'unknown');
  });

  it('R57 a new connection of the same name cannot accept, refuse, move on, finish or cancel-confirm what another was given', async () => {
    const { delivered, id } = await deliver(machine, run);
    await plane.context.store.write((tx) =>
      tx
        .updateTable('commands')
        .set({ epoch: machine.epoch - 1 })
        .where('id', '=', id)
        .execute(),
    );
    const lie = { epoch: machine.epoch - 1 };
    const row = JSON.parse((await storedCommand(plane, id)).stored);
    row.context.epoch = machine.epoch - 1;
    await plane.context.store.write((tx) =>
      tx
        .updateTable('commands')
        .set({ stored: JSON.stringify(row) })
        .where('id', '=', id)
        .execute(),
    );
    const bytes = encode({ success: false, code: 'CANCELLED' });
    const accepted = machine.receipt('machine.accepted', delivered, delivered.leasedDigest, lie);
    const refused = machine.receipt('machine.refused', delivered, delivered.leasedDigest, {
      ...lie,
      code: 'NOT_ACCEPTING',
    });
    const cancelled = machine.receipt('machine.result', delivered, delivered.leasedDigest, {
      ...lie,
      ...machine.ledger,
      outcome: 'cancelled',
      resultDigest: sha256(bytes),
    });
    for (const receipt of [accepted, refused])
      await assert.rejects(send(id, [receipt]), refusedWith('CONNECTION_FENCED'));
    await assert.rejects(send(id, [cancelled], bytes), refusedWith('CONNECTION_FENCED'));
    const { accepted: first, started, ended, bytes: result } = chain(delivered);
    await assert.rejects(send(id, [first, started, ended], result));
    const told: unknown[] = [];
    const unlisten = plane.context.wake.listen((change) => change.of === 'progress' && told.push(change));
    await machine.ask('progress', { command: id, number: 1, done: 1, total: 2, phase: 'late' });
    unlisten();
    assert.deepEqual(told, []);
    assert.equal((await storedCommand(plane, id)).state, 'leased');
  });

  it('a lifetime that passes leaves the outcome unknown, and the waiting tool says so', async () => {
    const { delivered, called, id } = await deliver(machine, run);
    const { accepted, started, ended, bytes } = chain(delivered);
    await send(id, [accepted]);
    plane.clock.offsetMs += 24_000;
    await plane.work.sweep();
    assert.equal((await storedCommand(plane, id)).state, 'accepted');
    plane.clock.offsetMs += 1500;
    await plane.work.sweep();
    assert.equal((await called).end?.outcome, 'unknown');
    await send(id, [started, ended], bytes);
    assert.equal((await storedCommand(plane, id)).outcome, 'succeeded');
  });

  it('an exported chain verifies offline, and an altered, removed, reordered or invented entry is named', async () => {
    const { delivered, id } = await deliver(machine, run);
    const { accepted, started, ended, bytes } = chain(delivered);
    await send(id, [accepted, started, ended], bytes);
    const exported = await exportReceipts(plane.context.store.read, id);
    assert.ok(exported);
    const keys = { machine: admitKey(paired.key.publicKey), control: admitKey(plane.key.publicKey) };
    assert.deepEqual(verifyReceiptChain(exported, keys), {
      ok: true,
      complete: true,
      outcome: 'succeeded',
      entries: 6,
    });
    const faultAt = (statements: ReceiptExport['statements']): number => {
      const verdict = verifyReceiptChain({ ...exported, statements }, keys);
      return verdict.ok ? 0 : verdict.entry;
    };
    for (const [index, entry] of exported.statements.entries()) {
      const payload = Buffer.from(entry.payload, 'base64');
      payload.writeUInt8(payload.readUInt8(payload.length - 1) ^ 1, payload.length - 1);
      const altered = exported.statements.with(index, { ...entry, payload: payload.toString('base64') });
      assert.equal(faultAt(altered), index + 1, `altered ${entry.type}`);
      if (index < 5) assert.equal(faultAt(exported.statements.toSpliced(index, 1)), index + 1, `removed ${entry.type}`);
      const invented: ReceiptExport['statements'] = exported.statements.toSpliced(index, 0, entry);
      assert.equal(faultAt(invented), index === 0 ? 2 : index + 2, `repeated ${entry.type}`);
    }
    for (let index = 0; index < 5; index += 1) {
      const [one, other]: ReceiptExport['statements'] = exported.statements.slice(index, index + 2);
      assert.ok(one && other);
      assert.equal(faultAt(exported.statements.toSpliced(index, 2, other, one)), index + 1);
    }
    assert.equal(faultAt([]), 0);
    const cut = verifyReceiptChain({ ...exported, statements: exported.statements.slice(0, 5) }, keys);
    assert.deepEqual(cut, { ok: true, complete: false, outcome: undefined, entries: 5 });
    assert.equal(
      statementDigest('control.command', delivered.frame.envelope.payload).equals(delivered.envelopeDigest),
      true,
    );
  });
});
