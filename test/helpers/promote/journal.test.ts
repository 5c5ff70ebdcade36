import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { PromoteHandlers, PromoteRefused } from '../../../helpers/promote/handlers.ts';
import { JournalDamaged, readRecords, RecordWriter } from '../../../helpers/promote/journal-records.ts';
import { recover } from '../../../helpers/promote/recover.ts';
import type { Recovered } from '../../../helpers/promote/recover.ts';
import { repair } from '../../../helpers/promote/repair.ts';
import { fileTraps } from '../../fakes/file-traps.ts';
import { hasStrace } from '../../fakes/killer.ts';
import { applyPlainly } from '../../fakes/plain-promote.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import type { Listing, PromotionScene } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';
import { skipBecause } from '../../skip.ts';

/** The owner's log is not what is looked at here. */
const log = (): void => undefined;

type State = 'staging' | 'prepared' | 'committed';

/** Where a kill leaves each state: before the journal is prepared, in the middle of the steps, in the middle of the cleaning. */
const cuts: Readonly<Record<State, string>> = {
  staging: 'renameat2:signal=KILL:when=5',
  prepared: 'renameat2:signal=KILL:when=13',
  committed: 'unlinkat:signal=KILL:when=6',
};

/** A scene in the middle of its promotion. */
class CutScene {
  readonly scene: PromotionScene;
  readonly before: Listing;
  readonly journal: string;
  readonly #descriptors: { readonly own: number; readonly root: number };

  private constructor(scene: PromotionScene, before: Listing, state: State) {
    this.scene = scene;
    this.before = before;
    this.journal = path.join(scene.own, `journal.${state}`);
    this.#descriptors = { own: fs.openSync(scene.own, 'r'), root: fs.openSync(scene.root, 'r') };
  }

  static async in(state: State): Promise<CutScene> {
    const scene = twelveEntries({ asCaller: true });
    const before = scene.listing();
    const { applied } = await applyPlainly(scene, [cuts[state]]);
    assert.equal(applied, undefined);
    const cut = new CutScene(scene, before, state);
    assert.ok(fs.existsSync(cut.journal), `no journal in state ${state}`);
    return cut;
  }

