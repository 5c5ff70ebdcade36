import assert from 'node:assert/strict';
import fs from 'node:fs';

import { Exploration, faultOf } from '../../faults/disk/explore.ts';
import { applied, crashes, openAfter } from '../../faults/disk/model.ts';
import type { Operation } from '../../faults/disk/model.ts';
import { allowedSides } from '../../faults/disk/recording.ts';
import type { Recording } from '../../faults/disk/recording.ts';
import { Rehearsal } from '../../faults/disk/rehearsal.ts';
import type { Draft } from '../../faults/disk/rehearsal.ts';
import { SHARED_FROM_BYTES } from '../../../helpers/promote/share.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { sharingDisk } from '../../fakes/shared-blocks.ts';

/** Promotions of three entries, and how many crashes and disks that differ they have at least. */
const drafts = {
  'a created, a changed and a deleted file': {
    draft: { fresh: { file: 'fresh' }, 'keep/changed': { file: 'new', mode: 0o640 }, gone: 'removed' },
    crashes: 750,
    disks: 220,
  },
  'a new folder with a file in it and a changed mode': {
    draft: { made: { folder: 0o750 }, 'made/inside': { file: 'inside' }, mode: { mode: 0o755 } },
    crashes: 1200,
    disks: 260,
  },
  'a deleted folder with a file in it and a new folder with none': {
    draft: { old: 'removed', 'old/inside': 'removed', empty: { folder: 0o750 } },
    crashes: 400,
    disks: 160,
  },
  'a file that becomes a folder with a file in it and a folder that becomes a file': {
    draft: { flip: { folder: 0o755 }, 'flip/file': { file: 'inside' }, was: { file: 'a file now' } },
    crashes: 1250,
    disks: 300,
  },
} as const satisfies Readonly<Record<string, { draft: Draft; crashes: number; disks: number }>>;

/** The promotion after each, so that what the first leaves unsynced meets a second one. */
const NEXT: Draft = { second: { file: 'second' } };

/** Syncs that may be left out alone, and why no crash tells; each is there for a disk that keeps less than the model says. */
const spare = {
  'own-folder.ts replaceOwn: own':
    'the sync of the first record follows before anything is done that the approval permits',
  'capabilities.ts probe: stage': 'the sync of the stage folder before the journal is prepared keeps the removals too',
  'apply.ts #prepare: stage':
    'a prepared journal leads back alone, and a rename out of the stage folder brings the name with it that it takes away',
  'stage-end.ts disposeAll: stage': 'what is in the stage folder again is removed again, and the folder with it',
  'journal.ts archiveJournal: own': 'the sync of the next mark follows before the next journal is made',
} as const;
const inside = { 'stage.ts stageFolder: stage/N': 'a folder that gets a file is synced again with its names' };
const empty = { 'folder-times.ts syncTaken: stage/N': 'nothing was taken out of a folder that was empty' };
const spares: Readonly<Record<keyof typeof drafts, Readonly<Record<string, string>>>> = {
  'a created, a changed and a deleted file': spare,
  'a new folder with a file in it and a changed mode': { ...spare, ...inside },
  'a deleted folder with a file in it and a new folder with none': spare,
  'a file that becomes a folder with a file in it and a folder that becomes a file': { ...spare, ...inside, ...empty },
};

/** The same in the way back of a recovery. */
const spareBack = {
  'folder-times.ts atFolder: root/keep':
    'the sync of the stage folder after the removals keeps the removal of the new file, and with it the rename that brought it there',
  'go-back.ts goBack: stage': 'the sync after the removals follows before anything relies on it',
  'stage-end.ts disposeAll: stage': 'what is in the stage folder again is removed again, and the folder with it',
  'journal.ts discardJournal: own': 'the sync of the next mark follows before the next journal is made',
};

