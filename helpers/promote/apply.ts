/*
 * One promotion, from the approved plan to the new tree or back to the old one. The order of the phases is the protocol; what
 * holds between them stands in journal.ts.
 *
 * Files are hashed in this thread, in turns (Pace), and not in a pool as workspace hashes: each reading of a file proves another
 * moment of it (as it was reviewed, as it was staged, before its path, under its lease), so those of one large file follow one
 * another whoever does them, and of 20,000 files with 1 GiB one reading with its hash took 2.7 s of 20 s. Threads would spare less
 * than that, and be threads in the one process that writes to the person's folder.
 */
import { closeSync } from 'node:fs';
import type { Turn } from '../files/digest.ts';
import { statx, fsync, syncfs } from '../runtime/native-files.ts';
import { checkCapable, described, probe } from './capabilities.ts';
import { fileSystemName, refusalOf } from './disk.ts';
import { syncFolders, syncTaken, touchedFolders } from './folder-times.ts';
import { goBack } from './go-back.ts';
import { BULK_FILES, goForward } from './go-forward.ts';
import { CommitUncertain, Journal, discardJournal, journalName } from './journal.ts';
import type { JournalFile, Prepared } from './journal.ts';
import { JOURNAL_FORMAT } from './journal-records.ts';
import type { Begin, Facts, Folder, Staging, Step } from './journal-records.ts';
import { placeStep } from './place.ts';
import type { Planned } from './plan.ts';
import { checkRoom, preflight, shapeOf } from './preflight.ts';
import { causeOf, needsPerson, tellNotKept, tellStop } from './recover.ts';
import { makeStage } from './stage.ts';
import { discardStage, openStage } from './stage-end.ts';
import type { Scene, Settled } from './stage-end.ts';
import { stageStep } from './stage-plan.ts';
import type { Contents } from './stage-plan.ts';
import { NativeError } from '../runtime/libc.ts';
import { asNative, Stopped } from './stop.ts';
import type { Reason } from './stop.ts';
import type { Tree } from './tree.ts';

const ITSELF = Buffer.alloc(0);

/** Phases in which a promotion tells how far it is. */
export type Phase = 'verifying' | 'staging' | 'applying' | 'committing' | 'cleaning';

/** What runs beside an apply: it is told how far things are, lets other requests in, and stops the apply when one of them asked for it. */
export interface Pace {
  /** Throws Stopped when the promotion was cancelled and is not committed. */
  readonly step: (phase: Phase, done: number, total: number) => Promise<void>;
  /** Lets other requests in between two pieces of one file; rejects as `step` does. */
  readonly turn: Turn;
  /** Takes a sentence for the owner's log. */
  readonly log: (sentence: string) => void;
}

/** Facts of the promotion itself, for its first record. */
export type Opening = Omit<Begin, 'kind' | 'format' | 'rootIno' | 'rootDev' | 'rootMtimeNs'>;

/** How an apply ended. */
export type Applied =
  | { readonly outcome: 'promoted'; readonly kept: readonly string[]; readonly notKept: number }
  | ({ readonly outcome: 'refused' } & Reason)
  | ({ readonly outcome: 'rolled-back'; readonly kept: readonly string[] } & Reason);

/** Applies a verified plan, all or restore. Throws only where no way out could be finished: recovery has the word then. */
export async function apply(
  scene: Scene,
  contents: Contents,
  opening: Opening,
  plan: readonly Planned[],
  pace: Pace,
): Promise<Applied> {
  const before: (Facts | null)[] = [];
  const shape = shapeOf(plan);
  let folders: Folder[];
  try {
    checkRoom(scene.root, plan);
    await pace.step('verifying', 0, plan.length);
    for (const planned of plan) {
      before.push(await preflight(scene.root, planned, shape, { look: 'whole', turn: pace.turn }));
      await pace.step('verifying', before.length, plan.length);
    }
    folders = touchedFolders(scene.root, plan);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    tellStop(error, pace.log);
    return { outcome: 'refused', ...reasonOf(error, scene) };
  }
  const work = new Promotion(scene, contents, beginOf(scene.root, opening));
  return work.run(plan, before, folders, pace);
}

/** A disk that refuses is named, and so is a file system that will not move what another would. */
function reasonOf({ code, path, detail, cause }: Stopped, scene: Scene): Reason {
  if (detail !== undefined || !(cause instanceof NativeError)) return { code, path, detail };
  try {
    if (code === 'PROMOTION_IO_FAILURE') return { code, path, detail: refusalOf(cause, scene) };
    if (code !== 'PROMOTION_UNSAFE_PATH') return { code, path, detail };
    return { code, path, detail: `${cause.message} on ${fileSystemName(scene.root)}` };
  } catch (error) {
    if (!(error instanceof NativeError)) throw error;
    // A disk that does not even say what it is keeps nobody from the way back.
    return { code, path, detail: cause.message };
  }
}

/** The first record of what is begun in a root. Throws NativeError. */
export function beginOf(root: number, opening: Opening): Begin {
  const { ino, dev, mtimeNs } = statx(root, ITSELF);
  return {
    kind: 'begin',
    format: JOURNAL_FORMAT,
    ...opening,
    rootIno: ino.toString(),
    rootDev: dev.toString(),
    rootMtimeNs: mtimeNs.toString(),
  };
}

class Promotion {
  readonly #scene: Scene;
  readonly #contents: Contents;
  readonly #begin: Begin;
  #staging: Staging | undefined;

