import assert from 'node:assert/strict';
import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';

import { JOURNAL_FORMAT, readRecords, RecordWriter } from '../../../helpers/promote/journal-records.ts';
import type { JournalRecord } from '../../../helpers/promote/journal-records.ts';
import { encode } from '../../../helpers/protocol/codec.ts';
import { FRAME_LIMIT_BYTES } from '../../../helpers/protocol/frame.ts';
import type { Past } from '../../../helpers/protocol/history-facts.ts';
import { promotionIdSchema } from '../../../helpers/protocol/ids.ts';
import { interpose, NativeError } from '../../../helpers/runtime/libc.ts';
import { confirmedUndo, confirmUndo, promoted, promoteHere, undoHere } from '../../fakes/promote-here.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import type { Listing, PromotionScene } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';

/** What an undo gives back: everything but the times of folders, in which names have come and gone. */
function comparable(listing: Listing): ReadonlyMap<string, object> {
  return new Map(
    [...listing].map(([name, entry]) => [name, entry.kind === 'folder' ? { ...entry, mtimeNs: 0n } : entry]),
  );
}

/** How far apart the calls are that are cut here, from a chance one on. */
const EVERY = 4;
const CONFLICT = 'PROMOTION_CONFLICT';
const DONE = { outcome: 'undone', kept: [] };