function scene(): PromotionScene {
  const made = new PromotionScene({ asCaller: true });
  for (const folder of ['keep', 'old', 'was']) made.folderAt(folder);
  const files = { gone: 'bye', mode: 'same', flip: 'file', 'keep/changed': 'old', 'old/inside': 'x' };
  for (const [name, content] of Object.entries(files)) {
    made.put(name, content, name === 'keep/changed' ? 0o640 : 0o644);
    fs.utimesSync(made.at(name), 1_000_000_000, 1_000_000_000);
  }
  return made;
}

/** Names of syncs without what differs from run to run. */
function syncsOf(operations: readonly Operation[]): Map<number, string> {
  const told = (where: string): string =>
    where
      .replace(/root\/\.nessie-stage-[0-9a-f]+/, 'stage')
      .replace(/prm_[0-9a-f]+/, 'ID')
      .replace(/mark\.[0-9a-f]+$/, 'mark.NEW')
      .replace(/\/\d+$/, '/N');
  return new Map(
    operations.flatMap((operation, index) => (operation.kind === 'sync' ? [[index, told(operation.where)]] : [])),
  );
}

/** The first sync of one name and the first of another after it. */
function afterOneAnother({ operations }: Recording, one: string, other: string): number[] {
  const syncs = [...syncsOf(operations)];
  const first = syncs.findIndex(([, where]) => where === one);
  const second = syncs.findIndex(([, where], at) => at > first && where === other);
  assert.ok(first >= 0 && second > first, `${one}, ${other}`);
  return [first, second].flatMap((at) => syncs[at]?.[0] ?? []);
}

