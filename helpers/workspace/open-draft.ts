/*
 * One draft, open for its run: the only writer of its folder.
 *
 * A step is: content files written, flushed and closed; the folder flushed; one record appended to the index and flushed;
 * only then the step is known here, answered, and what it replaced is unlinked. A crash between any two calls leaves the
 * draft as it was before or after the step (S-186), and `DraftStore` clears what a crash left over.
 */
import { closeSync, constants, fsync, write } from 'node:fs';
import { promisify } from 'node:util';

import { contentName, indexName, nextIndexName, openInDraft, slotName } from '../files/draft.ts';
import {
  readIndex,
  sealHeader,
  sealFrozen,
  sealSteps,
  type DraftHeader,
  type Entry,
  type IndexState,
  type PathKey,
  type Sealed,
  type Step,
} from '../files/draft-index.ts';
import { entriesIn, openFolder } from '../files/walk.ts';
import type { PromotionId } from '../protocol/ids.ts';
import { mkdirat, RENAME, renameat2, unlinkat } from '../runtime/native-files.ts';
import type { DraftBudget } from './draft-budget.ts';
import { OperationFailed } from './failures.ts';
import type { Overlay } from './view.ts';

const flush = promisify(fsync);
const writeAt = promisify(write);

/**
 * What a draft may hold: changed paths, and bytes of changed content. Nothing else of the tree counts.
 *
 * Paths: as many entries as a promotion is shown to apply within its memory (S-176); an open draft takes some 10 MiB here then.
 * Bytes: an eighth of what all drafts of a machine may take (draft-budget.ts). A draft is what one person reads before approving,
 * and its bytes stand three times on the disk while it is promoted: in the draft, in the stage folder, and what they replace in the
 * history. What promote takes is more, for files that stand already: a mode alone, or a removal, brings no bytes into a draft.
 */
export const DRAFT_LIMITS = { paths: 20_000, bytes: 134_217_728 } as const;
/** An index below this size is never rewritten, bytes. */
const COMPACT_ABOVE_BYTES = 1_048_576;

/** Writes all bytes at an offset. */
export async function writeAll(descriptor: number, bytes: Uint8Array, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await writeAt(descriptor, bytes, done, bytes.length - done, offset + done);
    done += bytesWritten;
  }
}

/** An open draft; `close` it once. Its changes must be made one after the other. */
export class OpenDraft implements Overlay {
  readonly slot: number;
  readonly folder: number;
  readonly header: DraftHeader;
  readonly entries: Map<PathKey, Entry>;
  frozenFor: PromotionId | null;
  changedAt: number;
  /** Counts the steps since it was opened. */
  revision = 0;
  readonly #budget: DraftBudget;
  #index: number;
  #checksum: Buffer;
  #wholeBytes: number;
  #compactAbove: number;
  #mustRewrite: boolean;
  #nextContent: number;
  #contentBytes = 0;

  private constructor(slot: number, folder: number, index: number, state: IndexState, budget: DraftBudget) {
    this.slot = slot;
    this.#budget = budget;
    this.folder = folder;
    this.header = state.header;
    this.entries = state.entries;
    this.frozenFor = state.frozenFor;
    this.changedAt = state.changedAt;
    this.#index = index;
    this.#checksum = state.checksum;
    this.#wholeBytes = state.wholeBytes;
    this.#compactAbove = Math.max(COMPACT_ABOVE_BYTES, state.wholeBytes * 4);
    this.#mustRewrite = state.fileBytes !== state.wholeBytes;
    this.#nextContent = 1;
    for (const { now } of this.entries.values()) {
      this.#contentBytes += contentBytes(now);
      if (now.type === 'file') this.#nextContent = Math.max(this.#nextContent, now.content + 1);
    }
  }

