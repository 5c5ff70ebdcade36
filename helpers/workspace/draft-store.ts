/*
 * All drafts below the drafts folder: which run has which slot, who uses one now, and the order of changes within a run.
 *
 * INVARIANT 1  A run has at most one draft, and a draft exactly one run; the index's name says which.
 * INVARIANT 2  Changes of one run happen one after the other; a frozen draft is not changed.
 * INVARIANT 3  A damaged draft is kept as it is until its owner discards it.
 */
import { closeSync, fsync } from 'node:fs';
import { promisify } from 'node:util';

import { indexName, manifestOf, runOfDraft, slotName, slotOf } from '../files/draft.ts';
import { DraftDamaged } from '../files/draft-index.ts';
import { manifestBytes, manifestDigest } from '../files/manifest.ts';
import { entriesIn, openFolder } from '../files/walk.ts';
import type { DraftFacts } from '../protocol/draft-facts.ts';
import type { PromotionId, RunId } from '../protocol/ids.ts';
import { AT_REMOVEDIR, statx, unlinkat } from '../runtime/native-files.ts';
import { DraftBudget, MACHINE_LIMITS, type MachineLimits } from './draft-budget.ts';
import { denied, unavailable } from './failures.ts';
import { OpenDraft } from './open-draft.ts';
import type { WorkspaceRefusal } from './protocol.ts';

const flush = promisify(fsync);
/** Drafts that stay open although nobody uses them; each holds two descriptors. */
const IDLE_LIMIT = 32;

/** A request about a draft that policy or its state forbids. */
export class DraftRefused extends Error {
  override readonly name = 'DraftRefused';
  readonly code: WorkspaceRefusal;

  constructor(code: WorkspaceRefusal, message: string) {
    super(message);
    this.code = code;
  }
}

interface Held {
  readonly draft: OpenDraft;
  users: number;
}

/** Bytes and digest of a manifest. */
export interface SealedManifest {
  readonly bytes: Buffer;
  readonly digest: string;
}

/** Bytes and digest of what an open draft changes. */
export function sealManifest(draft: OpenDraft): SealedManifest {
  const bytes = manifestBytes(manifestOf(draft));
  return { bytes, digest: manifestDigest(bytes) };
}

/** The drafts of one root; `drafts` is the open folder, `rootIdentity` 64 hexadecimal digits. */
export class DraftStore {
  readonly #drafts: number;
  readonly #rootIdentity: string;
  readonly #budget: DraftBudget;
  readonly #idlePaths: number;
  readonly #slots = new Map<RunId, number>();
  readonly #held = new Map<string, Held>();
  readonly #queues = new Map<string, Promise<unknown>>();
  #nextSlot = 1;

  /** Reads which drafts there are; a draft whose making a crash cut off is removed. */
  constructor(drafts: number, rootIdentity: string, limits: MachineLimits = MACHINE_LIMITS) {
    this.#idlePaths = limits.idlePaths;
    this.#drafts = drafts;
    this.#rootIdentity = rootIdentity;
    this.#budget = new DraftBudget(drafts, limits);
    const names = [...entriesIn(drafts)].map(({ name }) => name);
    for (const name of names) this.#find(name);
  }

