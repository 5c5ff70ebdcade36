import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PayloadUnreadable } from '../../../server/payloads/seal.ts';
import { openPayload } from '../../../server/payloads/store.ts';
import { changeExecutor } from '../../../server/executors/lifecycle.ts';
import type { FakeExecutor } from '../../fakes/fake-executor.ts';
import { FakeWorkspace } from '../../fakes/fake-workspace.ts';
import { startControlPlane, until } from '../control-plane.ts';
import type { ControlPlane, PairedMachine } from '../control-plane.ts';
import { openRun } from '../work-run.ts';
import type { OpenRun } from '../work-run.ts';

const PLANTED = 'PLANTED-MARKER-4711';

describe('sealed payloads in the store', () => {
  let plane: ControlPlane;
  let paired: PairedMachine;
  let machine: FakeExecutor;
  let run: OpenRun;

  beforeEach(async () => {
    plane = await startControlPlane({ keptMs: 60_000 });
    paired = await plane.pair();
    machine = plane.machine(paired, new FakeWorkspace({ 'secret.txt': PLANTED }).play);
    await machine.online();
    run = await openRun(plane);
  });
  afterEach(() => plane.stop());

  /** All bytes of the data folder: database, log, shared memory, keys. */
  const everything = async (): Promise<Buffer> =>
    Buffer.concat(await Promise.all((await readdir(plane.folder)).map((name) => readFile(join(plane.folder, name)))));
  const rows = () => plane.context.store.read.selectFrom('payloads').selectAll().execute();

  it('N-113 arguments and results stand in no file in clear, and moved or altered they do not open', async () => {
    const { command, end } = await run.call('file.write', { path: 'p.txt', content: PLANTED });
    assert.equal(end?.outcome, 'succeeded');
    const read = await run.call('file.read', { path: 'secret.txt' });
    assert.equal(read.end?.outcome, 'succeeded');
    assert.ok(!(await everything()).includes(PLANTED));
    const sealed = await rows();
    assert.deepEqual(sealed.map(({ direction }) => direction).toSorted(), [
      'arguments',
      'arguments',
      'result',
      'result',
    ]);
    const { work } = plane;
    assert.ok((await openPayload(work.store.read, work.keys, command, 'arguments'))?.includes(PLANTED));
    const open = () => openPayload(work.store.read, work.keys, read.command, 'result');
    assert.ok((await open())?.includes(PLANTED));
    const [moved] = sealed.filter((row) => row.command === command && row.direction === 'result');
    assert.ok(moved);
    const put = ({ nonce, sealed: bytes }: { nonce: Buffer; sealed: Buffer }) =>
      work.store.write((tx) =>
        tx
          .updateTable('payloads')
          .set({ nonce, sealed: bytes })
          .where('command', '=', read.command)
          .where('direction', '=', 'result')
          .execute(),
      );
    await put(moved);
    await assert.rejects(open(), PayloadUnreadable);
    const [own] = sealed.filter((row) => row.command === read.command && row.direction === 'result');
    assert.ok(own);
    const altered = Buffer.from(own.sealed);
    altered.writeUInt8(altered.readUInt8(3) ^ 1, 3);
    await put({ ...own, sealed: altered });
    await assert.rejects(open(), PayloadUnreadable);
  });

  it('N-552 past the stated time, and with its executor, no ciphertext is left in any row, page or log, and the key it needed is destroyed', async () => {
    await run.call('file.write', { path: 'p.txt', content: PLANTED.repeat(1000) });
    await run.call('file.read', { path: 'secret.txt' });
    const sealed = await rows();
    assert.equal(sealed.length, 4);
    for (const row of sealed)
      assert.ok((await everything()).includes(row.sealed.subarray(0, 48)), 'the search finds what is there');
    const old = plane.work.keys.current;
    await plane.work.keys.rotate(plane.clock.now());
    plane.clock.offsetMs += 59_000;
    await machine.ask('heartbeat', {
      heartbeat: machine.sign('machine.heartbeat', {
        at: plane.clock.now(),
        executor: paired.executor,
        epoch: machine.epoch,
        ...machine.ledger,
      }),
    });
    await plane.work.sweep();
    assert.equal((await rows()).length, 4);
    plane.clock.offsetMs += 2000;
    await plane.work.sweep();
    assert.deepEqual(await rows(), []);
    const after = await everything();
    for (const row of sealed) {
      for (let at = 0; at + 16 <= row.sealed.length; at += 1000) {
        assert.ok(!after.includes(row.sealed.subarray(at, at + 16)), `${row.direction} at ${at}`);
      }
    }
    assert.equal(plane.work.keys.key(old), undefined);
    assert.ok(!(await readFile(join(plane.folder, 'payload-keys.json'), 'utf8')).includes(old));
    await run.call('file.read', { path: 'secret.txt' });
    const again = await rows();
    assert.ok(again.length > 0);
    await changeExecutor(plane.context, paired.executor, { type: 'executor.delete' });
    assert.deepEqual(await rows(), []);
    const gone = await everything();
    for (const row of again) assert.ok(!gone.includes(row.sealed.subarray(0, 24)));
    await until('the end of the connection', () => plane.work.lanes.find(paired.executor) === undefined);
  });
});
