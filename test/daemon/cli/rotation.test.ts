import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import { askDaemon, isDaemonUp } from '../../../daemon/cli/owner-client.ts';
import { placesIn } from '../../../daemon/cli/places.ts';
import { writeSetUp } from '../../../daemon/cli/set-up.ts';
import { freePort, startServer, stopChild, until } from '../../../daemon/demo/children.ts';
import type { RunningServer } from '../../../daemon/demo/children.ts';
import { Person } from '../../../daemon/demo/person.ts';
import { pair } from '../../../daemon/demo/settle.ts';
import { attach, hasStrace } from '../../fakes/killer.ts';
import { CommandLine } from '../../fixtures/command-line.ts';
import { skipBecause } from '../../skip.ts';

/** Longest wait for a condition; long, because the machine may be busy with other things. */
const PATIENCE_MS = 60_000;

function isRowOf(pid: number, row: string, parent: number): boolean {
  try {
    const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
    return (
      status.includes(`PPid:\t${parent}\n`) && fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`/${row}.mjs`)
    );
  } catch {
    // It ended while the list was read.
    return false;
  }
}

describe('a rotation that is cut', function () {
  this.timeout(300_000);
  let cli: CommandLine;
  let server: RunningServer;
  let folder: string;
  let supervisor: ChildProcess;
  const places = () => placesIn(path.join(folder, 'executor'));

  before(async () => {
    cli = await CommandLine.build(true);
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rotation-'));
    fs.chmodSync(folder, 0o755);
    fs.mkdirSync(path.join(folder, 'root'));
    process.env['NESSIE_ALLOW_LOOPBACK_HTTP'] = '1';
    server = await startServer(cli.dist, path.join(folder, 'server'), await freePort());
    const person = new Person(server.origin);
    const facts = { organisation: 'Organisation', team: 'Team', project: 'Project', login: 'owner', name: 'Owner' };
    await person.setUp(server.setup ?? '', { ...facts, password: 'correct horse battery staple' });
    writeSetUp({ places: places(), origin: server.origin, root: path.join(folder, 'root') });
    await start();
    await pair(person, places(), 'machine');
  });
  after(async () => {
    await end();
    await stopChild(server.process);
    await cli.remove();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  async function start(): Promise<void> {
    supervisor = spawn(process.execPath, ['--no-warnings', path.join(cli.dist, 'supervisor.mjs'), places().stateDir], {
      stdio: 'ignore',
      env: { NESSIE_ALLOW_LOOPBACK_HTTP: '1' },
    });
    await until('the daemon answers', PATIENCE_MS, async () => (await isDaemonUp(places().stateDir)) || undefined);
  }
  async function end(): Promise<void> {
    const exited = new Promise((resolve) => supervisor.once('exit', resolve));
    supervisor.kill('SIGKILL');
    await exited;
    await until('nothing answers', PATIENCE_MS, async () => !(await isDaemonUp(places().stateDir)) || undefined);
  }
  const online = (): Promise<string> =>
    until('the machine is online', PATIENCE_MS, async () => {
      const { state, fingerprint } = await askDaemon(places().stateDir, 'daemon.status', {});
      return state === 'online' && fingerprint !== null ? fingerprint : undefined;
    });
  const keyStorePid = (): number => {
    const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const found = pids.find((pid) => isRowOf(Number(pid), 'key-store', supervisor.pid ?? 0));
    return Number(found);
  };
  const rotate = (): Promise<string> =>
    askDaemon(places().stateDir, 'daemon.rotate-key', {}).then(({ fingerprint }) => fingerprint);

  async function cutByKeyStore(step: string): Promise<'cut' | 'done'> {
    const [call, number] = step.split(':');
    const tracer = await attach(keyStorePid(), [`${call}:signal=SIGKILL:when=${number}`], ['rename']);
    const outcome = await rotate().then(
      () => 'done' as const,
      () => 'cut' as const,
    );
    await tracer.detach();
    await end();
    await start();
    return outcome;
  }
  async function cutEverything(afterMs: number): Promise<void> {
    const cut = rotate().catch(() => 'cut');
    await wait(afterMs);
    await end();
    await cut;
    await start();
  }
  async function cutControlPlane(afterMs: number): Promise<void> {
    const cut = rotate().catch(() => 'cut');
    await wait(afterMs);
    const exited = new Promise((resolve) => server.process.once('exit', resolve));
    server.process.kill('SIGKILL');
    await exited;
    server = await startServer(cli.dist, path.join(folder, 'server'), Number(new URL(server.origin).port));
    await cut;
  }
  async function goesOn(before: string, what: string): Promise<void> {
    const now = await online();
    const next = await until('the key is rotated', PATIENCE_MS, () => rotate().catch(() => undefined));
    assert.ok(next !== before && next !== now, what);
    assert.deepEqual(fs.readdirSync(path.join(places().stateDir, 'key-store')).toSorted(), ['guards', 'key'], what);
  }

  it('N-548 a kill of key-store at each of its calls, of the whole machine, or of the control plane leaves one usable key: the machine comes back by itself and rotates again', async function () {
    if (!hasStrace()) return skipBecause(this, 'the strace program');
    let cuts = 0;
    const steps = ['fsync:1', 'rename:1', 'fsync:2', 'rename:2', 'fsync:3', 'fsync:4'];
    for (const step of steps) {
      const before = await online();
      if ((await cutByKeyStore(step)) === 'cut') cuts += 1;
      await goesOn(before, `key-store at ${step}`);
    }
    // strace counts calls for each thread: a call of the pool on another thread may not be the n-th there.
    assert.ok(cuts >= 3, `${cuts} of ${steps.length} were cut`);
    for (const afterMs of [0, 4, 12]) {
      const before = await online();
      await cutEverything(afterMs);
      await goesOn(before, `everything after ${afterMs} ms`);
    }
    for (const afterMs of [0, 6, 18]) {
      const before = await online();
      await cutControlPlane(afterMs);
      await goesOn(before, `control plane after ${afterMs} ms`);
    }
  });
});