describe('the undo of a promotion', function () {
  this.timeout(180_000);
  let scene: PromotionScene;

  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
  });
  afterEach(() => scene.remove());

  const history = (): Promise<readonly Past[]> =>
    promoteHere(scene, (handlers) => handlers.history()).then(({ promotions }) => promotions);
  const refusals = async (): Promise<Record<string, string | undefined>> =>
    Object.fromEntries((await history()).map(({ promotion, refusal }) => [promotion, refusal?.code]));
  const inHistory = (id: string, name: string): string => path.join(scene.own, 'history', id, name);

  it('brings every file back with its bytes, mode and time, folders too, takes what was made away, and leaves nothing of its own', async () => {
    scene.put('tool', 'set-id', 0o4755);
    scene.draftOf({ ...twelve, tool: { file: 'plain', mode: 0o755 } });
    const before = scene.listing();
    const id = await promoted(scene);
    assert.notDeepEqual(comparable(scene.listing()), comparable(before));
    assert.deepEqual(await confirmedUndo(scene, id), DONE);
    assert.deepEqual(comparable(scene.listing()), comparable(before));
    assert.deepEqual(await promoteHere(scene, (handlers) => handlers.recover({ promotions: [] })), {
      outcome: 'nothing-to-do',
      conflicts: [],
      promoted: [],
    });
  });

  const twelve = {
    changed: { file: 'new', mode: 0o640 },
    mode: { mode: 0o755 },
    gone: 'removed',
    'keep/two': 'removed',
    old: 'removed',
    'old/inside': 'removed',
    flip: { folder: 0o755 },
    'flip/file': { file: 'f' },
    made: { folder: 0o700 },
    'made/\xff': { file: 'hello', mode: 0o755 },
  } as const;

  it('is told in the history, is no second time, and can itself be undone', async () => {
    const before = comparable(scene.listing());
    const id = await promoted(scene);
    const after = comparable(scene.listing());
    const [past] = await history();
    assert.deepEqual(past?.facts, {
      run: `run_${'a'.repeat(32)}`,
      at: past?.facts?.at,
      undoes: null,
      changeCount: 13,
    });
    assert.deepEqual([past?.promotion, past?.refusal, past?.fileCount], [id, null, 7]);
    assert.deepEqual(await confirmedUndo(scene, id), DONE);
    const [undo, undone] = await history();
    assert.deepEqual([undo?.facts?.undoes, undo?.refusal], [id, null]);
    assert.deepEqual([undone?.promotion, undone?.refusal, undone?.fileCount], [id, { code: 'UNDO_DONE' }, 0]);
    assert.deepEqual(await undoHere(scene, id), { outcome: 'refused', code: 'UNDO_DONE' });
    assert.deepEqual(comparable(scene.listing()), before);
    assert.deepEqual(await confirmedUndo(scene, undo?.promotion ?? ''), DONE);
    assert.deepEqual(comparable(scene.listing()), after);
  });

  it('of one promotion after the other leads back to the first tree, and back to the last', async () => {
    const trees = [comparable(scene.listing())];
    const ids: string[] = [];
    for (const wanted of [
      { changed: { file: 'one' }, fresh: { file: '1' }, gone: 'removed' },
      { changed: { file: 'two', mode: 0o600 }, fresh: 'removed', gone: { file: 'again' } },
      { changed: 'removed', fresh: { folder: 0o755 }, 'fresh/deep': { file: '3' }, gone: { file: 'and again' } },
    ] as const) {
      scene.draftOf(wanted);
      ids.push(await promoted(scene));
      trees.push(comparable(scene.listing()));
    }
    const [first = '', second = '', third = ''] = ids;
    const unsafe = 'PROMOTION_UNSAFE_PATH';
    assert.deepEqual(await refusals(), { [third]: undefined, [second]: CONFLICT, [first]: unsafe });
    assert.deepEqual(await confirmedUndo(scene, third), DONE);
    assert.deepEqual(await confirmedUndo(scene, second), DONE);
    assert.deepEqual(await confirmedUndo(scene, first), DONE);
    assert.deepEqual(comparable(scene.listing()), trees[0]);
    for (const step of [1, 2]) {
      const next = (await history()).find(({ refusal, facts }) => refusal === null && facts?.undoes === ids[step - 1]);
      assert.deepEqual(await confirmedUndo(scene, next?.promotion ?? ''), DONE);
      assert.deepEqual(comparable(scene.listing()), trees[step]);
    }
  });

  it('takes write protection that came with the promotion back with it', async () => {
    scene.draftOf({ changed: { file: 'new', mode: 0o444 }, fresh: { file: '1', mode: 0o400 } });
    const before = comparable(scene.listing());
    assert.deepEqual(await confirmedUndo(scene, await promoted(scene)), DONE);
    assert.deepEqual(comparable(scene.listing()), before);
  });

  it('is shown in pieces that fit a frame, every path once and in order', async () => {
    const long = 'é'.repeat(120);
    scene.folderAt(long);
    const names = Array.from(
      { length: 2000 },
      (_, index) => `${latin1(long)}/${latin1(long)}${String(index).padStart(4, '0')}`,
    );
    scene.draftOf(Object.fromEntries(names.map((name) => [name, { file: '' }])));
    const promotion = promotionIdSchema.parse(await promoted(scene));
    const shown: string[] = [];
    let pieces = 0;
    for (let changeCount = 1; shown.length < changeCount; pieces += 1) {
      const plan = await promoteHere(scene, (handlers) => handlers.undoPlan({ promotion, from: shown.length }));
      assert.ok(plan.outcome === 'possible', JSON.stringify(plan));
      assert.ok(encode(plan).length < FRAME_LIMIT_BYTES - 1000, `${encode(plan).length} bytes`);
      ({ changeCount } = plan);
      shown.push(...plan.changes.map(({ path: name }) => name));
    }
    assert.ok(pieces > 1, 'one piece');
    assert.deepEqual(
      shown,
      names.map((name) => Buffer.from(name, 'latin1').toString()),
    );
  });

  describe('S-185 is itself all or restore, and refused before its first change where a path is not as the promotion left it', () => {
    const changes: readonly (readonly [string, string, (at: Buffer) => void])[] = [
      ['a file was edited', 'changed', (at) => fs.appendFileSync(at, 'x')],
      ['a file was edited to the same length and given its old time', 'changed', (at) => edited(at)],
      ['a mode was changed', 'mode', (at) => fs.chmodSync(at, 0o700)],
      ['a file was replaced by another of the same content', 'changed', (at) => replaced(at)],
      ['a file was removed', 'keep/three', (at) => fs.rmSync(at)],
      ['a new folder was removed with what is in it', 'made', (at) => fs.rmSync(at, { recursive: true })],
      ['a new folder has something in it', 'made/mine', (at) => fs.writeFileSync(at, 'mine')],
      ['a deleted file was made anew', 'gone', (at) => fs.writeFileSync(at, 'bye')],
      ['a deleted folder was made anew', 'old', (at) => fs.mkdirSync(at)],
      ['a deleted file has become a link', 'gone', (at) => fs.symlinkSync('changed', at)],
      ['a file has a second name', 'keep/one', (at) => fs.linkSync(at, `${String(at)}.second`)],
    ];
    for (const [sentence, name, change] of changes) {
      it(`${sentence}: it names the path`, async () => {
        const id = await promoted(scene);
        await confirmUndo(scene, id);
        change(scene.at(name));
        const left = scene.listing();
        const reply = await undoHere(scene, id);
        const code = name === 'keep/one' ? 'PROMOTION_UNSAFE_PATH' : CONFLICT;
        const named = sentence.startsWith('a new folder was removed') ? /^made/ : new RegExp(`^${name}$`);
        assert.ok(
          reply.outcome === 'refused' && reply.code === code && named.test(reply.path ?? ''),
          JSON.stringify(reply),
        );
        assert.deepEqual(scene.listing(), left);
        if (!sentence.includes('old time'))
          assert.equal((await refusals())[id], code, 'the history tells it beforehand');
      });
    }

    it('a file that is in use when its turn comes is left, and all else is restored', async () => {
      const id = await promoted(scene);
      await confirmUndo(scene, id);
      const left = scene.listing();
      const writer = fs.openSync(scene.at('keep/one'), 'a');
      const reply = await undoHere(scene, id);
      fs.closeSync(writer);
      assert.deepEqual(reply, { outcome: 'rolled-back', code: 'PROMOTION_IN_USE', path: 'keep/one', kept: [] });
      assert.deepEqual(scene.listing(), left);
      assert.deepEqual(await confirmedUndo(scene, id), DONE);
    });

    it('cut at one call in four it leaves the tree before or after it, and the history knows which', async () => {
      const before = comparable(scene.listing());
      const counted = await promoted(scene);
      const after = comparable(scene.listing());
      await confirmUndo(scene, counted);
      const calls = await cutAt(Infinity, () => undoHere(scene, counted));
      assert.ok(calls > 100, `${calls} calls`);
      let [backs, forwards] = [0, 0];
      const first = 1 + (Date.now() % EVERY);
      for (let call = first; call <= calls; call += EVERY) {
        scene.remove();
        scene = twelveEntries({ asCaller: true });
        const id = await promoted(scene);
        await confirmUndo(scene, id);
        assert.equal(await cutAt(call, () => undoHere(scene, id)), call);
        const refusal = (await refusals())[id];
        const isBack = refusal === undefined;
        if (isBack) backs += 1;
        else forwards += 1;
        assert.ok(isBack || refusal === 'UNDO_DONE', `call ${call}: ${refusal}`);
        assert.deepEqual(
          withoutTimes(comparable(scene.listing())),
          withoutTimes(isBack ? after : before),
          `call ${call}`,
        );
        assert.ok(!fs.readdirSync(scene.own).some((name) => name.startsWith('journal.')), `call ${call}`);
        if (isBack) assert.deepEqual(await confirmedUndo(scene, id), DONE, `call ${call}`);
      }
      assert.ok(backs > 10 && forwards > 5, `${backs} back, ${forwards} forward`);
    });
  });

  describe('needs a whole history', () => {
    it('one that nobody keeps, one without an old file, and one of another root are refused', async () => {
      assert.deepEqual(await undoHere(scene, `prm_${'9'.repeat(32)}`), { outcome: 'refused', code: 'UNDO_UNKNOWN' });
      assert.ok(!fs.existsSync(path.join(scene.own, 'history')), 'asking leaves nothing');
      const id = await promoted(scene);
      await confirmUndo(scene, id);
      const [name = ''] = fs.readdirSync(inHistory(id, ''));
      fs.renameSync(inHistory(id, name), inHistory(id, 'aside'));
      const lost = await undoHere(scene, id);
      assert.ok(lost.outcome === 'refused' && lost.code === 'UNDO_NOT_KEPT' && lost.path !== undefined);
      fs.renameSync(inHistory(id, 'aside'), inHistory(id, name));
      fs.renameSync(scene.root, `${scene.root}.moved`);
      fs.mkdirSync(scene.root);
      assert.deepEqual(await undoHere(scene, id), { outcome: 'refused', code: 'PROMOTION_UNSAFE_ROOT' });
    });

    it('an old file with a bit changed is never placed', async () => {
      const id = await promoted(scene);
      await confirmUndo(scene, id);
      const left = scene.listing();
      const name = fs.readdirSync(inHistory(id, '')).find((entry) => entry !== 'journal') ?? '';
      const content = fs.readFileSync(inHistory(id, name));
      content[0] = (content[0] ?? 0) ^ 1;
      fs.writeFileSync(inHistory(id, name), content);
      const reply = await undoHere(scene, id);
      assert.ok(reply.outcome === 'rolled-back' && reply.code === 'PROMOTION_JOURNAL_INVALID', JSON.stringify(reply));
      assert.deepEqual(scene.listing(), left);
    });

    it('a damaged journal is told as such, and keeps no other promotion from being undone', async () => {
      const id = await promoted(scene);
      scene.draftOf({ other: { file: 'o' } });
      const other = await promoted(scene);
      fs.truncateSync(inHistory(id, 'journal'), 200);
      assert.deepEqual(await refusals(), { [other]: undefined, [id]: 'PROMOTION_JOURNAL_INVALID' });
      assert.deepEqual(await undoHere(scene, id), { outcome: 'refused', code: 'PROMOTION_JOURNAL_INVALID' });
      assert.deepEqual(await confirmedUndo(scene, other), DONE);
    });

    it('an error of the disk is told as one, not as damage of what is kept', async () => {
      const id = promotionIdSchema.parse(await promoted(scene));
      const refusing = await promoteHere(scene, async (handlers) => {
        interpose((name, _args, make) => {
          if (name === 'pread64') throw new NativeError(name, constants.errno.EIO);
          return make();
        });
        try {
          return await handlers.undoPlan({ promotion: id, from: 0 });
        } finally {
          interpose(undefined);
        }
      });
      assert.deepEqual(refusing, { outcome: 'refused', code: 'PROMOTION_IO_FAILURE' });
      assert.deepEqual(await confirmedUndo(scene, id), DONE);
    });

    it('a promotion of the version before undos can be undone', async () => {
      const before = timeless(scene.listing());
      const id = await promoted(scene);
      const journal = inHistory(id, 'journal');
      const writer = new RecordWriter();
      const older = readRecords(fs.readFileSync(journal)).records.map((record) => writer.next(inOlderFormat(record)));
      fs.writeFileSync(journal, Buffer.concat(older));
      assert.deepEqual(await confirmedUndo(scene, id), DONE);
      assert.deepEqual(timeless(scene.listing()), before);
    });
  });
});