  /** Makes an empty draft in a new folder. Throws NativeError. */
  static async create(drafts: number, slot: number, header: DraftHeader, budget: DraftBudget): Promise<OpenDraft> {
    mkdirat(drafts, slotName(slot), 0o700);
    const folder = openFolder(drafts, [slotName(slot)]);
    try {
      await placeIndex(folder, header.run, sealHeader(header).bytes, 'new');
      await flush(drafts);
      return OpenDraft.#from(slot, folder, header.run, budget);
    } catch (error) {
      closeSync(folder);
      throw error;
    }
  }

  /** Opens the draft of a run in its folder. Throws DraftDamaged or NativeError. */
  static open(drafts: number, slot: number, run: string, budget: DraftBudget): OpenDraft {
    const folder = openFolder(drafts, [slotName(slot)]);
    try {
      const draft = OpenDraft.#from(slot, folder, run, budget);
      draft.#removeLeftOvers();
      return draft;
    } catch (error) {
      closeSync(folder);
      throw error;
    }
  }

  static #from(slot: number, folder: number, run: string, budget: DraftBudget): OpenDraft {
    const index = openInDraft(folder, indexName(run), constants.O_RDWR);
    try {
      const draft = new OpenDraft(slot, folder, index, readIndex(index), budget);
      draft.#noteSize();
      return draft;
    } catch (error) {
      closeSync(index);
      throw error;
    }
  }

  /** Bytes of changed content. */
  get byteCount(): number {
    return this.#contentBytes;
  }

  /** Ends the use of this draft. */
  close(): void {
    closeSync(this.#index);
    closeSync(this.folder);
  }

  /** Throws OperationFailed DRAFT_LIMIT unless so many more paths and bytes fit. */
  assertRoom(paths: number, bytes: number): void {
    const pathCount = this.entries.size + paths;
    if (pathCount > DRAFT_LIMITS.paths) {
      throw limit(`${pathCount} changed paths, allowed are ${DRAFT_LIMITS.paths}`);
    }
    const byteCount = this.#contentBytes + bytes;
    if (byteCount > DRAFT_LIMITS.bytes) throw limit(`${byteCount} changed bytes, allowed are ${DRAFT_LIMITS.bytes}`);
    this.#budget.assertBytes(bytes);
  }

  /** Makes a content file by `fill` and brings it to the disk; answers its number. It is no part of the draft before `apply`. */
  async addContent(fill: (descriptor: number) => Promise<void>): Promise<number> {
    const content = this.#nextContent;
    this.#nextContent += 1;
    const descriptor = openInDraft(this.folder, contentName(content), NEW_FILE);
    try {
      await fill(descriptor);
      await flush(descriptor);
    } catch (error) {
      this.dropContent(content);
      throw error;
    } finally {
      closeSync(descriptor);
    }
    return content;
  }

  /** Removes a content file that no entry names. */
  dropContent(content: number): void {
    unlinkat(this.folder, contentName(content), 0);
  }

  /** Makes one step durable. Throws OperationFailed DRAFT_LIMIT, or a system error and then the draft is as before. */
  async apply(steps: readonly Step[]): Promise<void> {
    const added = steps.filter(({ path, entry }) => entry && !this.entries.has(path)).length;
    const removed = steps.filter(({ path, entry }) => !entry && this.entries.has(path)).length;
    const before = steps.reduce((sum, { path }) => sum + contentBytes(this.entries.get(path)?.now), 0);
    const after = steps.reduce((sum, { entry }) => sum + contentBytes(entry?.now), 0);
    this.assertRoom(added - removed, after - before);
    await flush(this.folder);
    const at = Date.now();
    await this.#append((previous) => sealSteps(previous, at, steps));
    this.changedAt = at;
    this.revision += 1;
    this.#contentBytes += after - before;
    this.#adopt(steps);
    this.#noteSize();
  }

  #noteSize(): void {
    this.#budget.note(this.slot, this.#contentBytes + this.#wholeBytes);
  }

  /** Freezes the draft for a promotion, or lets it go with null, durably. */
  async setFrozen(frozenFor: PromotionId | null): Promise<void> {
    if (this.frozenFor === frozenFor) return;
    const at = this.changedAt;
    await this.#append((previous) => sealFrozen(previous, at, frozenFor));
    this.frozenFor = frozenFor;
  }

  #adopt(steps: readonly Step[]): void {
    const replaced = new Set(steps.map(({ path }) => contentOf(this.entries.get(path))));
    for (const { path, entry } of steps) {
      if (entry) this.entries.set(path, entry);
      else this.entries.delete(path);
      replaced.delete(contentOf(entry));
    }
    replaced.delete(0);
    for (const content of replaced) this.dropContent(content);
  }

  async #append(seal: (previous: Buffer) => Sealed): Promise<void> {
    if (this.#mustRewrite || this.#wholeBytes > this.#compactAbove) await this.#rewrite();
    const record = seal(this.#checksum);
    // whatever happens from here on, the file may end in the middle of a record until the flush has succeeded
    this.#mustRewrite = true;
    await writeAll(this.#index, record.bytes, this.#wholeBytes);
    await flush(this.#index);
    this.#mustRewrite = false;
    this.#checksum = record.checksum;
    this.#wholeBytes += record.bytes.length;
  }

  /** Writes the index anew from what is known here, and exchanges it for the old one. */
  async #rewrite(): Promise<void> {
    const header = sealHeader(this.header);
    const steps = [...this.entries].map(([path, entry]) => ({ path, entry }));
    const body = sealSteps(header.checksum, this.changedAt, steps);
    const frozen = sealFrozen(body.checksum, this.changedAt, this.frozenFor);
    const bytes = Buffer.concat([header.bytes, body.bytes, frozen.bytes]);
    await placeIndex(this.folder, this.header.run, bytes, 'in place of the old');
    closeSync(this.#index);
    this.#index = openInDraft(this.folder, indexName(this.header.run), constants.O_RDWR);
    this.#checksum = frozen.checksum;
    this.#wholeBytes = bytes.length;
    this.#compactAbove = Math.max(COMPACT_ABOVE_BYTES, bytes.length * 4);
    this.#mustRewrite = false;
  }

  #removeLeftOvers(): void {
    const keep = new Set([indexName(this.header.run).toString('latin1')]);
    for (const entry of this.entries.values()) keep.add(contentName(contentOf(entry)).toString('latin1'));
    const names = [...entriesIn(this.folder)].map(({ name }) => name);
    for (const name of names) if (!keep.has(name.toString('latin1'))) unlinkat(this.folder, name, 0);
  }
}

const NEW_FILE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;

const limit = (what: string): OperationFailed =>
  new OperationFailed('DRAFT_LIMIT', `the draft would hold ${what}; promote or discard it first, or change less`);

/** Throws OperationFailed DRAFT_LIMIT for content that no draft takes, so that a huge file is refused before it is read. */
export function assertFits(bytes: number): void {
  if (bytes > DRAFT_LIMITS.bytes) throw limit(`${bytes} changed bytes, allowed are ${DRAFT_LIMITS.bytes}`);
}

function contentBytes(now: Entry['now'] | undefined): number {
  return now?.type === 'file' && now.content !== 0 ? now.bytes : 0;
}

function contentOf(entry: Entry | null | undefined): number {
  return entry?.now.type === 'file' ? entry.now.content : 0;
}

async function placeIndex(
  folder: number,
  run: string,
  bytes: Buffer,
  place: 'new' | 'in place of the old',
): Promise<void> {
  const next = nextIndexName(run);
  const left = [...entriesIn(folder)].some(({ name }) => name.equals(next));
  if (left) unlinkat(folder, next, 0);
  const descriptor = openInDraft(folder, next, NEW_FILE);
  try {
    await writeAll(descriptor, bytes, 0);
    await flush(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameat2(folder, next, folder, indexName(run), place === 'new' ? RENAME.NOREPLACE : RENAME.EXCHANGE);
  await flush(folder);
  if (place !== 'new') unlinkat(folder, next, 0);
}