  #find(name: Buffer): void {
    const slot = slotOf(name);
    if (slot === undefined) return;
    this.#nextSlot = Math.max(this.#nextSlot, slot + 1);
    const folder = openFolder(this.#drafts, [name]);
    try {
      // what cannot be read as a draft takes its place too
      this.#budget.note(slot, bytesIn(folder));
      const run = runOfDraft(folder);
      if (run !== undefined) this.#slots.set(run, slot);
      else {
        removeFolder(this.#drafts, name, folder);
        this.#budget.forget(slot);
      }
    } catch (error) {
      // a folder that cannot be read as a draft belongs to no run that could ask for it: it is left for a person
      if (!(error instanceof DraftDamaged)) throw error;
    } finally {
      closeSync(folder);
    }
  }

  /** Lends the draft of a run for as long as `use` takes; undefined when the run has none. Throws DraftDamaged. */
  async lend<Result>(run: RunId, use: (draft: OpenDraft | undefined) => Promise<Result>): Promise<Result> {
    const held = this.#hold(run);
    try {
      return await use(held?.draft);
    } finally {
      this.#letGo(held);
    }
  }

  /** Lends the draft of a run for a change, with a way to make it if there is none; changes of one run wait for each other. Throws OperationFailed. */
  change<Result>(
    run: RunId,
    change: (draft: OpenDraft | undefined, make: () => Promise<OpenDraft>) => Promise<Result>,
  ): Promise<Result> {
    return this.#inTurn(run, async () => {
      const found = this.#hold(run);
      let made: Held | undefined;
      try {
        if (found && found.draft.frozenFor !== null)
          throw denied('the draft of this run is being promoted; wait until that has ended');
        return await change(found?.draft, async () => (found ?? (made ??= await this.#make(run))).draft);
      } finally {
        this.#letGo(found ?? made);
      }
    });
  }

  /** Drafts that are frozen, each with the promotion that it is frozen for; of a damaged one nobody can say. */
  frozen(): { readonly run: RunId; readonly promotion: PromotionId }[] {
    return [...this.#slots.keys()].flatMap((run) => {
      const promotion = this.#frozenFor(run);
      return promotion === null ? [] : [{ run, promotion }];
    });
  }

  /** Facts of every draft, oldest slot first; a damaged draft has counts of zero. */
  list(): DraftFacts[] {
    const facts = [...this.#slots].map(([run, slot]) => this.#factsOf(run, slot));
    return facts.toSorted((one, two) => one.slot - two.slot);
  }

  #factsOf(run: RunId, slot: number): DraftFacts {
    try {
      return this.#peek(run, (draft) => {
        if (!draft) throw new DraftDamaged('draft went away');
        const { header, changedAt, byteCount } = draft;
        const changeCount = manifestOf(draft).changes.length;
        return { run, slot, changeCount, byteCount, createdAt: header.createdAt, changedAt, damaged: false };
      });
    } catch (error) {
      if (!(error instanceof DraftDamaged)) throw error;
      const at = Number(statx(this.#drafts, slotName(slot)).mtimeNs / 1_000_000n);
      return { run, slot, changeCount: 0, byteCount: 0, createdAt: at, changedAt: at, damaged: true };
    }
  }

  /** Removes a draft for good, a damaged one too; false when there was none. Throws DraftRefused. */
  discard(run: RunId): Promise<boolean> {
    return this.#inTurn(run, async () => {
      if (this.#frozenFor(run) !== null)
        throw new DraftRefused('DRAFT_FROZEN', 'the draft is being promoted; wait until that has ended');
      return this.#remove(run);
    });
  }