  recover(bootId = 'this boot'): Recovered {
    return recover(this.#descriptors, { bootId, now: Date.now(), log });
  }

  repair(choice: 'restore' | 'set-aside') {
    return repair(this.#descriptors, choice);
  }

  remove(): void {
    for (const descriptor of Object.values(this.#descriptors)) fs.closeSync(descriptor);
    this.scene.remove();
  }
}

describe('a journal that is not whole', function () {
  this.timeout(180_000);
  let cut: CutScene | undefined;

  before(function () {
    if (!hasStrace()) skipBecause(this, 'strace');
  });
  afterEach(() => {
    cut?.remove();
    cut = undefined;
  });

  it('a commit that was cut before its state was entered goes back', async () => {
    cut = await CutScene.in('prepared');
    const whole = fs.readFileSync(cut.journal);
    const { chain } = readRecords(whole);
    const commit = new RecordWriter(chain).next({ kind: 'commit', at: 1 });
    fs.writeFileSync(cut.journal, Buffer.concat([whole, commit.subarray(0, 30)]));
    assert.equal(cut.recover().outcome, 'rolled-back');
    assert.deepEqual(cut.scene.listing(), cut.before);
  });

  it('S-165 a journal, lock or mark that is a link, a second name, a FIFO, another user’s or open to others is refused', async () => {
    cut = await CutScene.in('prepared');
    const { journal, scene } = cut;
    const left = scene.listing();
    const real = path.join(scene.folder, 'real');
    for (const trap of fileTraps) {
      fs.renameSync(journal, real);
      if (!trap(real, journal)) continue;
      assert.equal(cut.recover().outcome, 'needs-attention');
      assert.deepEqual(scene.listing(), left);
      fs.rmSync(journal);
      if (fs.existsSync(real)) fs.chmodSync(real, 0o600);
      fs.renameSync(real, journal);
    }
    assert.equal(cut.recover().outcome, 'rolled-back');
    for (const name of ['lock', 'mark']) {
      const file = path.join(scene.own, name);
      for (const trap of fileTraps) {
        fs.renameSync(file, real);
        if (!trap(real, file)) continue;
        const now = scene.listing();
        assert.deepEqual(
          await answersOf(scene),
          name === 'lock' ? ['needs-attention', 'RECOVERY_REQUIRED'] : UNBELIEVED,
        );
        assert.deepEqual(scene.listing(), now);
        fs.rmSync(file);
        fs.chmodSync(real, 0o600);
        fs.renameSync(real, file);
      }
    }
  });

  it('a file in the stage folder that somebody writes to waits there, and goes once nobody does', async () => {
    for (const state of ['prepared', 'committed'] as const) {
      cut = await CutScene.in(state);
      const { scene } = cut;
      const stage = fs.readdirSync(scene.root).find((name) => name.startsWith('.nessie-stage-')) ?? '';
      // the last steps are changed files: not placed yet where the way is back, not cleaned yet where it is forward
      const held = String(Math.max(...fs.readdirSync(scene.at(stage)).map(Number)));
      const writer = fs.openSync(scene.at(`${stage}/${held}`), 'r+');
      const expected = state === 'prepared' ? 'needs-attention' : 'cleaned';
      assert.equal(cut.recover().outcome, expected);
      assert.deepEqual(fs.readdirSync(scene.at(stage)), [held]);
      if (state === 'prepared') assert.equal(cut.repair('restore').outcome, 'nothing-to-do');
      fs.writeSync(writer, 'edit');
      fs.closeSync(writer);
      const settled = cut.recover();
      assert.equal(settled.outcome, state === 'prepared' ? 'needs-attention' : 'nothing-to-do');
      if (state === 'prepared')
        assert.deepEqual(cut.repair('restore'), { outcome: 'restored', kept: settled.conflicts });
      assert.equal(cut.recover().outcome, 'nothing-to-do');
      assert.ok(!fs.existsSync(scene.at(stage)));
      const [id] = fs.readdirSync(path.join(scene.own, 'kept'));
      const kept = fs.readFileSync(path.join(scene.own, 'kept', String(id), held), 'utf8');
      assert.ok(kept.startsWith('edit'));
      cut.remove();
    }
    cut = undefined;
  });

  it('a person sets a damaged journal aside: the tree stays as it is, and promotions go on', async () => {
    cut = await CutScene.in('prepared');
    const left = cut.scene.listing();
    fs.truncateSync(cut.journal, 100);
    assert.equal(cut.recover().outcome, 'needs-attention');
    assert.throws(() => cut?.repair('restore'), JournalDamaged);
    assert.deepEqual(cut.repair('set-aside'), { outcome: 'set-aside', kept: [] });
    assert.deepEqual(timeless(cut.scene.listing()), timeless(left));
    assert.equal(cut.recover().outcome, 'nothing-to-do');
  });
});

const UNBELIEVED = ['nothing-to-do', 'PROMOTION_JOURNAL_INVALID'];

/** What promote answers to a recovery and an apply, called in this process; everything belongs to it. */
async function answersOf(scene: PromotionScene): Promise<string[]> {
  const folders = [scene.root, scene.draft, scene.own, scene.owner, scene.configuration];
  const [root = 0, draft = 0, own = 0, owner = 0, configuration = 0] = folders.map((folder) =>
    fs.openSync(folder, 'r'),
  );
  try {
    const handlers = new PromoteHandlers(
      { root, draft, own, owner, configuration, forbidden: [] },
      'this boot',
      log,
      log,
    );
    const { outcome } = handlers.recover({ promotions: [] });
    const applied = await handlers.apply({ approval: scene.approve() }).catch((error: unknown) => {
      if (error instanceof PromoteRefused) return { code: error.code };
      throw error;
    });
    await handlers.end();
    return [outcome, 'code' in applied ? applied.code : applied.outcome];
  } finally {
    for (const descriptor of [root, draft, own, owner, configuration]) fs.closeSync(descriptor);
  }
}