describe('a disk that loses power', function () {
  this.timeout(180_000);
  let here: Rehearsal;

  beforeEach(() => {
    here = new Rehearsal(scene());
  });
  afterEach(() => here.close());

  /** Promotes three entries up to the commit, crashes with all of it on the disk, recovers, and promotes another entry. */
  async function wayBack(): Promise<Recording> {
    const { draft } = drafts['a created, a changed and a deleted file'];
    const { start, operations, promotions } = await here.record([draft]);
    const placed = applied(start, operations.slice(0, (promotions[0]?.committed ?? 0) - 1));
    return here.recordFrom(placed, [NEXT]);
  }

  /** Syncs, up to the first of this name, without which no crash goes wrong. */
  function untold(exploration: Exploration, recording: Recording, last: string): Set<string> {
    const syncs = [...syncsOf(recording.operations)];
    const end = syncs.findIndex(([, where]) => where === last);
    assert.ok(end > 0, last);
    const spared = syncs.slice(0, end + 1).filter(([index]) => exploration.withoutSyncs([index]) === undefined);
    return new Set(spared.map(([, where]) => where));
  }

  // Object.keys of a constant gives its own keys alone
  for (const sentence of Object.keys(drafts) as (keyof typeof drafts)[]) {
    const { draft, crashes, disks } = drafts[sentence];

    it(`S-157 ${sentence}: any of over ${crashes} crashes that lose or swap what no sync separates leaves the tree before or after, and so do all crashes of the recoveries (over ${disks} disks)`, async () => {
      const recording = await here.record([draft, NEXT]);
      const exploration = new Exploration(here, recording);
      const first = exploration.recorded();
      assert.deepEqual(first.violations, []);
      const levels = exploration.recoveries(first.endings);
      assert.deepEqual(
        levels.flatMap(({ violations }) => violations),
        [],
      );
      const count = `${first.crashes} crashes, ${exploration.disks} disks, ${levels.length} levels`;
      assert.ok(first.crashes > crashes && exploration.disks > disks && levels.length > 1, count);
    });

    it(`${sentence}: with any one sync left out some crash is told, but for those that may be left out alone`, async () => {
      const recording = await here.record([draft, NEXT]);
      const exploration = new Exploration(here, recording);
      const left = untold(exploration, recording, 'journal.ts archiveJournal: own');
      assert.deepEqual(left, new Set(Object.keys(spares[sentence])));
    });
  }

  it('S-156 with all that no sync kept dropped after any operation, the tree is before or after, and no file is empty or mixed', async () => {
    for (const { draft } of Object.values(drafts)) {
      const other = new Rehearsal(scene());
      const recording = await other.record([draft]);
      const { start, operations } = recording;
      for (let before = 0; before <= operations.length; before += 1) {
        const ending = other.recover(openAfter(start, operations, before).kept, recording);
        assert.equal(faultOf(ending, allowedSides(recording, before)), undefined, `before operation ${before}`);
      }
      other.close();
    }
  });

  it('S-169 a crash at any moment after the commit leaves the new tree, and the next start only cleans', async () => {
    for (const { draft } of Object.values(drafts)) {
      const other = new Rehearsal(scene());
      const recording = await other.record([draft]);
      const { start, operations, promotions } = recording;
      const committed = promotions[0]?.committed ?? 0;
      const ends = { cleaned: 0, 'nothing-to-do': 0 };
      for (const { disk, before } of crashes(start, operations)) {
        if (before <= committed) continue;
        const placed = other.place(disk);
        const { outcome, conflicts, said } = placed.recover();
        assert.ok(outcome === 'cleaned' || outcome === 'nothing-to-do', `before operation ${before}: ${outcome}`);
        ends[outcome] += 1;
        assert.deepEqual([conflicts, said], [[], []]);
        const moved = placed
          .done()
          .operations.flatMap((done) => (done.kind === 'change' && done.what.startsWith('rename ') ? [done.what] : []));
        assert.ok(
          moved.every((what) => /^rename (?:journal|not-kept|kept)/.test(what)),
          moved.join(),
        );
        assert.equal(other.sideOf(placed.read(), recording), 1, `before operation ${before}`);
      }
      assert.ok(ends.cleaned > 10 && ends['nothing-to-do'] > 0, JSON.stringify(ends));
      other.close();
    }
  });

  it('a file that shares the blocks of the one that it replaces is there whole, or the old one is', async () => {
    const mode = scene();
    const large = Buffer.alloc(SHARED_FROM_BYTES, 'large');
    mode.put('mode', large);
    const other = new Rehearsal(mode, sharingDisk());
    try {
      const recording = await other.record([{ mode: { mode: 0o755 } }]);
      assert.ok(
        recording.operations.filter(({ kind, ...told }) => kind === 'change' && /shared/.test(JSON.stringify(told)))
          .length >= 3,
      );
      assert.deepEqual(new Exploration(other, recording).recorded().violations, []);
    } finally {
      other.close();
    }
  });

  it('of two syncs of which either may be left out, some crash tells when both are', async () => {
    const recording = await here.record([drafts['a created, a changed and a deleted file'].draft, NEXT]);
    const both = afterOneAnother(recording, 'journal.ts archiveJournal: own', 'own-folder.ts replaceOwn: own');
    const exploration = new Exploration(here, recording);
    assert.match(String(exploration.withoutSyncs(both)), /journals of 2 states at once/);
    const tried = afterOneAnother(recording, 'capabilities.ts probe: stage', 'apply.ts #prepare: stage');
    assert.notEqual(exploration.withoutSyncs(tried), undefined);
  });

  it('of two syncs of the way back of which either may be left out, some crash tells when both are', async () => {
    const back = await wayBack();
    const exploration = new Exploration(here, back);
    for (const [one, other] of [
      ['journal.ts discardJournal: own', 'own-folder.ts replaceOwn: own'],
      ['folder-times.ts atFolder: root/keep', 'stage-end.ts disposeAll: stage'],
      ['go-back.ts goBack: stage', 'stage-end.ts disposeAll: stage'],
    ] as const)
      assert.notEqual(exploration.withoutSyncs(afterOneAnother(back, one, other)), undefined, `${one}, ${other}`);
  });

  it('with any one sync of the way back left out some crash is told, but for those that may be left out alone', async () => {
    const recording = await wayBack();
    const exploration = new Exploration(here, recording);
    assert.deepEqual(exploration.recorded().violations, []);
    assert.deepEqual(untold(exploration, recording, 'journal.ts discardJournal: own'), new Set(Object.keys(spareBack)));
  });
});
