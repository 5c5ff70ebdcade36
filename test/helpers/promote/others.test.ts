import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { HelperRefused } from '../../../actors/helper-client.ts';
import { recover } from '../../../helpers/promote/recover.ts';
import { attach, hasStrace } from '../../fakes/killer.ts';
import type { Tracer } from '../../fakes/killer.ts';
import { applyPlainly } from '../../fakes/plain-promote.ts';
import { asking, PromotionScene, timeless } from '../../fakes/promotion-scene.ts';
import type { Running, Wanted } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { skipBecause } from '../../skip.ts';

/** The owner's log is not what is looked at here. */
const log = (): void => undefined;

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('what was waited for did not come');
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

/** Whether somebody holds a lease on a file (proc_locks(5)). */
function isLeased(file: Buffer): boolean {
  const { ino } = fs.statSync(file);
  return new RegExp(`LEASE .*:${ino} `).test(fs.readFileSync('/proc/locks', 'latin1'));
}

/** A shell that is ready to append to a file the moment that it is told to, and how it is told. */
async function writerOf(file: Buffer): Promise<{ readonly go: () => Promise<unknown> }> {
  const shell = spawn('sh', ['-c', 'echo ready; read go; printf edit >>"$0"', String(file)]);
  await new Promise((resolve) => void shell.stdout.once('data', resolve));
  return {
    go: () => {
      const ended = new Promise((resolve) => void shell.once('exit', resolve));
      shell.stdin.end('go\n');
      return ended;
    },
  };
}

const isUnsettled = (error: unknown): boolean => error instanceof HelperRefused && error.code === 'RECOVERY_REQUIRED';

const many = (count: number): Record<string, Wanted> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`many${String(index).padStart(4, '0')}`, { file: 'x' }]),
  );

