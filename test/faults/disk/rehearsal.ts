/*
 * Promotions on a modelled disk: recorded while promote's own code applies them, and recovered by promote's own code from any
 * disk that a crash may leave, always in the same two real folders.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';

import { PromoteHandlers } from '../../../helpers/promote/handlers.ts';
import { MarkDamaged, readMark } from '../../../helpers/promote/mark.ts';
import { recover } from '../../../helpers/promote/recover.ts';
import type { Recovered } from '../../../helpers/promote/recover.ts';
import { readUnverified } from '../../../helpers/protocol/statements.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';
import type { Interposer } from '../../../helpers/runtime/libc.ts';
import type { PromotionScene, Wanted } from '../../fakes/promotion-scene.ts';
import { applied, pathsOf } from './model.ts';
import type { Disk, Inode, Operation } from './model.ts';
import { readCopy, writeCopy } from './real-copy.ts';
import type { Known } from './real-copy.ts';
import { Recorder } from './recorder.ts';
import { sideOf, takenAway, toldOf, treeOf } from './recording.ts';
import type { Promoted, Recording, Side, Tree } from './recording.ts';

/** What a draft changes, by path. */
export type Draft = Readonly<Record<string, Wanted>>;

/** What a recovery made of a disk: the tree that stands, or what is wrong with it; and what the recovery did on the way. */
export interface Ending {
  readonly side: Side | undefined;
  readonly fault: string | undefined;
  /** The disk that the recovery found, with all that it made on the way, and what it did, for crashes in it. */
  readonly start: Disk;
  readonly operations: readonly Operation[];
}

/** A disk in the real folders. */
export interface Placed {
  /** Recovers, and returns what is answered and what is said to the owner. */
  readonly recover: () => Recovered & { readonly said: readonly string[] };
  readonly read: () => Disk;
  /** What was done since, and the disk that it was done to. */
  readonly done: () => { readonly operations: readonly Operation[]; readonly start: Disk };
}

const BOOT = 'this boot';
const none = (): void => undefined;