  #frozenFor(run: RunId): PromotionId | null {
    try {
      return this.#peek(run, (draft) => draft?.frozenFor ?? null);
    } catch (error) {
      if (error instanceof DraftDamaged) return null;
      throw error;
    }
  }

  /** Freezes the draft for a promotion under the digest that was approved. Throws DraftRefused. */
  freeze(
    run: RunId,
    promotion: PromotionId,
    digest: string,
  ): Promise<{ readonly slot: number; readonly manifest: Buffer }> {
    return this.#inTurn(run, () =>
      this.lendExisting(run, async (draft) => {
        const manifest = sealManifest(draft);
        if (manifest.digest !== digest) {
          throw new DraftRefused('MANIFEST_STALE', 'the draft is not what was reviewed; review it again');
        }
        if (draft.frozenFor !== null && draft.frozenFor !== promotion)
          throw new DraftRefused('DRAFT_FROZEN', 'the draft is being promoted; wait until that has ended');
        await draft.setFrozen(promotion);
        return { slot: draft.slot, manifest: manifest.bytes };
      }),
    );
  }

  /** Ends a promotion: the draft that was frozen for it is gone, or can be changed again; any other is left as it is. */
  release(run: RunId, promotion: PromotionId, promoted: boolean): Promise<void> {
    return this.#inTurn(run, async () => {
      if (this.#frozenFor(run) !== promotion) return;
      if (promoted) return void (await this.#remove(run));
      const held = this.#open(run);
      try {
        await held?.draft.setFrozen(null);
      } finally {
        this.#letGo(held);
      }
    });
  }

  /** Lends a draft that must be there. Throws DraftRefused. */
  async lendExisting<Result>(run: RunId, use: (draft: OpenDraft) => Promise<Result>): Promise<Result> {
    try {
      return await this.lend(run, async (draft) => {
        if (!draft) throw new DraftRefused('DRAFT_UNKNOWN', 'this run has no draft');
        return use(draft);
      });
    } catch (error) {
      if (error instanceof DraftDamaged) throw new DraftRefused('DRAFT_DAMAGED', error.message);
      throw error;
    }
  }

  /** Looks at a draft over whichever root: what there is can be told, and ended, when the root is another one. Throws DraftDamaged. */
  #peek<Result>(run: RunId, look: (draft: OpenDraft | undefined) => Result): Result {
    const held = this.#open(run);
    try {
      return look(held?.draft);
    } finally {
      this.#letGo(held);
    }
  }

  /** The draft of a run for use over this root. Throws DraftDamaged, OperationFailed. */
  #hold(run: RunId): Held | undefined {
    const held = this.#open(run);
    if (!held || held.draft.header.rootIdentity === this.#rootIdentity) return held;
    this.#letGo(held);
    throw unavailable('the draft of this run was made over another root; discard it on the machine first');
  }

  #open(run: RunId): Held | undefined {
    const known = this.#held.get(run);
    const slot = this.#slots.get(run);
    if (slot === undefined) return undefined;
    const held = known ?? { draft: OpenDraft.open(this.#drafts, slot, run, this.#budget), users: 0 };
    // the least lately used one stands first
    this.#held.delete(run);
    this.#held.set(run, held);
    held.users += 1;
    return held;
  }

  #letGo(held: Held | undefined): void {
    if (!held) return;
    held.users -= 1;
    if (held.users === 0 && this.#held.get(held.draft.header.run) !== held) held.draft.close();
    const idle = [...this.#held].filter(([, { users }]) => users === 0);
    let paths = 0;
    // the one that was used last stays, whatever it holds
    for (const [index, [run, { draft }]] of idle.toReversed().entries()) {
      paths += draft.entries.size;
      if (index === 0 || (index < IDLE_LIMIT && paths <= this.#idlePaths)) continue;
      this.#held.delete(run);
      draft.close();
    }
  }

  async #make(run: RunId): Promise<Held> {
    this.#budget.assertDraft();
    const slot = this.#nextSlot;
    this.#nextSlot += 1;
    // counted from here on, so that several that are made at once are counted too
    this.#budget.note(slot, 0);
    const header = { run, rootIdentity: this.#rootIdentity, createdAt: Date.now() };
    try {
      const held = { draft: await OpenDraft.create(this.#drafts, slot, header, this.#budget), users: 1 };
      this.#slots.set(run, slot);
      this.#held.set(run, held);
      return held;
    } catch (error) {
      this.#budget.forget(slot);
      throw error;
    }
  }

  async #remove(run: RunId): Promise<boolean> {
    const slot = this.#slots.get(run);
    if (slot === undefined) return false;
    this.#slots.delete(run);
    const held = this.#held.get(run);
    this.#held.delete(run);
    if (held && held.users === 0) held.draft.close();
    const folder = openFolder(this.#drafts, [slotName(slot)]);
    try {
      // without its index the folder is no draft any more, whatever a crash leaves of the rest
      unlinkat(folder, indexName(run), 0);
      await flush(folder);
      removeFolder(this.#drafts, slotName(slot), folder);
      this.#budget.forget(slot);
      await flush(this.#drafts);
    } finally {
      closeSync(folder);
    }
    return true;
  }

  #inTurn<Result>(run: RunId, work: () => Promise<Result>): Promise<Result> {
    const before = this.#queues.get(run) ?? Promise.resolve();
    // the one before has told its own caller how it ended
    const turn = before.then(work, work);
    this.#queues.set(run, turn);
    const forget = (): void => {
      if (this.#queues.get(run) === turn) this.#queues.delete(run);
    };
    turn.then(forget, forget);
    return turn;
  }
}

/** Bytes of the files in a draft's folder. */
function bytesIn(folder: number): number {
  return [...entriesIn(folder)].reduce((sum, { name }) => sum + Number(statx(folder, name).size), 0);
}

function removeFolder(drafts: number, name: Buffer, folder: number): void {
  const names = [...entriesIn(folder)].map((entry) => entry.name);
  for (const own of names) unlinkat(folder, own, 0);
  unlinkat(drafts, name, AT_REMOVEDIR);
}
