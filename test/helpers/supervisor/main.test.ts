import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { inspectTree } from '../../../helpers/runtime/inspect.ts';
import type { Installation } from '../../../helpers/runtime/installation.ts';
import { startTicksOf } from '../../../helpers/runtime/kernel-view.ts';
import { ROW_NAMES } from '../../../helpers/runtime/privileges.ts';
import type { Report } from '../../../helpers/supervisor/request.ts';
import { FIXTURE_ROWS, makeExecutor, runningInstallation, Tree } from '../../fixtures/run-tree.ts';
import { installForTest } from '../../fixtures/start-role.ts';
import { until } from '../../fixtures/until.ts';

const ended =
  (row: string) =>
  (report: Report): boolean =>
    report.report === 'ended' && report.row === row;

describe('the supervisor', () => {
  let built: Installation;
  let installation: Installation;
  let removeInstallation: () => void;
  let base: string;
  let tree: Tree;

  before(async () => {
    ({ installation: built, remove: removeInstallation } = await installForTest(FIXTURE_ROWS));
    installation = runningInstallation(built);
  });
  after(() => {
    removeInstallation();
  });
  beforeEach(async () => {
    const made = makeExecutor();
    ({ base } = made);
    tree = new Tree(built, made.configuration);
    await tree.ready();
  });
  afterEach(async () => {
    await tree.stop();
    fs.rmSync(base, { recursive: true });
  });

  it('S-001 every thread of every running process is as the table says, and the kernel shows no other process', () => {
    const inspection = inspectTree(installation, tree.configuration);
    assert.deepEqual(inspection.differences, []);
    assert.equal(inspection.supervisor, tree.process.pid);
    assert.deepEqual(
      inspection.processes.map(({ row }) => row).toSorted((one, other) => String(one).localeCompare(String(other))),
      ['daemon', 'key-store', 'link', 'supervisor', 'workspace'],
    );
    for (const { row, threads, digests } of inspection.processes) {
      assert.ok(threads.length > 1);
      if (row !== 'supervisor') assert.equal(digests?.recorded, digests?.expected);
    }
  });

  it('promote gets root and draft as open folders and no path, environment or output of its starter', async () => {
    fs.mkdirSync(path.join(tree.configuration.stateDir, 'drafts/0000002a'), { mode: 0o700 });
    tree.order('start', 'promote', 42);
    await tree.heard('promote', '{');
    const inspection = inspectTree(installation, tree.configuration);
    assert.deepEqual(inspection.differences, []);
    const promote = inspection.processes.find(({ row }) => row === 'promote');
    assert.equal(promote?.slot, 42);
    const cmdline = fs.readFileSync(`/proc/${promote?.pid}/cmdline`, 'utf8');
    const environment = fs.readFileSync(`/proc/${promote?.pid}/environ`, 'utf8');
    assert.ok(!cmdline.includes(base) && !environment.includes(base));
    tree.send('to promote exit 0');
    const report = await tree.reported('promote ended', ended('promote'));
    assert.deepEqual(
      { ...report },
      {
        report: 'ended',
        row: 'promote',
        slot: 42,
        meaning: 'asked for',
        code: 0,
        signal: undefined,
        next: 'ended',
        recent: 0,
        waitMs: 0,
      },
    );
  });

  it('a root that was moved into a folder of the executor meanwhile is given to no row', async () => {
    const { root, stateDir } = tree.configuration;
    fs.renameSync(root, path.join(stateDir, 'moved'));
    const number = tree.order('start', 'promote', 0);
    const refused = await tree.reported('an answer', (report) => 'number' in report && report.number === number);
    assert.equal(refused.report === 'refused' && refused.reason, 'could not be started');
    fs.renameSync(path.join(stateDir, 'moved'), root);
    const again = tree.order('start', 'promote', 0);
    const started = await tree.reported('a start', (report) => 'number' in report && report.number === again);
    assert.equal(started.report, 'started');
  });

  it('records go to the state folder that was opened, whatever stands at its path later', async () => {
    const { stateDir } = tree.configuration;
    fs.renameSync(stateDir, `${stateDir}-moved`);
    fs.mkdirSync(path.join(stateDir, 'audit'), { recursive: true });
    tree.send('to link exit 9');
    await tree.heard('link', '{', 1);
    assert.deepEqual(fs.readdirSync(path.join(stateDir, 'audit')), []);
    assert.ok(fs.existsSync(path.join(`${stateDir}-moved`, 'audit', `${tree.pidOf('link')}.json`)));
  });

  it('a second supervisor on one state folder says DAEMON_ALREADY_RUNNING and changes nothing', async () => {
    const second = new Tree(built, tree.configuration);
    assert.equal(await second.exited, 75);
    assert.match(second.log, /DAEMON_ALREADY_RUNNING/);
    assert.deepEqual(inspectTree(installation, tree.configuration).differences, []);
  });

  it('S-013 an exit, a crash, a launch that failed and a policy violation are told apart', async () => {
    tree.send('to link exit 7');
    const exit = await tree.reported('link ended', ended('link'));
    assert.deepEqual(exit.report === 'ended' && [exit.meaning, exit.code, exit.next], ['exit', 7, 'restarting']);
    process.kill(tree.pidOf('key-store'), 'SIGSEGV');
    const crash = await tree.reported('key-store ended', ended('key-store'));
    assert.deepEqual(crash.report === 'ended' && [crash.meaning, crash.signal], ['crash', 'SIGSEGV']);
    fs.rmSync(path.join(tree.configuration.stateDir, 'run/promote.sock'));
    tree.order('start', 'promote', 0);
    const launch = await tree.reported('promote ended', ended('promote'));
    assert.deepEqual(launch.report === 'ended' && [launch.meaning, launch.code, launch.next], [
      'launch failed',
      105,
      'ended',
    ]);
    tree.send('to workspace call perf_event_open');
    const violation = await tree.reported('workspace ended', ended('workspace'));
    assert.deepEqual(violation.report === 'ended' && [violation.meaning, violation.signal, violation.next], [
      'policy violation',
      'SIGSYS',
      'ended',
    ]);
  });

  it('a row that fails starts again after growing waits, and a violation does not start it again', async () => {
    for (const round of [0, 1, 2]) {
      await tree.heard('link', '{', round);
      tree.send('to link exit 9');
      await until(
        `link ended ${round + 1} times`,
        () => tree.reports.filter((report) => ended('link')(report)).length > round || undefined,
      );
    }
    const waits = tree.reports.flatMap((report) =>
      report.report === 'ended' && report.row === 'link' ? [report.waitMs] : [],
    );
    assert.deepEqual(waits, [100, 200, 400]);
    await tree.heard('link', '{', 3);
    tree.send('to link exit 64');
    const violation = await tree.reported(
      'a violation',
      (report) => report.report === 'ended' && report.meaning === 'protocol violation',
    );
    assert.equal(violation.report === 'ended' && violation.next, 'ended');
  });

  it('a violation stays one while the row is being ended: it is told, and a daemon that is gone is no excuse', async () => {
    tree.send('to link when ended exit 64');
    await tree.heard('link', 'ready');
    tree.send('to workspace when-ended perf_event_open');
    await tree.heard('workspace', 'ready');
    tree.order('end', 'workspace', 0);
    const called = await tree.reported('workspace ended', ended('workspace'));
    assert.deepEqual(called.report === 'ended' && [called.meaning, called.signal, called.next], [
      'policy violation',
      'SIGSYS',
      'ended',
    ]);
    assert.equal(await tree.stop(), 64);
    assert.match(tree.log, /link ended: protocol violation \(64\), ended/);
  });

  it('an ending that was ordered and is no violation was asked for', async () => {
    tree.order('end', 'link', 0);
    const report = await tree.reported('link ended', ended('link'));
    assert.deepEqual(report.report === 'ended' && [report.meaning, report.next], ['asked for', 'ended']);
    assert.equal(await tree.stop(), 0);
  });

  it('an order for the supervisor, the daemon, a row with a slot it has not, or a missing draft is refused with its reason', async () => {
    const cases = [
      [tree.order('start', 'supervisor', 0), 'row may not be ordered'],
      [tree.order('end', 'daemon', 0), 'row may not be ordered'],
      [tree.order('start', 'link', 3), 'row may not be ordered'],
      [tree.order('start', 'link', 0), 'already running'],
      [tree.order('end', 'promote', 1), 'not running'],
      [tree.order('start', 'promote', 77), 'slot has no folder'],
    ] as const;
    for (const [number, reason] of cases) {
      const answer = await tree.reported(
        `answer ${number}`,
        (report) => report.report === 'refused' && report.number === number,
      );
      assert.equal(answer.report === 'refused' && answer.reason, reason);
    }
  });

  it('bytes from the daemon that are no order end everything as a violation', async () => {
    const pids = ROW_NAMES.map((row) => tree.pidOf(row)).filter((pid) => pid > 0);
    tree.send(`record ${'ff'.repeat(32)}`);
    assert.equal(await tree.exited, 64);
    for (const pid of pids) await until('the rows are gone', () => startTicksOf(pid) === undefined || undefined);
  });

  it("the daemon's end ends everything, and a killed supervisor takes every row with it", async () => {
    const pids = ['link', 'key-store', 'workspace'].map((row) => tree.pidOf(row));
    tree.process.kill('SIGKILL');
    assert.equal(await tree.exited, 'SIGKILL');
    for (const pid of pids) await until('the rows are gone', () => startTicksOf(pid) === undefined || undefined);
    const again = new Tree(built, tree.configuration);
    await again.ready();
    again.send('exit 3');
    assert.equal(await again.exited, 69);
  });

  it('an altered bundle is not started', async () => {
    // Root’s copies are shared by what was built from the same sources; one program more makes this one nobody else’s.
    const own = await installForTest({ ...FIXTURE_ROWS, spare: 'test/fixtures/roles/idle.ts' });
    const copy = runningInstallation(own.installation);
    const made = makeExecutor();
    const other = new Tree(own.installation, made.configuration);
    try {
      await other.ready();
      fs.appendFileSync(path.join(copy.folder, 'link.mjs'), '\n');
      other.send('to link exit 9');
      const refused = await other.reported(
        'link refused',
        (report) => report.report === 'refused' && report.row === 'link',
      );
      assert.equal(refused.report === 'refused' && refused.reason, 'installation altered');
    } finally {
      await other.stop();
      fs.rmSync(copy.folder, { recursive: true });
      own.remove();
      fs.rmSync(made.base, { recursive: true });
    }
  });

  it('without Landlock in the kernel no row starts, and the sentence names the kernel to install', () => {
    const made = makeExecutor();
    const old = path.join(import.meta.dirname, '../../fixtures/old-kernel.ts');
    const supervisor = path.join(built.folder, 'supervisor.mjs');
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', old, 'landlock_create_ruleset', supervisor, made.configuration.stateDir],
      { encoding: 'utf8' },
    );
    assert.equal(status, 71);
    assert.match(stderr, /launch stopped at kernel \(ENOSYS\): .*install Linux 6\.2/);
    assert.deepEqual(fs.readdirSync(path.join(made.configuration.stateDir, 'audit')), []);
    fs.rmSync(made.base, { recursive: true });
  });

  it('S-021 UV_USE_IO_URING in the environment of the supervisor is refused', async () => {
    const made = makeExecutor();
    const other = new Tree(built, made.configuration, { UV_USE_IO_URING: '1' });
    assert.equal(await other.exited, 78);
    assert.match(other.log, /ENVIRONMENT_UNSAFE/);
    fs.rmSync(made.base, { recursive: true });
  });
});