  constructor(scene: Scene, contents: Contents, begin: Begin) {
    this.#scene = scene;
    this.#contents = contents;
    this.#begin = begin;
  }

  async run(
    plan: readonly Planned[],
    before: readonly (Facts | null)[],
    folders: readonly Folder[],
    pace: Pace,
  ): Promise<Applied> {
    const journal = Journal.begin(this.#scene.own, this.#begin);
    let prepared: Prepared | undefined;
    try {
      prepared = await this.#prepare(journal, plan, before, folders, pace);
      await this.#place(prepared, pace);
      await pace.step('committing', 0, 1);
      journal.commit({ kind: 'commit', at: Date.now() });
    } catch (error) {
      return this.#leave(journal, prepared, error, pace);
    } finally {
      journal.close();
    }
    await pace.step('cleaning', 0, plan.length);
    const { kept, notKept = 0 } = this.#clean(journal, prepared, pace);
    return { outcome: 'promoted', kept, notKept };
  }

  /** The new tree is the tree whatever happens here: what cannot be cleaned now is left to the next recovery. */
  #clean(journal: Journal, prepared: Prepared, pace: Pace): Settled {
    try {
      const settled = goForward(this.#scene, this.#fileOf(journal), prepared, Date.now());
      tellNotKept(settled, pace.log);
      return settled;
    } catch (error) {
      if (!needsPerson(error)) throw error;
      pace.log(causeOf('cleaning', error));
      return { kept: [], open: true };
    }
  }

  #fileOf(journal: Journal): JournalFile {
    return { folder: this.#scene.own, name: journalName(journal.state) };
  }

  /** Back to the old tree, for whatever reason. A disk that refuses even that throws, and the journal stays for the recovery. */
  #leave(journal: Journal, prepared: Prepared | undefined, error: unknown, pace: Pace): Applied {
    if (error instanceof CommitUncertain) throw error;
    const file = this.#fileOf(journal);
    const cause = asNative(error);
    const reason = cause instanceof NativeError ? new Stopped('PROMOTION_IO_FAILURE', undefined, { cause }) : cause;
    // Said and asked before the way back: it may break too, and after it the disk has room again.
    if (reason instanceof Stopped) tellStop(reason, pace.log);
    const told = reason instanceof Stopped ? reasonOf(reason, this.#scene) : undefined;
    let kept: readonly string[] = [];
    if (prepared !== undefined) {
      kept = goBack(this.#scene, file, prepared).kept;
    } else {
      discardStage(this.#scene.root, file, this.#begin, this.#staging);
      discardJournal(file);
    }
    if (!(reason instanceof Stopped) || told === undefined) throw reason;
    return { outcome: 'rolled-back', ...told, kept };
  }

  /** Stages all new content and enters `prepared`. */
  async #prepare(
    journal: Journal,
    plan: readonly Planned[],
    before: readonly (Facts | null)[],
    folders: readonly Folder[],
    pace: Pace,
  ): Promise<Prepared> {
    const { root } = this.#scene;
    const contents = this.#contents;
    const stage = makeStage(root, this.#begin.stage);
    try {
      const staging: Staging = {
        kind: 'staging',
        stageIno: statx(stage, ITSELF).ino.toString(),
        rootMtimeNs: statx(root, ITSELF).mtimeNs.toString(),
      };
      this.#staging = staging;
      journal.append(staging);
      journal.write();
      const found = probe(stage);
      checkCapable(
        found,
        plan.some(({ change }) => change === 'modified'),
      );
      const { leases, unnamed, reflink } = found;
      const { turn } = pace;
      const steps: Step[] = [];
      const isBulk = plan.filter(({ after }) => after !== null).length >= BULK_FILES;
      await pace.step('staging', 0, plan.length);
      for (const planned of plan) {
        const { slot, path, change, type } = planned;
        const after = await stageStep({ root, stage, contents, unnamed, reflink, turn, sync: !isBulk }, planned);
        const step: Step = { kind: 'step', slot, path, change, type, before: before[slot] ?? null, after };
        journal.append(step);
        steps.push(step);
        await pace.step('staging', steps.length, plan.length);
      }
      for (const folder of folders) journal.append(folder);
      if (isBulk) syncfs(stage);
      else fsync(stage);
      fsync(root);
      const fileSystem = described(found);
      journal.prepare({ kind: 'prepare', steps: steps.length, folders: folders.length, leases, fileSystem });
      return { begin: this.#begin, staging, steps, folders, leases };
    } finally {
      closeSync(stage);
    }
  }

  #stageOf({ stageIno }: Staging): number {
    const stage = openStage(this.#scene.root, this.#begin.stage, stageIno);
    if (stage === undefined) throw new Stopped('PROMOTION_CONFLICT');
    return stage;
  }

  /** Every step forward, then every touched folder to the disk. */
  async #place({ staging, steps, leases }: Prepared, pace: Pace): Promise<void> {
    const { root } = this.#scene;
    const tree: Tree = { root, stage: this.#stageOf(staging), leases };
    try {
      await pace.step('applying', 0, steps.length);
      for (const [index, step] of steps.entries()) {
        await placeStep(tree, step, pace.turn);
        await pace.step('applying', index + 1, steps.length);
      }
      syncFolders(root, steps);
      syncTaken(tree.stage, steps);
      fsync(tree.stage);
    } finally {
      closeSync(tree.stage);
    }
  }
}