/** The real folders of one scene, in which disks are rehearsed. */
export class Rehearsal {
  readonly #scene: PromotionScene;
  readonly #root: Inode;
  readonly #own: Inode;
  readonly #tops: ReadonlyMap<string, Inode>;
  readonly #kernel: Interposer;
  readonly #given: {
    readonly root: number;
    readonly own: number;
    readonly draft: number;
    readonly owner: number;
    readonly configuration: number;
  };

  /** `kernel` makes the calls in place of the one below, where it has what that has not. */
  constructor(scene: PromotionScene, kernel: Interposer = (_name, _args, make) => make()) {
    this.#scene = scene;
    this.#kernel = kernel;
    const open = (folder: string): number => fs.openSync(folder, 'r');
    const { root, own, draft, owner, configuration } = scene;
    this.#root = fs.statSync(root).ino;
    this.#own = fs.statSync(own).ino;
    this.#tops = new Map([
      [root, this.#root],
      [own, this.#own],
    ]);
    this.#given = {
      root: open(root),
      own: open(own),
      draft: open(draft),
      owner: open(owner),
      configuration: open(configuration),
    };
  }

  /** Promotes these drafts, one after the other, on the folders as they are. */
  async record(drafts: readonly Draft[]): Promise<Recording> {
    // the lock that every process takes first is made before, since it says nothing
    const handlers = this.#handlers();
    handlers.recover({ promotions: [] });
    await handlers.end();
    const known: Known = new Map();
    return this.#record(drafts, readCopy(this.#tops, known), known);
  }

  /** Recovers from a disk and promotes these drafts then. The first tree of the recording is the one that the recovery left. */
  recordFrom(disk: Disk, drafts: readonly Draft[]): Promise<Recording> {
    return this.#record(drafts, disk, writeCopy(disk, this.#tops));
  }

  /** Recovers from a disk and says what stands then, among the trees of a recording. */
  recover(disk: Disk, recording: Recording): Ending {
    const placed = this.place(disk);
    let fault: string | undefined;
    try {
      fault = faultOfRecovery(placed);
    } catch (error) {
      fault = `the recovery ends with ${String(error)}`;
    }
    const after = placed.read();
    const side = this.sideOf(after, recording);
    if (side === undefined)
      fault ??= `no tree that may stand: ${[...treeOf(after, this.#root, recording.start)].join('; ')}`;
    else fault ??= this.#faultOfOwn(after, recording.promotions.slice(0, side));
    return { side, fault, ...placed.done() };
  }

  /** Makes a disk in the real folders. */
  place(disk: Disk): Placed {
    const recorder = this.#recorder(writeCopy(disk, this.#tops), disk);
    return {
      recover: () => {
        const said: string[] = [];
        interpose(this.#between(recorder));
        try {
          const log = (sentence: string): void => void said.push(sentence);
          return { ...recover(this.#given, { bootId: BOOT, now: Date.now(), log }), said };
        } finally {
          interpose(undefined);
        }
      },
      read: () => readCopy(this.#tops, recorder.known),
      done: () => ({ operations: recorder.operations, start: new Map([...disk, ...recorder.born]) }),
    };
  }

  /** Which tree of a recording a disk holds. */
  sideOf(disk: Disk, recording: Recording): Side | undefined {
    return sideOf(treeOf(disk, this.#root, recording.start), recording);
  }

  /** What tells two disks apart for a recovery, as text; promote knows files of its own folder by name and content alone. */
  keyOf(disk: Disk): string {
    const root = Array.from(
      pathsOf(disk, this.#root),
      ([path, inode]) => `${path} ${inode} ${toldOf(disk.get(inode))}`,
    );
    const own = Array.from(pathsOf(disk, this.#own), ([path, inode]) => `own/${path} ${toldOf(disk.get(inode))}`);
    return [...root, ...own].join('\n');
  }

  close(): void {
    for (const descriptor of Object.values(this.#given)) fs.closeSync(descriptor);
    this.#scene.remove();
  }

  #handlers(): PromoteHandlers {
    return new PromoteHandlers({ ...this.#given, forbidden: [] }, BOOT, none, none);
  }

  #between(recorder: Recorder): Interposer {
    return (name, args, make, number) => recorder.interposer(name, args, () => this.#kernel(name, args, make, number));
  }

  #recorder(known: Known, disk: Disk): Recorder {
    return new Recorder(
      known,
      disk,
      new Map([
        [this.#root, 'root'],
        [this.#own, 'own'],
      ]),
    );
  }

  async #record(drafts: readonly Draft[], before: Disk, known: Known): Promise<Recording> {
    const recorder = this.#recorder(known, before);
    const trees: Tree[] = [];
    const promotions: Promoted[] = [];
    let last = before;
    for (const draft of drafts) {
      const id = await this.#promote(draft, recorder, (disk) => {
        last = disk;
        if (trees.length === 0) trees.push(treeOf(disk, this.#root, before));
      });
      const now = readCopy(this.#tops, recorder.known);
      promotions.push({ id, ...marksOf(recorder.operations), old: takenAway(last, now, this.#root) });
      trees.push(treeOf(now, this.#root, before));
      last = now;
    }
    const start = new Map([...before, ...recorder.born]);
    // the model is worth what it tells of a disk that loses nothing
    const all = applied(start, recorder.operations);
    assert.deepEqual(treeOf(all, this.#root, before), treeOf(last, this.#root, before));
    assert.deepEqual(treeOf(all, this.#own, new Map()), treeOf(last, this.#own, new Map()));
    return { start, operations: recorder.operations, trees, promotions };
  }

  /** Recovers, tells what stands then, and promotes a draft; returns the promotion's id. */
  async #promote(draft: Draft, recorder: Recorder, recovered: (disk: Disk) => void): Promise<string> {
    const handlers = this.#handlers();
    interpose(this.#between(recorder));
    try {
      assert.notEqual(handlers.recover({ promotions: [] }).outcome, 'needs-attention');
      interpose(undefined);
      recovered(readCopy(this.#tops, recorder.known));
      this.#scene.draftOf(draft);
      const approval = this.#scene.approve();
      interpose(this.#between(recorder));
      assert.equal((await handlers.apply({ approval })).outcome, 'promoted');
      return readUnverified('control.approval', approval).promotion;
    } finally {
      interpose(undefined);
      await handlers.end();
    }
  }

  /** What promote's own folder must hold beside a tree: nothing under way, and of each promotion that was made its old files and its mark. */
  #faultOfOwn(disk: Disk, made: readonly Promoted[]): string | undefined {
    const paths = pathsOf(disk, this.#own);
    const left = [...paths.keys()].find((path) => /^journal\.|^(?:waiting|attention|settled|kept)\//.test(path));
    if (left !== undefined) return `${left} is left`;
    const used = this.#used();
    if (used === undefined) return 'the mark of seen approvals is damaged';
    for (const { id, old } of made) {
      if (!used.includes(id)) return 'a promotion that was made is not marked as used';
      if (!paths.has(`history/${id}/journal`)) return 'a promotion that was made is not in the history';
      const kept = [...paths].filter(([path]) => path.startsWith(`history/${id}/`)).map(([, inode]) => disk.get(inode));
      const isKept = (content: string): boolean =>
        kept.some((node) => node?.kind === 'file' && node.content.toString('latin1') === content);
      if (!old.every(isKept)) return 'an old file is not in the history';
    }
    return undefined;
  }

  #used(): readonly string[] | undefined {
    try {
      return readMark(this.#given.own).used;
    } catch (error) {
      if (error instanceof MarkDamaged) return undefined;
      throw error;
    }
  }
}

function faultOfRecovery(placed: Placed): string | undefined {
  const { outcome, conflicts, said } = placed.recover();
  if (outcome === 'needs-attention' || conflicts.length > 0)
    return `a person is asked: ${[outcome, ...said].join(', ')}`;
  const again = placed.recover().outcome;
  return again === 'nothing-to-do' ? undefined : `a second recovery finds something: ${again}`;
}

/** Where the last promotion of a recording names its journal prepared, and where its commit is told: after the sync that follows its name. */
function marksOf(operations: readonly Operation[]): { prepared: number; committed: number } {
  const last = (name: string): number =>
    operations.findLastIndex((operation) => operation.kind === 'change' && operation.what.endsWith(` to ${name}`));
  const [prepared, committed] = [last('journal.prepared'), last('journal.committed') + 1];
  assert.ok(prepared > 0 && committed > prepared && operations[committed]?.kind === 'sync');
  return { prepared, committed };
}
