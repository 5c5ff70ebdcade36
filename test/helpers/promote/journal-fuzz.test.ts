import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { JOURNAL_FORMAT, readRecords, RecordWriter } from '../../../helpers/promote/journal-records.ts';
import type { Begin } from '../../../helpers/promote/journal-records.ts';
import { applied, pathsOf } from '../../faults/disk/model.ts';
import type { Disk, Inode } from '../../faults/disk/model.ts';
import type { Recording } from '../../faults/disk/recording.ts';
import { Rehearsal } from '../../faults/disk/rehearsal.ts';
import type { Placed } from '../../faults/disk/rehearsal.ts';
import { fileTraps } from '../../fakes/file-traps.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';

/** States in which a journal is read. What lies in `history` and `settled` is not. */
const states = ['staging', 'prepared', 'committed', 'waiting', 'attention'] as const;
type State = (typeof states)[number];

/** How a recovery of the whole journal ends, and the tree that stands then. */
const whole: Readonly<Record<State, { outcome: string; side: number }>> = {
  staging: { outcome: 'rolled-back', side: 0 },
  prepared: { outcome: 'rolled-back', side: 0 },
  committed: { outcome: 'cleaned', side: 1 },
  waiting: { outcome: 'nothing-to-do', side: 1 },
  attention: { outcome: 'nothing-to-do', side: 0 },
};

/** What the owner is told of a journal that is not believed. */
const SENTENCE = /^recovery broke: (?:JournalDamaged|UntrustedFile): [a-z][a-z0-9._ ]+(?:: openat2 failed: E[A-Z]+)?$/;
/** Length and chain of a record, around its payload. */
const AROUND_BYTES = 36;