describe('others work in the tree during a promotion', function () {
  this.timeout(180_000);
  let installation: RealInstallation;
  let scene: PromotionScene;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  beforeEach(() => {
    scene = new PromotionScene();
  });
  afterEach(() => scene.remove());

  it('a file that is open for writing is in use, and everything is restored', async () => {
    scene.put('a', 'old a');
    scene.put('log', 'old');
    scene.draftOf({ a: { file: 'new a' }, log: { file: 'new' }, made: { file: 'made' } });
    const before = scene.listing();
    const writer = fs.openSync(scene.at('log'), 'a');
    const reply = await scene.apply(installation);
    assert.deepEqual(reply, { outcome: 'rolled-back', code: 'PROMOTION_IN_USE', path: 'log', kept: [] });
    assert.deepEqual(scene.listing(), before);
    fs.closeSync(writer);
    assert.equal((await scene.apply(installation)).outcome, 'promoted');
  });

  it('a file that is open for reading is replaced, and its reader keeps the old content', async () => {
    scene.put('file', 'old');
    scene.draftOf({ file: { file: 'new' } });
    const reader = fs.openSync(scene.at('file'), 'r');
    assert.equal((await scene.apply(installation)).outcome, 'promoted');
    assert.equal(fs.readFileSync(reader, 'utf8'), 'old');
    fs.closeSync(reader);
  });

  it('without leases the same writer is not noticed: its old file then waits a day, and its edit is not lost', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    const plain = new PromotionScene({ asCaller: true });
    try {
      plain.put('log', 'old');
      plain.draftOf({ log: { file: 'new' } });
      const writer = fs.openSync(plain.at('log'), 'a');
      const { applied } = await applyPlainly(plain, ['fcntl:error=EINVAL'], ['fcntl']);
      assert.equal(applied?.outcome, 'promoted');
      fs.writeSync(writer, ' and an edit');
      fs.closeSync(writer);
      assert.equal(fs.readFileSync(plain.at('log'), 'utf8'), 'new');
      const stage = fs.readdirSync(plain.root).find((name) => name.startsWith('.nessie-stage-'));
      assert.equal(fs.readFileSync(plain.at(`${stage}/0`), 'utf8'), 'old and an edit');
      const scene = { own: fs.openSync(plain.own, 'r'), root: fs.openSync(plain.root, 'r') };
      const now = Date.now();
      assert.equal(recover(scene, { bootId: 'this boot', now, log }).outcome, 'nothing-to-do');
      assert.ok(fs.existsSync(plain.at(String(stage))), 'it stays while its day has not passed');
      assert.equal(recover(scene, { bootId: 'this boot', now: now + 86_400_000, log }).outcome, 'nothing-to-do');
      assert.deepEqual(fs.readdirSync(plain.root), ['log']);
      const [id] = fs.readdirSync(path.join(plain.own, 'kept'));
      assert.equal(fs.readFileSync(path.join(plain.own, 'kept', String(id), '0'), 'utf8'), 'old and an edit');
      for (const descriptor of Object.values(scene)) fs.closeSync(descriptor);
    } finally {
      plain.remove();
    }
  });

  it('a writer that waits for the lease finds its own file again, and the promotion is taken back', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    scene.put('a', 'old a');
    scene.put('b', 'old b');
    scene.draftOf({ a: { file: 'new a' }, b: { file: 'new b' } });
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    // renames: mark, journal, a, then b; the lease on b is held while its exchange waits
    const writer = await writerOf(scene.at('b'));
    const tracer = await attach(running.pid, ['renameat2:delay_enter=2000000:when=8']);
    const applied = running.client.request('promote.apply', { approval: scene.approve() }, asking);
    await until(() => isLeased(scene.at('b')));
    const written = writer.go();
    const reply = await applied;
    await written;
    running.client.close();
    await running.exited;
    await tracer.detach();
    assert.deepEqual(reply, { outcome: 'rolled-back', code: 'PROMOTION_IN_USE', path: 'b', kept: [] });
    assert.equal(fs.readFileSync(scene.at('a'), 'utf8'), 'old a');
    assert.equal(fs.readFileSync(scene.at('b'), 'utf8'), 'old bedit');
    assert.deepEqual(fs.readdirSync(scene.root).toSorted(), ['a', 'b']);
  });

  it('somebody else creates one of the new files first: theirs survives, ours go', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    scene.draftOf({ apple: { file: 'ours' }, zebra: { file: 'ours' } });
    const { running, tracer, applied } = await held('linkat:delay_enter=1500000:when=2');
    await until(() => fs.readdirSync(scene.root).length > 0);
    scene.put('zebra', 'theirs');
    const reply = await applied;
    await end(running, tracer);
    assert.deepEqual(reply, { outcome: 'rolled-back', code: 'PROMOTION_CONFLICT', path: 'zebra', kept: [] });
    assert.deepEqual(fs.readdirSync(scene.root), ['zebra']);
    assert.equal(fs.readFileSync(scene.at('zebra'), 'utf8'), 'theirs');
  });

  it('N-154 a placed file that a person edits before the roll back keeps the edit, and the old content is kept', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    scene.put('a', 'old a');
    scene.put('z', 'old z');
    scene.draftOf({ a: { file: 'new a' }, made: { file: 'made' }, z: { file: 'new z' } });
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    // steps: made, a, z; the third waits, so that the first two can be edited after they were placed
    const writer = await writerOf(scene.at('z'));
    const tracer = await attach(running.pid, ['renameat2:delay_enter=2000000:when=9']);
    const applied = running.client.request('promote.apply', { approval: scene.approve() }, asking);
    await until(() => isLeased(scene.at('z')));
    fs.appendFileSync(scene.at('a'), ' edited');
    fs.appendFileSync(scene.at('made'), ' edited');
    const written = writer.go();
    const reply = await applied;
    await written;
    running.client.close();
    await running.exited;
    await tracer.detach();
    assert.ok(reply.outcome === 'rolled-back');
    assert.deepEqual([reply.code, reply.path], ['PROMOTION_IN_USE', 'z']);
    assert.deepEqual([...reply.kept].toSorted(), ['a', 'made']);
    assert.equal(fs.readFileSync(scene.at('a'), 'utf8'), 'new a edited');
    assert.equal(fs.readFileSync(scene.at('made'), 'utf8'), 'made edited');
    assert.equal(fs.readFileSync(scene.at('z'), 'utf8'), 'old zedit');
    assert.deepEqual(fs.readdirSync(scene.root).toSorted(), ['a', 'made', 'z']);
    const [kept] = fs.readdirSync(path.join(scene.own, 'kept'));
    const contents = fs.readdirSync(path.join(scene.own, 'kept', String(kept)));
    assert.deepEqual(
      contents.map((name) => fs.readFileSync(path.join(scene.own, 'kept', String(kept), name), 'utf8')),
      ['old a'],
    );
  });

  it('S-168 a third state at recovery is left alone, told, and blocks the next promotion until a person has seen it', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    scene.put('a', 'old a');
    scene.put('b', 'old b');
    scene.put('c', 'old c');
    scene.draftOf({ a: { file: 'new a' }, b: { file: 'new b' }, c: 'removed', d: { file: 'd' } });
    const before = scene.listing();
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    const tracer = await attach(running.pid, ['renameat2:signal=KILL:when=10']);
    await assert.rejects(running.client.request('promote.apply', { approval: scene.approve() }, asking));
    await running.exited;
    await tracer.detach();
    assert.equal(fs.readFileSync(scene.at('a'), 'utf8'), 'new a');
    fs.writeFileSync(scene.at('a'), 'mine');
    const recovered = await scene.recover(installation);
    assert.deepEqual(recovered, { outcome: 'needs-attention', conflicts: ['a'], promoted: [] });
    assert.equal(fs.readFileSync(scene.at('a'), 'utf8'), 'mine');
    const now = scene.listing();
    for (const name of ['b', 'c']) assert.deepEqual(now.get(name), before.get(name));
    assert.deepEqual([...timeless(now).keys()], ['.', 'a', 'b', 'c']);
    assert.deepEqual(await scene.recover(installation), recovered);
    await assert.rejects(scene.apply(installation), isUnsettled);

    const repairing = scene.start(installation);
    await repairing.client.request('promote.recover', { promotions: [] }, asking);
    const repaired = await repairing.client.request('promote.repair', { choice: 'restore' }, asking);
    assert.deepEqual(repaired, { outcome: 'restored', kept: ['a'] });
    repairing.client.close();
    await repairing.exited;
    assert.deepEqual(await scene.recover(installation), { outcome: 'nothing-to-do', conflicts: [], promoted: [] });
    scene.draftOf({ b: { file: 'newer b' } });
    assert.equal((await scene.apply(installation)).outcome, 'promoted');
  });

  it('a reader in a loop sees the old content or the new one, whole, and never none', async () => {
    const [old, fresh] = ['o'.repeat(100_000), 'n'.repeat(90_000)];
    scene.put('file', old);
    scene.draftOf({ ...many(300), file: { file: fresh } });
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    const ended = new AbortController();
    const applied = running.client.request('promote.apply', { approval: scene.approve() }, asking);
    void applied.finally(() => ended.abort()).catch(() => undefined);
    const seen = new Set<string>();
    while (!ended.signal.aborted) {
      seen.add(fs.readFileSync(scene.at('file'), 'utf8'));
      await new Promise((resolve) => void setImmediate(resolve));
    }
    assert.equal((await applied).outcome, 'promoted');
    seen.add(fs.readFileSync(scene.at('file'), 'utf8'));
    running.client.close();
    await running.exited;
    assert.ok(
      [...seen].every((content) => content === old || content === fresh),
      'no other content was seen',
    );
    assert.ok(seen.has(fresh));
  });

  it('a cancel before the commit restores everything, and after it changes nothing', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    scene.put('file', 'old');
    scene.draftOf({ ...many(20), file: { file: 'new' } });
    const before = scene.listing();
    const { running, tracer, applied } = await held(IN_MID_APPLY);
    await until(() => fs.existsSync(scene.at('many0000')));
    await running.client.request('promote.cancel', {}, asking);
    assert.deepEqual(await applied, { outcome: 'rolled-back', code: 'CANCELLED', kept: [] });
    await end(running, tracer);
    assert.deepEqual(scene.listing(), before);

    const second = scene.start(installation);
    await second.client.request('promote.recover', { promotions: [] }, asking);
    const reply = await second.client.request('promote.apply', { approval: scene.approve() }, asking);
    assert.equal(reply.outcome, 'promoted');
    const after = scene.listing();
    await second.client.request('promote.cancel', {}, asking);
    second.client.close();
    await second.exited;
    assert.deepEqual(scene.listing(), after);
  });

  it('a channel that ends in mid-apply takes everything back before the process ends', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    scene.draftOf(many(20));
    const before = scene.listing();
    const { running, tracer, applied } = await held(IN_MID_APPLY);
    applied.catch(() => undefined);
    await until(() => fs.existsSync(scene.at('many0000')));
    running.client.close();
    assert.deepEqual(await running.exited, { by: 'code', code: 0 });
    await tracer.detach();
    assert.deepEqual(scene.listing(), before);
  });

  /** Starts an apply with one of its calls held up. */
  async function held(delay: string) {
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    const tracer = await attach(running.pid, [delay]);
    const applied = running.client.request('promote.apply', { approval: scene.approve() }, asking);
    return { running, tracer, applied };
  }
});

async function end(running: Running, tracer: Tracer): Promise<void> {
  running.client.close();
  await running.exited;
  await tracer.detach();
}

/** Renames: mark, journal, then the new files; the fifth of them waits. */
const IN_MID_APPLY = 'renameat2:delay_enter=2000000:when=11';