/** Path bytes as a scene names them. */
function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** Another content of the same length, with the time that the file had. */
function edited(at: Buffer): void {
  const { size, atime, mtime } = fs.statSync(at);
  fs.writeFileSync(at, 'x'.repeat(size));
  fs.utimesSync(at, atime, mtime);
}

function replaced(at: Buffer): void {
  const copy = `${String(at)}.copy`;
  fs.copyFileSync(at, copy);
  fs.chmodSync(copy, fs.statSync(at).mode & 0o7777);
  fs.renameSync(copy, at);
}

function withoutTimes(listing: ReadonlyMap<string, object>): ReadonlyMap<string, object> {
  return new Map([...listing].map(([name, entry]) => [name, { ...entry, mtimeNs: 0n }]));
}

function inOlderFormat(record: JournalRecord): JournalRecord {
  if (record.kind !== 'begin') return record;
  assert.equal(record.format, JOURNAL_FORMAT);
  const { undoes: _undoes, ...older } = record;
  // What that version wrote had no such field.
  return { ...older, format: 1 } as JournalRecord;
}

/** Calls that change something or bring it to the disk. */
const CHANGING: ReadonlySet<string> = new Set([
  'renameat2',
  'linkat',
  'unlinkat',
  'mkdirat',
  'pwrite64',
  'fchmod',
  'fchown',
  'fsetxattr',
  'utimensat',
  'fsync',
  'syncfs',
]);

/** Does work of which no native call is made from the nth changing one on, whatever it makes of that; how many of those were made. */
async function cutAt(nth: number, work: () => Promise<unknown>): Promise<number> {
  let calls = 0;
  interpose((name, _args, make) => {
    if (CHANGING.has(name) && calls < nth) calls += 1;
    if (calls === nth) throw new Error('cut');
    return make();
  });
  await work().catch((error: unknown) => error);
  interpose(undefined);
  return calls;
}
