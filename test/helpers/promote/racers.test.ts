import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';

import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { editRace, moveRace, readRace, swapRace, waitRace, wholeContent } from '../../fakes/promotion-races.ts';
import type { EditPlan, Swapped, Way } from '../../fakes/promotion-races.ts';
import { filesBelow } from '../../fakes/folder-contents.ts';
import { Racer } from '../../fakes/racing.ts';
import { installRows, uidOf } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { applyCarelessly } from '../../fixtures/careless-apply.ts';
import type { Careless } from '../../fixtures/careless-apply.ts';
import { skipBecause } from '../../skip.ts';

/** Longest that a race goes on in the suite; `npm run campaign -- promoters` goes on until its counts are reached. */
const LIMIT_MS = 40_000;

/** Tries until something holds. */
async function untilIt(holds: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  while (!(await holds())) if (performance.now() > deadline) throw new Error(`${what} in ${LIMIT_MS} ms`);
}

/** Whether a promotion came so far that the person's tree was touched. */
const isDeep = ({ outcome }: { readonly outcome: string }): boolean => !outcome.startsWith('refused');

describe('programs race a promotion', function () {
  this.timeout(3 * LIMIT_MS);
  let installation: RealInstallation;
  let racer: Racer | undefined;
  const folders: string[] = [];

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  afterEach(async () => {
    await racer?.end();
    racer = undefined;
    for (const folder of folders.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
  });

  async function started(name: 'swapper' | 'person' | 'reader'): Promise<Racer> {
    racer = await Racer.start(name, uidOf(20));
    return racer;
  }

  /** A root for a careless program, of which the racers' uid may write everything. */
  function carelessRoot(): string {
    const { folder, root } = new PromotionScene();
    folders.push(folder);
    return root;
  }

  function give(...names: readonly string[]): void {
    const uid = uidOf(20);
    if (uid !== undefined) for (const name of names) fs.lchownSync(name, uid, uid);
  }

  /** Races until so many swaps fell into promotions and some of them came as far as the tree. */
  async function raceUntil(enough: number, race: (round: number) => Promise<Swapped>): Promise<void> {
    let [swaps, deep, round] = [0, 0, 0];
    await untilIt(async () => {
      const raced = await race(round);
      round += 1;
      swaps += raced.swaps;
      if (isDeep(raced)) deep += 1;
      return swaps >= enough && deep >= 2;
    }, `${enough} swaps, ${deep} promotions that came as far as the tree`);
  }

  for (const way of ['exchange', 'renames'] as const) {
    it(`a folder and a link swapped by ${way}, thousands of times during applies: nothing is written outside, a careless program writes there`, async () => {
      const swapper = await started('swapper');
      const rests = way === 'exchange' ? [0, 40, 200] : [40, 200, 2000];
      await raceUntil(way === 'exchange' ? 10_000 : 2000, (round) =>
        swapRace(installation, swapper, way, rests[round % rests.length] ?? 0),
      );
      await escapeCarelessly(swapper, way);
    });
  }

  async function escapeCarelessly(swapper: Racer, way: Way): Promise<void> {
    const root = carelessRoot();
    const [work, link, outside] = [path.join(root, 'work'), path.join(root, 'link'), path.join(root, '../outside')];
    for (const folder of [work, outside]) fs.mkdirSync(folder);
    fs.symlinkSync(outside, link);
    give(work, outside, link);
    await swapper.begin({ way, path: work, other: link, restUs: '40' });
    await untilIt(() => {
      try {
        applyCarelessly(root, [{ path: 'work/escaped', before: undefined, after: 'x' }]);
      } catch {
        // the check refuses, or the name is missing between two renames
      }
      return fs.readdirSync(outside).length > 0;
    }, 'the careless program did not write outside');
    await swapper.stop();
  }

  it('a folder that is moved out of the root and back, hundreds of times: nothing stays outside, a program that holds the folder open writes there', async () => {
    const swapper = await started('swapper');
    const rests = [100, 500, 2000];
    await raceUntil(500, (round) => moveRace(installation, swapper, rests[round % rests.length] ?? 0));
    const root = carelessRoot();
    const [work, away] = [path.join(root, 'work'), path.join(root, '../away')];
    fs.mkdirSync(work);
    give(work, path.dirname(root));
    const held = fs.openSync(work, 'r');
    const through = `/proc/self/fd/${held}`;
    await swapper.begin({ way: 'moves', path: work, other: away, restUs: '100' });
    const isAway = (): boolean => fs.readlinkSync(through) === path.resolve(away);
    await untilIt(() => {
      const wasAway = isAway();
      fs.writeFileSync(`${through}/escaped`, 'x');
      return wasAway && isAway();
    }, 'the careless program did not write outside');
    await swapper.stop();
    fs.closeSync(held);
  });

  const edits: readonly EditPlan[] = [
    { way: 'rename', from: 'staging', restUs: 20_000, size: 1000, edits: 3 },
    { way: 'rename', from: 'placing', restUs: 1000, size: 300, edits: 4 },
    { way: 'open', from: 'staging', restUs: 20_000, size: 1000, edits: 3 },
    { way: 'open', from: 'placing', restUs: 1000, size: 300, edits: 4 },
  ];
  for (const way of ['rename', 'open'] as const) {
    it(`a person saves by ${way} during applies: every edit is at its path or kept and told, a careless program loses one`, async () => {
      const person = await started('person');
      const plans = edits.filter((plan) => plan.way === way);
      let [done, round] = [0, 0];
      await untilIt(async () => {
        const plan = plans[round % plans.length];
        assert.ok(plan !== undefined);
        round += 1;
        done += (await editRace(installation, person, round, plan)).done;
        return done >= 16;
      }, `${done} edits`);
      await loseCarelessly(person, way);
    });
  }

  async function loseCarelessly(person: Racer, way: 'rename' | 'open'): Promise<void> {
    const names = Array.from({ length: 24 }, (_, index) => `file${index}`);
    const changes: Careless[] = names.map((name) => ({ path: name, before: 'old', after: 'new' }));
    await untilIt(async () => {
      const root = carelessRoot();
      for (const name of names) fs.writeFileSync(path.join(root, name), 'old');
      give(...names.map((name) => path.join(root, name)));
      const files = names.slice(8, 16).join(',');
      const where = { way, root, files, restUs: '500', round: '0', folder: root, from: '.begun' };
      await person.begin(where);
      applyCarelessly(root, changes, 'rename', () => fs.writeFileSync(path.join(root, '.begun'), ''));
      // What test/fixtures/racers/person.ts tells.
      const { edits: done } = (await person.stop()) as { edits: Record<string, string> };
      const tree = filesBelow(root);
      return Object.entries(done).some(([name, edit]) => tree.get(name)?.includes(edit) !== true);
    }, 'the careless program lost no edit');
  }

  it('an open for writing that waits on the lease: the promotion is taken back and the edit is in the file', async () => {
    const person = await started('person');
    let round = 0;
    await untilIt(async () => {
      round += 1;
      const { outcome, done, kept, waited } = await waitRace(installation, person, round);
      if (done === 0 || waited < 5) return false;
      assert.deepEqual({ outcome, kept }, { outcome: 'rolled-back PROMOTION_IN_USE', kept: 0 });
      return true;
    }, 'no open waited on a lease');
  });

  it('a descriptor that was opened before: the apply is taken back while it is open, a careless program loses what is written to it', async () => {
    const scene = new PromotionScene();
    folders.push(scene.folder);
    scene.put('file', 'old');
    scene.draftOf({ file: { file: 'new' } });
    const held = fs.openSync(scene.at('file'), 'r+');
    const reply = await scene.apply(installation);
    assert.deepEqual(reply, { outcome: 'rolled-back', code: 'PROMOTION_IN_USE', path: 'file', kept: [] });
    fs.writeSync(held, 'edit');
    assert.equal(fs.readFileSync(scene.at('file'), 'utf8'), 'edit');
    applyCarelessly(scene.root, [{ path: 'file', before: 'edit', after: 'new' }]);
    fs.writeSync(held, 'lost');
    fs.closeSync(held);
    assert.deepEqual(filesBelow(scene.root), new Map([['file', 'new']]));
  });

  it('a mapping that was made before and whose descriptor is closed: the apply is taken back, a careless program loses what is written to it', async function () {
    if (spawnSync('python3', ['-c', 'import mmap']).status !== 0) skipBecause(this, 'python3');
    const scene = new PromotionScene();
    folders.push(scene.folder);
    scene.put('file', 'old content');
    scene.draftOf({ file: { file: 'new' } });
    const mapper = await mapping(scene, 'edit');
    const reply = await scene.apply(installation);
    assert.deepEqual(reply, { outcome: 'rolled-back', code: 'PROMOTION_IN_USE', path: 'file', kept: [] });
    await mapper.write();
    assert.equal(fs.readFileSync(scene.at('file'), 'utf8'), 'editcontent');
    const late = await mapping(scene, 'lost');
    applyCarelessly(scene.root, [{ path: 'file', before: 'editcontent', after: 'new' }]);
    await late.write();
    assert.deepEqual(filesBelow(scene.root), new Map([['file', 'new']]));
  });

  it('a reader in a loop during hundreds of replacements sees whole content, a program that writes in place tears it', async () => {
    const reader = await started('reader');
    const { replaced, reads, changed } = await readRace(installation, reader, 300);
    assert.ok(reads > replaced && changed > 0, `${reads} reads, ${changed} files seen old and new`);
    const root = carelessRoot();
    const file = path.join(root, 'file');
    const contents = ['one ', 'other '].map((seed) => wholeContent(seed, 2_000_000));
    fs.writeFileSync(file, contents[0] ?? '');
    give(file);
    await untilIt(async () => {
      await reader.begin({ files: file });
      for (const after of contents) applyCarelessly(root, [{ path: 'file', before: undefined, after }], 'in-place');
      return Number((await reader.stop())['torn']) > 0;
    }, 'the careless program tore no read');
  });
});

/** A program that has a file mapped for writing and closed, and how it is told to write. */
async function mapping(scene: PromotionScene, edit: string): Promise<{ readonly write: () => Promise<void> }> {
  const program = path.resolve(import.meta.dirname, '../../fixtures/racers/mapper.py');
  const child = spawn('python3', [program, String(scene.at('file')), edit], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return {
    write: async () => {
      const exited = once(child, 'exit');
      child.stdin.end('\n');
      const [code] = await exited;
      assert.equal(code, 0);
    },
  };
}
