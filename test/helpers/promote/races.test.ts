import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { recoverHere } from '../../fakes/promote-here.ts';
import { attach, hasStrace } from '../../fakes/killer.ts';
import { applyPlainly } from '../../fakes/plain-promote.ts';
import { asking, PromotionScene, timeless } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { skipBecause } from '../../skip.ts';

/** How long the swapper runs in the suite, in ms; the campaign lets it run on. */
const RACE_MS = 3000;

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('what was waited for did not come');
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

/** Everything below a folder, for trees that must not change at all. */
function contentsOf(folder: string): Record<string, string> {
  const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map((entry) => {
      const file = path.join(entry.parentPath, entry.name);
      return [path.relative(folder, file), fs.readFileSync(file, 'utf8')];
    }),
  );
}

describe('a folder is moved or swapped under a promotion', function () {
  this.timeout(180_000);
  let installation: RealInstallation;
  let scene: PromotionScene;
  let swapper: ChildProcess | undefined;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  afterEach(async () => {
    const running = swapper;
    swapper = undefined;
    if (running !== undefined && running.exitCode === null && running.signalCode === null) {
      running.kill('SIGKILL');
      await new Promise((resolve) => void running.once('exit', resolve));
    }
    scene.remove();
  });

  function prepare(asCaller: boolean): void {
    scene = new PromotionScene({ asCaller });
    scene.folderAt('work');
    scene.put('work/file', 'old');
    fs.mkdirSync(path.join(scene.folder, 'outside'), { mode: 0o777 });
    fs.chmodSync(path.join(scene.folder, 'outside'), 0o777);
    scene.draftOf({ 'work/file': { file: 'new' }, 'work/made': { file: 'made' } });
  }

  it('S-138 a folder that leaves the root between open and rename gets nothing: noticed, undone, restored', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    for (const isConfined of [true, false]) {
      if (!isConfined) scene.remove();
      prepare(!isConfined);
      const moved = path.join(scene.folder, 'outside', 'work');
      // renames: mark, journal, then the new file, which waits
      const delay = 'renameat2:delay_enter=1500000:when=7';
      let moving = Promise.resolve();
      const onStart = (pid: number): void => {
        moving = until(() => isPlacingIn(pid, scene)).then(() => fs.renameSync(scene.at('work'), moved));
      };
      const applied = isConfined
        ? await applyConfined(delay, onStart)
        : (await applyPlainly(scene, [delay], [], onStart)).applied;
      await moving;
      assert.ok(applied?.outcome === 'rolled-back', JSON.stringify(applied));
      assert.equal(applied.code, 'PROMOTION_UNSAFE_PATH');
      assert.deepEqual(contentsOf(moved), { file: 'old' });
      assert.deepEqual(contentsOf(scene.root), {});
    }
  });

  async function applyConfined(delay: string, onStart: (pid: number) => void) {
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    const tracer = await attach(running.pid, [delay]);
    onStart(running.pid);
    const reply = await running.client.request('promote.apply', { approval: scene.approve() }, asking);
    running.client.close();
    await running.exited;
    await tracer.detach();
    return reply;
  }

  it('a program that swaps a folder and a link in a loop: nothing is written outside', async () => {
    prepare(false);
    const outside = path.join(scene.folder, 'outside');
    fs.mkdirSync(path.join(outside, 'decoy'));
    fs.writeFileSync(path.join(outside, 'decoy', 'file'), 'old');
    fs.chmodSync(path.join(outside, 'decoy'), 0o777);
    scene.give(path.join(outside, 'decoy'), path.join(outside, 'decoy', 'file'));
    fs.symlinkSync(path.join(outside, 'decoy'), scene.at('link'));
    swapper = spawn(process.execPath, ['-e', SWAPPER, scene.root], { stdio: ['ignore', 'ignore', 'inherit'] });
    const outcomes = new Map<string, number>();
    const deadline = Date.now() + RACE_MS;
    for (let round = 0; Date.now() < deadline; round += 1) {
      const reply = await scene.apply(installation);
      const outcome = 'code' in reply ? reply.code : reply.outcome;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      assert.deepEqual(contentsOf(outside), { 'decoy/file': 'old' }, `round ${round}: ${outcome}`);
      if (reply.outcome === 'promoted') break;
    }
    const running = swapper;
    running.kill('SIGKILL');
    await new Promise((resolve) => void running.once('exit', resolve));
    const now = contentsOf(scene.root);
    // the swapper was ended anywhere: the folder has one of its three names
    const names = Object.keys(now)
      .map((name) => `${path.basename(name)} ${now[name]}`)
      .toSorted();
    const isOld = names.join() === 'file old';
    const isNew = names.join() === 'file new,made made';
    assert.ok(isOld || isNew, JSON.stringify([now, [...outcomes]]));
    assert.deepEqual(
      [...timeless(scene.listing()).keys()].filter((name) => name.startsWith('.nessie')),
      [],
    );
  });

  it('the same swapper leads a plain write by path outside', async () => {
    prepare(false);
    const outside = path.join(scene.folder, 'outside');
    fs.symlinkSync(outside, scene.at('link'));
    swapper = spawn(process.execPath, ['-e', SWAPPER, scene.root], { stdio: ['ignore', 'ignore', 'inherit'] });
    await until(() => {
      try {
        fs.writeFileSync(scene.at('work/escaped'), 'x');
      } catch {
        // the name is missing for a moment while the swapper renames
      }
      return fs.existsSync(path.join(outside, 'escaped'));
    });
  });

  it('a recovery, too, follows no folder out of the root', async function () {
    if (!hasStrace()) skipBecause(this, 'strace');
    prepare(true);
    await applyPlainly(scene, ['renameat2:signal=KILL:when=9']);
    const moved = path.join(scene.folder, 'outside', 'work');
    fs.renameSync(scene.at('work'), moved);
    fs.symlinkSync(moved, scene.at('work'));
    const left = contentsOf(moved);
    assert.equal(recoverHere(scene).outcome, 'needs-attention');
    assert.deepEqual(contentsOf(moved), left);
  });
});

/** Exchanges `work` and `link` by three renames, without end. */
const SWAPPER = `
const fs = require('node:fs');
process.chdir(process.argv[1]);
for (;;) {
  fs.renameSync('work', 'aside');
  fs.renameSync('link', 'work');
  fs.renameSync('aside', 'link');
}
`;

/** Whether promote holds the folder open while its journal is prepared: it is about to rename in it. */
function isPlacingIn(pid: number, scene: PromotionScene): boolean {
  if (!fs.existsSync(path.join(scene.own, 'journal.prepared'))) return false;
  const folder = `/proc/${pid}/fd`;
  return fs
    .readdirSync(folder)
    .some((descriptor) => linkOf(path.join(folder, descriptor)) === String(scene.at('work')));
}

function linkOf(descriptor: string): string | undefined {
  try {
    return fs.readlinkSync(descriptor);
  } catch {
    // closed since the folder was listed
    return undefined;
  }
}