describe('a journal that is not what was written', function () {
  this.timeout(180_000);
  let scene: PromotionScene;
  let rehearsal: Rehearsal;
  let recording: Recording;

  beforeEach(async () => {
    scene = new PromotionScene({ asCaller: true });
    scene.put('changed', 'old', 0o640);
    rehearsal = new Rehearsal(scene);
    recording = await rehearsal.record([{ fresh: { file: 'fresh' }, changed: { file: 'new', mode: 0o640 } }]);
  });
  afterEach(() => rehearsal.close());

  /** A disk in a state: of those that are left by a crash, in the middle of what the state is for. */
  function diskIn(state: State): Disk {
    const { start, operations, promotions } = recording;
    const { prepared = 0, committed = 0 } = promotions[0] ?? {};
    // all is staged; the steps are not written yet
    if (state === 'staging') return applied(start, operations.slice(0, prepared - 2));
    if (state === 'committed') return applied(start, operations.slice(0, committed + 1));
    // the created file is placed and the changed one is not
    if (state === 'prepared') return applied(start, operations.slice(0, prepared + 3));
    return heldOpen(diskIn(state === 'waiting' ? 'committed' : 'prepared'));
  }

  /** What a recovery leaves while somebody writes to the file in the stage folder. */
  function heldOpen(disk: Disk): Disk {
    const placed = rehearsal.place(disk);
    const stage = fs.readdirSync(scene.root).find((name) => name.startsWith('.nessie-stage-')) ?? '';
    const writer = fs.openSync(path.join(scene.root, stage, '1'), 'r+');
    placed.recover();
    fs.closeSync(writer);
    return placed.read();
  }

  /** Path of the journal in the real folder. */
  function journalOf(disk: Disk): string {
    const own = fs.statSync(scene.own).ino;
    const names = [...pathsOf(disk, own).keys()].filter((name) => /(?:^|\/)journal(?:\.|$)/.test(name));
    assert.equal(names.length, 1);
    return path.join(scene.own, names[0] ?? '');
  }

  /** Recovers and checks that all is as it was before, the journal too, and that the owner was told why. */
  function assertRefused(placed: Placed, what: string, before = rehearsal.keyOf(placed.read())): void {
    const { outcome, conflicts, said } = placed.recover();
    assert.deepEqual({ outcome, conflicts }, { outcome: 'needs-attention', conflicts: [] }, what);
    assert.equal(said.length, 1, what);
    assert.match(said[0] ?? '', SENTENCE, what);
    assert.equal(rehearsal.keyOf(placed.read()), before, what);
  }

  /** The disk with other bytes in one of its files. */
  function holding(disk: Disk, inode: Inode, content: Buffer): Disk {
    const node = disk.get(inode);
    assert.ok(node?.kind === 'file');
    return new Map([...disk, [inode, { ...node, content }]]);
  }

  /** Puts a copy of promote's folder, as it was in a state, beside the tree in which that promotion has ended, and one of before. */
  function assertYesterdayRefused(state: State): void {
    const { start, operations } = recording;
    const today = applied(start, operations);
    const own = fs.statSync(scene.own).ino;
    const yesterday = diskIn(state);
    const copied = [...pathsOf(yesterday, own).values()].flatMap((inode) => {
      const node = yesterday.get(inode);
      return node === undefined ? [] : [[inode, node] as const];
    });
    const journal = journalOf(yesterday);
    for (const tree of [today, start]) {
      const placed = rehearsal.place(new Map([...tree, ...copied]));
      copyInPlace(journal, fs.readFileSync(journal));
      assertRefused(placed, `a copy of ${state}`);
    }
  }

  function copyInPlace(journal: string, content: Buffer): void {
    fs.writeFileSync(`${journal}.copy`, content, { mode: 0o600 });
    fs.renameSync(`${journal}.copy`, journal);
  }

  function assertWhole(placed: Placed, state: State, what: string): void {
    assert.equal(placed.recover().outcome, whole[state].outcome, what);
    assert.equal(rehearsal.sideOf(placed.read(), recording), whole[state].side, what);
  }

  /** Each length that is too short and each byte with one bit flipped, with its place and a name. */
  function* damages(content: Buffer): Generator<{ bytes: Buffer; at: number; what: string }> {
    for (let at = 0; at < content.length; at += 1) {
      yield { bytes: content.subarray(0, at), at, what: `cut at ${at}` };
      const bytes = Buffer.from(content);
      bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (at % 8)), at);
      yield { bytes, at, what: `flipped at ${at}` };
    }
  }

  for (const state of states) {
    it(`${state}, truncated at every byte and with a bit flipped in every byte, is never half-replayed`, () => {
      const disk = diskIn(state);
      const journal = journalOf(disk);
      let placed = rehearsal.place(disk);
      const content = fs.readFileSync(journal);
      assert.ok(content.length > 600, `${content.length} bytes`);
      // in `staging` the first record alone decides: all that it began is thrown away
      const deciding = state === 'staging' ? content.readUInt32BE(0) + AROUND_BYTES : content.length;
      const inode = [...disk].find(([, node]) => node.kind === 'file' && node.content.equals(content))?.[0] ?? 0;
      for (const { bytes, at, what } of damages(content)) {
        fs.writeFileSync(journal, bytes);
        if (at < deciding) assertRefused(placed, what, rehearsal.keyOf(holding(disk, inode, bytes)));
        else {
          assertWhole(placed, state, what);
          placed = rehearsal.place(disk);
        }
      }
      fs.writeFileSync(journal, content);
      assertWhole(placed, state, 'whole');
    });

    it(`S-164 ${state}: of another root, another machine or a newer format, and as a copy from yesterday, it is refused and kept for the human`, () => {
      const disk = diskIn(state);
      const journal = journalOf(disk);
      const placed = rehearsal.place(disk);
      const { records } = readRecords(fs.readFileSync(journal));
      const rewritten = (changes: Partial<Record<keyof Begin, unknown>>): Buffer => {
        const writer = new RecordWriter();
        // the changes have the types of the fields, but for a format that this version does not know
        const other = (record: (typeof records)[number]) => ({ ...record, ...changes }) as typeof record;
        return Buffer.concat(records.map((one) => writer.next(one.kind === 'begin' ? other(one) : one)));
      };
      const others = [
        { rootIdentity: '0'.repeat(64) },
        { rootIno: '1' },
        { rootDev: '1' },
        // Of another machine: nothing that names the place is of this one.
        { rootIdentity: '1'.repeat(64), rootIno: '7', rootDev: '8', bootId: 'another boot', journalIno: '9' },
        { journalIno: '1' },
        { format: JOURNAL_FORMAT + 1 },
      ];
      for (const changes of others) {
        fs.writeFileSync(journal, rewritten(changes));
        assertRefused(placed, JSON.stringify(changes));
      }
      copyInPlace(journal, rewritten({}));
      assertRefused(placed, 'a copy in the tree that it was made in');
      assertYesterdayRefused(state);
      const again = rehearsal.place(disk);
      fs.writeFileSync(journal, rewritten({ rootDev: '1', bootId: 'another boot' }));
      assertWhole(again, state, 'of another boot');
    });

    it(`${state}: a link, a second name, a FIFO, another user’s file or one that is open to others is refused and kept`, () => {
      const disk = diskIn(state);
      const journal = journalOf(disk);
      const placed = rehearsal.place(disk);
      const real = path.join(scene.folder, 'real');
      fs.renameSync(journal, real);
      for (const [number, trap] of fileTraps.entries()) {
        if (!trap(real, journal)) continue;
        assertRefused(placed, `trap ${number}`);
        fs.rmSync(journal);
      }
      fs.renameSync(real, journal);
      assertWhole(placed, state, 'as it was');
    });
  }
});
