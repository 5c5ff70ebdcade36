/* What of a machine the network can see, by the kernel's own tables: nothing that listens, and nothing at all after its end. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { descriptorsOf, inodeIn, socketsSeenBy } from '../../helpers/runtime/kernel-view.ts';
import { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import { childrenOf, isDead } from '../faults/processes.ts';
import { RealExecutor } from '../fixtures/executor.ts';
import { until } from '../fixtures/until.ts';

describe('the sockets of a machine', function () {
  this.timeout(120_000);
  const plane = new FakeControlPlane();
  let executor: RealExecutor;

  before(async () => {
    executor = new RealExecutor(await plane.listen());
    await executor.start();
  });
  after(async () => {
    await executor.remove();
    await plane.close();
  });

  const supervisor = (): number => {
    const status = fs.readFileSync(`/proc/${executor.pidOf('daemon')}/status`, 'utf8');
    return Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
  };
  const tree = (): number[] => [supervisor(), ...childrenOf(supervisor()).map(({ pid }) => pid)];

  it('N-006 N-211 no process of it listens on a network in any state, and it has no port for operators', async () => {
    const seen: string[] = [];
    const look = async (state: string): Promise<void> => {
      const pids = tree();
      assert.ok(pids.length >= 5, `${state}: ${pids.length} processes`);
      for (const pid of pids) assert.deepEqual(listening(pid), [], `${state}: process ${pid}`);
      seen.push(state);
    };
    await look((await executor.status()).state);
    const pairing = executor.pair();
    await look('pairing');
    await pairing;
    await executor.is('online');
    await until('a descriptor arrived', () => plane.descriptor);
    await look('online, unreviewed');
    plane.confirmDescriptor();
    const running = plane.call({ operation: 'file.search', arguments: { query: 'x' } });
    await look('online, at work');
    await running;
    for (const standing of ['paused', 'draining'] as const) {
      plane.standing = standing;
      plane.wake();
      await until(standing, async () => (await executor.status()).standing === standing || undefined);
      await look(standing);
    }
    plane.beHonest();
    plane.lie = (type, fields) => (type === 'control.session' ? { ...fields, verdict: 'ledger-forked' } : fields);
    plane.cut();
    await executor.is('error');
    await look('error');
    plane.beHonest();
    plane.answering = false;
    await executor.kill();
    await executor.start();
    await executor.status();
    await look('cut off');
    plane.answering = true;
    assert.equal(new Set(seen).size, seen.length);
    assert.ok(listening(process.pid).length > 0, 'the control plane of this test listens, and is seen to');
  });

  it('N-054 stopping it is a complete and immediate disconnection: no socket, no process and nothing that reconnects is left', async () => {
    await executor.kill();
    const fresh = new FakeControlPlane();
    const other = new RealExecutor(await fresh.listen());
    try {
      await other.start();
      await other.pair();
      await other.is('online');
      const status = fs.readFileSync(`/proc/${other.pidOf('daemon')}/status`, 'utf8');
      const top = Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
      const pids = [top, ...childrenOf(top).map(({ pid }) => pid)];
      assert.ok(pids.length >= 5);
      await other.stop();
      assert.deepEqual(
        pids.filter((pid) => !isDead(pid)),
        [],
        'processes',
      );
      const left = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && names(name, other.base));
      assert.deepEqual(left, [], 'nothing else was started for it');
      await until('the connection is gone', () => !fresh.isConnected || undefined);
      const questions = fresh.questions.length;
      fresh.deliver(fresh.frame({ operation: 'file.list' }));
      assert.deepEqual([fresh.told.length, fresh.questions.length], [0, questions]);
    } finally {
      await other.remove();
      await fresh.close();
    }
  });
});

/** The sockets of a process at which somebody from a network could knock, as the kernel shows them. */
function listening(pid: number): string[] {
  const sockets = socketsSeenBy(pid);
  return descriptorsOf(pid).flatMap(({ target }) => {
    const socket = sockets.get(inodeIn(target));
    const open = socket?.family === 'udp' || (socket?.family === 'tcp' && socket.isListening);
    return open ? [JSON.stringify(socket)] : [];
  });
}

/** Whether a process has this folder in its arguments. */
function names(pid: string, folder: string): boolean {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder);
  } catch {
    // It ended while the list was read.
    return false;
  }
}
