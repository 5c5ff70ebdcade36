import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import type { Installation } from '../../../helpers/runtime/installation.ts';
import { descriptorsOf, limitOf, startTicksOf, threadsOf } from '../../../helpers/runtime/kernel-view.ts';
import { LAUNCH_STEPS } from '../../../helpers/runtime/launch-steps.ts';
import { setClosedOnExec } from '../../../helpers/runtime/native-locks.ts';
import { UID_BASE } from '../../../helpers/runtime/privileges.ts';
import type { Started, StartRequest } from '../../../helpers/runtime/start.ts';
import { installForTest, startRoleForTest } from '../../fixtures/start-role.ts';
import { until } from '../../fixtures/until.ts';

const isRoot = process.getuid?.() === 0;
const OWN = { uid: UID_BASE + 3, gid: UID_BASE + 3 };

const firstLine = (started: Started): Promise<string> =>
  new Promise((resolve) => started.channel?.once('data', (bytes: Buffer) => resolve(bytes.toString())));

async function codeOf(started: Started): Promise<number | string> {
  const exit = await started.exited;
  return exit.by === 'code' ? exit.code : exit.signal;
}

describe('launch', () => {
  let installation: Installation;
  let remove: () => void;
  let folder: string;
  let opened: number;

  before(async () => {
    ({ installation, remove } = await installForTest({
      'key-store': 'test/fixtures/roles/idle.ts',
      workspace: 'test/fixtures/roles/native.ts',
      'workspace-worker': 'test/fixtures/roles/idle.ts',
      link: 'test/fixtures/roles/counter.ts',
    }));
  });
  after(() => remove());
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(tmpdir(), 'launch-'));
    if (isRoot) fs.chownSync(folder, OWN.uid, OWN.gid);
    opened = fs.openSync(folder, 'r');
  });
  afterEach(() => {
    fs.closeSync(opened);
    fs.rmSync(folder, { recursive: true });
  });

  const startKeyStore = (more: Partial<StartRequest> = {}): Started =>
    startRoleForTest(installation, 'key-store', { 4: opened }, { user: isRoot ? OWN : undefined, ...more });

  it('S-014 a row has exactly its declared descriptors and those of Node itself, and one that leaks without launch does not reach it', async () => {
    const planted = fs.openSync(path.join(folder, 'planted'), 'w');
    setClosedOnExec(planted, false);
    const leak = spawnSync(process.execPath, ['-p', `require('fs').readlinkSync('/proc/self/fd/${planted}')`], {
      encoding: 'utf8',
    });
    assert.match(leak.stdout, /planted/);
    const started = startKeyStore();
    await firstLine(started);
    const seen = descriptorsOf(started.pid);
    fs.closeSync(planted);
    const declared = seen.filter(({ number }) => number <= 4).map(({ number, kind }) => [number, kind]);
    assert.deepEqual(declared, [
      [0, 'null'],
      [1, 'null'],
      [2, 'null'],
      [3, 'socket'],
      [4, 'folder'],
    ]);
    const others = seen.filter(({ number }) => number > 4);
    const outside = others.filter(({ kind, target }) => {
      const isOwnPipe = kind === 'pipe' && others.filter((other) => other.target === target).length === 2;
      return !isOwnPipe && kind !== 'internal' && kind !== 'null';
    });
    assert.deepEqual(outside, []);
    started.end('SIGKILL');
    await started.exited;
  });

  it('every thread has the uid of the row, no capability, no way to gain one, and a filter', async () => {
    const started = startKeyStore();
    await firstLine(started);
    const threads = threadsOf(started.pid);
    assert.ok(threads.length > 1);
    const uid = isRoot ? OWN.uid : process.getuid?.();
    for (const { uids, capabilities, noNewPrivileges, seccompMode } of threads) {
      assert.deepEqual(uids, [uid, uid, uid, uid]);
      assert.deepEqual(
        [capabilities.permitted, capabilities.effective, capabilities.inheritable, capabilities.ambient],
        [0n, 0n, 0n, 0n],
      );
      assert.equal(noNewPrivileges, true);
      assert.equal(seccompMode, 2);
    }
    assert.deepEqual(limitOf(started.pid, 'Max open files'), ['64', '64']);
    assert.deepEqual(limitOf(started.pid, 'Max core file size'), ['0', '0']);
    started.end('SIGKILL');
    await started.exited;
  });

  it('a row ends when its starter is killed', async () => {
    const script = path.join(import.meta.dirname, '../../fixtures/start-and-wait.ts');
    const starter = spawn(process.execPath, ['--import', 'tsx', script, installation.folder, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pid = Number(
      await new Promise<string>((resolve) => starter.stdout.once('data', (bytes: Buffer) => resolve(bytes.toString()))),
    );
    assert.notEqual(startTicksOf(pid), undefined);
    starter.kill('SIGKILL');
    await until('the row is gone', () => startTicksOf(pid) === undefined || undefined);
  });

  it('calls outside the filter are refused by errno, and calls that only a break-in makes end the row', async () => {
    const root = fs.openSync(folder, 'r');
    const start = (): Started =>
      startRoleForTest(
        installation,
        'workspace',
        { 4: root, 5: opened },
        { user: isRoot ? { uid: 65534, gid: 65534 } : undefined },
      );
    const ask = async (started: Started, call: string): Promise<string> => {
      started.channel?.write(`call ${call}`);
      return (await firstLine(started)).trim();
    };
    const started = start();
    await firstLine(started);
    assert.equal(await ask(started, 'fork'), 'EPERM');
    assert.equal(await ask(started, 'vfork'), 'EPERM');
    assert.equal(await ask(started, 'clone 17 0 0 0 0'), 'EPERM');
    assert.equal(await ask(started, 'clone3 0 0'), 'ENOSYS');
    assert.equal(await ask(started, 'socket 1 1 0'), 'EACCES');
    assert.equal(await ask(started, 'socket 2 1 0'), 'EACCES');
    assert.equal(await ask(started, 'socket 16 3 0'), 'EACCES');
    assert.equal(await ask(started, 'memfd_create 0 0'), 'EPERM');
    assert.equal(await ask(started, 'io_uring_setup 1 0'), 'ENOSYS');
    assert.equal(await ask(started, 'fchmod 5 448'), 'EPERM');
    assert.equal(await ask(started, 'setresuid 0 0 0'), 'EPERM');
    // not refused: the filter lets it through, so the kernel's own answer for a bad address comes
    assert.equal(await ask(started, 'statx 5 0 0 0 0'), 'EFAULT');
    started.end('SIGKILL');
    for (const call of [
      'ptrace 0 0 0 0',
      'process_vm_readv 1 0 0 0 0 0',
      'pidfd_getfd 0 0 0',
      'bpf 0 0 0',
      'mount 0 0 0 0 0',
      'io_uring_enter 0 0 0 0 0',
      'kexec_load 0 0 0 0',
      'unshare 0',
    ]) {
      const again = start();
      await firstLine(again);
      again.channel?.write(`call ${call}`);
      assert.deepEqual(await again.exited, { by: 'signal', signal: 'SIGSYS' }, call);
    }
    fs.closeSync(root);
  });

  it('each step that fails has its own exit code, and no row runs', async () => {
    assert.equal(
      await codeOf(
        startKeyStore({
          connect: 'key-store.sock',
          descriptors: new Map([
            [3, opened],
            [4, opened],
          ]),
        }),
      ),
      LAUNCH_STEPS.connect.code,
    );
    assert.equal(await codeOf(startKeyStore({ records: path.join(folder, 'absent') })), LAUNCH_STEPS.record.code);
    fs.renameSync(path.join(installation.folder, 'workspace-worker.mjs'), path.join(folder, 'away'));
    const launch = (
      plan: unknown,
      environment: NodeJS.ProcessEnv = {},
      folders: readonly number[] = [opened, opened],
    ): number | null =>
      spawnSync(process.execPath, [path.join(installation.folder, 'launch.mjs')], {
        input: JSON.stringify(plan),
        env: environment,
        stdio: ['pipe', 'ignore', 'ignore', 'pipe', ...folders],
      }).status;
    const plan = {
      row: 'workspace',
      program: 'role',
      installation: installation.folder,
      parent: process.pid,
      slot: 0,
      forbiddenFolders: '',
      loopback: false,
    };
    assert.equal(launch({}), LAUNCH_STEPS.plan.code);
    assert.equal(launch({ ...plan, row: 'supervisor' }), LAUNCH_STEPS.plan.code);
    assert.equal(launch(plan, { UV_USE_IO_URING: '1' }), LAUNCH_STEPS.environment.code);
    assert.equal(launch(plan), LAUNCH_STEPS.paths.code);
    fs.renameSync(path.join(folder, 'away'), path.join(installation.folder, 'workspace-worker.mjs'));
    assert.equal(launch(plan, {}, []), LAUNCH_STEPS.descriptors.code);
    assert.equal(launch({ ...plan, row: 'key-store', parent: 1 }), LAUNCH_STEPS.parent.code);
    if (!isRoot) assert.equal(await codeOf(startKeyStore({ user: { uid: 1, gid: 1 } })), LAUNCH_STEPS.user.code);
  });

  it('a role that is started by hand ends before it reads a byte', () => {
    const role = path.join(installation.folder, 'link.mjs');
    const { status } = spawnSync(process.execPath, [role], { stdio: ['ignore', 'ignore', 'ignore', opened] });
    assert.equal(status, 1);
  });
});
