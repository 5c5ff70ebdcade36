import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { askDaemon } from '../../daemon/cli/owner-client.ts';
import type { CommandId, RunId } from '../../helpers/protocol/ids.ts';
import { tryLock } from '../../helpers/runtime/native-locks.ts';
import { attach, hasStrace } from '../fakes/killer.ts';
import type { Call } from '../fakes/killer.ts';
import { skipBecause } from '../skip.ts';
import type { FakeControlPlane } from '../fakes/fake-control-plane.ts';
import { failureSchema } from '../../helpers/protocol/operations.ts';
import { isDead, isFrozen, signal } from '../faults/processes.ts';
import { online, pairedExecutor } from '../fixtures/executor.ts';
import type { RealExecutor } from '../fixtures/executor.ts';
import { idOf, newRun, Promotions } from '../fixtures/promotions.ts';
import { until } from '../fixtures/until.ts';

describe('a promotion on a real executor', function () {
  this.timeout(120_000);
  let plane: FakeControlPlane;
  let executor: RealExecutor;
  let promotions: Promotions;
  let end: () => Promise<void>;
  /** Locks that a test holds, by what they are on. */
  const locks = new Map<string, number>();

  before(async () => {
    ({ plane, executor, end } = await pairedExecutor());
    promotions = new Promotions(plane, executor);
  });
  after(() => end());
  afterEach(async () => {
    plane.beHonest();
    for (const where of locks.keys()) unlock(where);
    await executor.is('online');
    await until('workspace is there', async () => {
      const { rows } = await executor.status();
      return rows.find(({ row }) => row === 'workspace')?.connected || undefined;
    });
  });

  const inRoot = (name: string): boolean => fs.existsSync(path.join(executor.root, name));

  for (const [what, runtimeMs] of [
    ['a cancel', 20_000],
    ['its time limit', 500],
  ] as const) {
    it(`that takes long to end after ${what} ends as it truly was, not as unknown`, async () => {
      const run = newRun();
      await promotions.draft(run, `${run}.txt`, 'draft');
      const frame = await promotions.approved(run, { maximumRuntimeMs: runtimeMs });
      plane.deliver(frame);
      const promote = await promotions.freeze();
      if (runtimeMs > 1000) await promotions.cancel(idOf(frame));
      await until(
        'the grace to pass',
        async () => (await executor.traced()).includes(graceOf(idOf(frame))) || undefined,
      );
      signal(promote, 'SIGCONT');
      const { ending } = await promotions.told(idOf(frame));
      assert.ok(ending === 'succeeded' || ending === 'cancelled' || ending === 'expired', `ended ${ending}`);
      assert.equal(inRoot(`${run}.txt`), ending === 'succeeded');
    });
  }

  it('whose promote dies before its commit is told as rolled back, and the tree is the old one', async () => {
    const { run, id } = await stagedAndHeld();
    signal(promotions.pid() ?? 0, 'SIGKILL');
    const { ending, result } = await promotions.told(id);
    assert.equal(ending, 'failed');
    assert.equal((result as { code: string }).code, 'PROMOTION_IO_FAILURE');
    assert.deepEqual(placed(run), []);
  });

  it('whose promote dies with the commit made and its sync to come is told as promoted, since recovery goes forward', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    const seen = await tracedPromotion([]);
    assert.equal(seen.ending, 'succeeded');
    const commit = seen.calls.indexOf(seen.calls.filter(({ name }) => name === 'renameat2').at(-2) ?? never());
    const sync = seen.calls[commit + 1];
    assert.equal(sync?.name, 'fsync');
    const died = await tracedPromotion([`fsync:signal=KILL:when=${sync.nth}`]);
    assert.equal(died.calls.at(-1)?.nth, sync.nth, 'it died there');
    assert.equal(died.ending, 'succeeded');
    assert.ok(inRoot(died.file));
  });

  it('that died and that no recovery can settle now is unknown, not failed, and is settled as soon as one can', async () => {
    const { run, id } = await stagedAndHeld();
    signal(promotions.pid() ?? 0, 'SIGKILL');
    await lock(executor.root);
    await until('its outcome is recorded', async () => (await outcomeOf(id)) === 'unknown' || undefined);
    assert.equal(
      plane.told.find(({ command, ending }) => command === id && ending !== undefined),
      undefined,
    );
    assert.notDeepEqual(leftIn(executor.root), [], 'it is not settled yet');
    unlock(executor.root);
    await changeable(run);
    assert.deepEqual(placed(run), []);
    assert.deepEqual(leftIn(executor.root), []);
    assert.equal(await promoted('after.txt'), 'succeeded');
  });

  it('that ended while workspace died is told as it ended, and its draft is gone once workspace is back', async () => {
    const run = newRun();
    await promotions.draft(run, `${run}.txt`, 'draft');
    const frame = await promotions.approved(run);
    plane.deliver(frame);
    const promote = await promotions.freeze();
    signal(executor.pidOf('workspace'), 'SIGKILL');
    signal(promote, 'SIGCONT');
    assert.equal((await promotions.told(idOf(frame))).ending, 'succeeded');
    assert.ok(inRoot(`${run}.txt`));
    await gone(run);
    await changeable(run);
  });

  it('that was taken back while workspace died leaves a run that can be changed', async () => {
    const { run, id } = await stagedAndHeld();
    signal(executor.pidOf('workspace'), 'SIGKILL');
    signal(promotions.pid() ?? never(), 'SIGKILL');
    assert.equal((await promotions.told(id)).ending, 'failed');
    await changeable(run);
    assert.ok((await drafted()).includes(run));
  });

  it('that the daemon’s death cut short leaves a run that can be changed and discarded, and the old tree', async () => {
    const { run } = await stagedAndHeld();
    await restart(executor.pidOf('daemon'));
    assert.deepEqual(placed(run), []);
    await changeable(run);
    await askDaemon(executor.places.stateDir, 'daemon.discard', { run });
    assert.ok(!(await drafted()).includes(run));
  });

  it('that was committed while nobody listened leaves no draft after the daemon’s death, and the new tree', async () => {
    const { run } = await stagedAndHeld();
    const [daemon, promote] = [executor.pidOf('daemon'), promotions.pid() ?? never()];
    signal(daemon, 'SIGSTOP');
    await until('the daemon stands still', () => isFrozen(daemon) || undefined);
    signal(promote, 'SIGCONT');
    await until('it is committed and cleaned', () => leftIn(executor.root).length === 0 || undefined);
    await restart(daemon);
    assert.equal(placed(run).length, FILES);
    await gone(run);
    await changeable(run);
  });

  it('that was cut short in a folder that somebody holds is waited for by a daemon that says why, stops and starts', async () => {
    const { run } = await stagedAndHeld();
    await executor.kill();
    await lock(executor.root);
    await executor.start();
    await until('it says why it waits', () => /RECOVERY_POSTPONED.*holds a lock/.test(executor.log) || undefined);
    assert.deepEqual([(await executor.status()).state, (await executor.status()).fault], ['recovering', null]);
    await executor.stop();
    await executor.start();
    await executor.is('recovering');
    assert.notDeepEqual(leftIn(executor.root), []);
    unlock(executor.root);
    await online(plane, executor);
    assert.deepEqual([placed(run), leftIn(executor.root)], [[], []]);
    await changeable(run);
  });

  it('that waits in a held folder hears the person: a repair is refused as busy, and leads on once the folder is free', async () => {
    const { run } = await stagedAndHeld();
    await executor.kill();
    await lock(executor.root);
    executor.log = '';
    await executor.start();
    await until('it says why it waits', () => /RECOVERY_POSTPONED/.test(executor.log) || undefined);
    await assert.rejects(repair('restore'), /BUSY/);
    unlock(executor.root);
    await repair('restore');
    await online(plane, executor);
    assert.deepEqual([placed(run), leftIn(executor.root)], [[], []]);
  });

  it('that is refused names its path within the bounds of a result, however long that is', async () => {
    const run = newRun();
    const [folder, name] = ['f'.repeat(250), 'n'.repeat(250)];
    fs.mkdirSync(path.join(executor.root, folder));
    const { uid, gid } = fs.statSync(executor.root);
    fs.chownSync(path.join(executor.root, folder), uid, gid);
    await promotions.draft(run, `${folder}/${name}`, 'draft');
    const frame = await promotions.approved(run);
    fs.writeFileSync(path.join(executor.root, folder, name), 'mine');
    plane.deliver(frame);
    const { result } = await promotions.told(idOf(frame));
    const failure = failureSchema.parse(result);
    assert.equal(failure.code, 'PROMOTION_CONFLICT');
    assert.match(failure.message ?? '', /^…f+\/n{250}$/);
  });

  it('that left nothing keeps no daemon from going online, whoever holds the folder', async () => {
    await executor.stop();
    await lock(executor.root);
    await executor.start();
    await online(plane, executor);
  });

  it('that is refused because another one has not ended leaves nothing behind that the next one meets', async () => {
    const [first, second] = [newRun(), newRun()];
    const own = path.join(executor.places.stateDir, 'promote', 'lock');
    await lock(own);
    for (const run of [first, second]) await promotions.draft(run, `${run}.txt`, 'draft');
    const refused = await promotions.approved(first);
    plane.deliver(refused);
    const { ending, result } = await promotions.told(idOf(refused));
    assert.equal(ending, 'failed');
    assert.match((result as { message: string }).message, /^BUSY/);
    unlock(own);
    const frame = await promotions.approved(second);
    plane.deliver(frame);
    assert.equal((await promotions.told(idOf(frame))).ending, 'succeeded');
    assert.deepEqual([inRoot(`${first}.txt`), inRoot(`${second}.txt`)], [false, true]);
  });

  it('whose journal was damaged is set aside by the person after a restore was refused', async () => {
    await executor.stop();
    damageJournal();
    await executor.start();
    assert.equal((await executor.is('error')).fault, 'JOURNAL_DAMAGED');
    await assert.rejects(repair('restore'), /set-aside/);
    await repair('set-aside');
    await executor.is('online');
    assert.equal(await promoted('again.txt'), 'succeeded');
  });

  it('that meets a damaged journal while the daemon is online is refused until the person repaired it there and then', async () => {
    damageJournal();
    const run = newRun();
    await promotions.draft(run, `${run}.txt`, 'draft');
    const frame = await promotions.approved(run);
    plane.deliver(frame);
    const { ending, result } = await promotions.told(idOf(frame));
    assert.equal(ending, 'failed');
    assert.equal((result as { code: string }).code, 'PROMOTION_RECOVERY_REQUIRED');
    assert.equal((await repair('set-aside')).state, 'online');
    assert.equal(await promoted('there.txt'), 'succeeded');
    await assert.rejects(repair('set-aside'), /nothing to repair/);
  });

  const repair = (journal: 'restore' | 'set-aside') =>
    askDaemon(executor.places.stateDir, 'daemon.repair', { journal });

  /** Puts a journal in promote's folder that nobody can believe. */
  function damageJournal(): void {
    const journal = path.join(executor.places.stateDir, 'promote', 'journal.prepared');
    fs.writeFileSync(journal, 'damaged', { mode: 0o600 });
    const { uid, gid } = fs.statSync(path.dirname(journal));
    fs.chownSync(journal, uid, gid);
  }

  /** A promotion of many files whose promote stands still with its stage in the tree, before its commit. */
  async function stagedAndHeld(): Promise<{ run: RunId; id: CommandId }> {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const run = newRun();
      for (let index = 0; index < FILES; index += 1)
        await promotions.draft(run, `${run}-${index}.txt`, 'draft\n'.repeat(200));
      const frame = await promotions.approved(run);
      plane.deliver(frame);
      // The stage stands for some milliseconds only: every turn of the loop looks, and it may have gone before the process stands still.
      await staged();
      if (promotions.pid() !== undefined) {
        const promote = await promotions.freeze();
        const isCommitted = fs.existsSync(path.join(executor.places.stateDir, 'promote', 'journal.committed'));
        if (leftIn(executor.root).length > 0 && !isCommitted) return { run, id: idOf(frame) };
        signal(promote, 'SIGCONT');
      }
      await promotions.told(idOf(frame));
    }
    return assert.fail('no promotion was held between its stage and its commit');
  }

  async function staged(): Promise<void> {
    const deadline = performance.now() + 20_000;
    while (leftIn(executor.root).length === 0) {
      assert.ok(performance.now() < deadline, 'no stage came');
      await new Promise((resolve) => void setImmediate(resolve));
    }
  }

  /** One promotion of one file with strace on its promote; the calls that changed something, and how it was told to end. */
  async function tracedPromotion(inject: readonly string[]): Promise<{ file: string; calls: Call[]; ending: unknown }> {
    const run = newRun();
    await promotions.draft(run, `${run}.txt`, 'draft');
    const frame = await promotions.approved(run);
    plane.deliver(frame);
    const promote = await promotions.freeze();
    const tracer = await attach(promote, inject);
    signal(promote, 'SIGCONT');
    const { ending } = await promotions.told(idOf(frame));
    await tracer.detach();
    return { file: `${run}.txt`, calls: tracer.calls(), ending };
  }

  /** Promotes one new file in a run of its own; how it ended. */
  async function promoted(name: string): Promise<string | undefined> {
    const run = newRun();
    await promotions.draft(run, name, 'draft');
    const frame = await promotions.approved(run);
    plane.deliver(frame);
    return (await promotions.told(idOf(frame))).ending;
  }

  /** Takes the lock of a file or folder as soon as nobody has it. */
  async function lock(where: string): Promise<void> {
    const descriptor = fs.openSync(where, 'r');
    locks.set(where, descriptor);
    await until('the lock is free', () => tryLock(descriptor) || undefined);
  }

  function unlock(where: string): void {
    fs.closeSync(locks.get(where) ?? never());
    locks.delete(where);
  }

  /** Kills the daemon, and starts the executor again once nothing of it is left. */
  async function restart(daemon: number): Promise<void> {
    const promote = promotions.pid();
    signal(daemon, 'SIGKILL');
    await until('promote is dead', () => promote === undefined || isDead(promote) || undefined);
    await executor.kill();
    await executor.start();
    await online(plane, executor);
  }

  /** Waits until a run takes a change again. */
  async function changeable(run: RunId): Promise<void> {
    await until('the run can be changed', () =>
      promotions.draft(run, `${newRun()}.txt`, 'more').then(
        () => true,
        () => undefined,
      ),
    );
  }

  /** Waits until a run has no draft. */
  async function gone(run: RunId): Promise<void> {
    await until('workspace says that the draft is gone', () =>
      drafted().then(
        (runs) => !runs.includes(run) || undefined,
        () => undefined,
      ),
    );
  }

  async function drafted(): Promise<string[]> {
    const { drafts } = await askDaemon(executor.places.stateDir, 'daemon.drafts', {});
    return drafts.map(({ run }) => run);
  }

  async function outcomeOf(id: CommandId): Promise<string | null | undefined> {
    const { commands } = await askDaemon(executor.places.stateDir, 'daemon.commands', { limit: 100 });
    return commands.find(({ command }) => command === id)?.outcome;
  }

  function placed(run: RunId): string[] {
    return fs.readdirSync(executor.root).filter((name) => name.startsWith(run));
  }
});

const FILES = 40;

/** Stage folders in a root. */
function leftIn(root: string): string[] {
  return fs.readdirSync(root).filter((name) => name.startsWith('.nessie-stage-'));
}

function never(): never {
  throw new TypeError('what was looked for is not there');
}

/** What a trace line says of a command whose helper did not stop in time. */
function graceOf(command: string): string {
  return `"actor":"command-${command}","event":{"type":"xstate.after.stopGrace`;
}
