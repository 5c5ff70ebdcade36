/*
 * One draft on disk, read from an open folder alone, so that `promote` believes nothing that `workspace` says about it.
 *
 *   drafts/<slot, 8 hex>/
 *     <run>.index       draft-index.ts; `<run>.next` is a rewritten index that a crash left, and is no draft
 *     content-<8 hex>   bytes of one changed file, 0600, written once
 *
 * Modes stand in the index: the process that writes drafts may not change the mode of any file.
 */
import { closeSync, constants } from 'node:fs';

import { runIdSchema } from '../protocol/ids.ts';
import type { RunId } from '../protocol/ids.ts';
import { toPathText } from '../protocol/path-text.ts';
import { openat2, RESOLVE_STRICT, statx, type FileStatus } from '../runtime/native-files.ts';
import { DraftDamaged, readIndex, type Base, type Entry, type IndexState, type PathKey } from './draft-index.ts';
import { MANIFEST_VERSION, modeText, type Change, type Manifest } from './manifest.ts';
import { entriesIn, kindOf } from './walk.ts';

const INDEX_SUFFIX = '.index';
const NEXT_SUFFIX = '.next';
const NONE = Buffer.alloc(0);

/** Name of a draft's folder below `drafts/`. */
export function slotName(slot: number): Buffer {
  return Buffer.from(slot.toString(16).padStart(8, '0'));
}

/** Slot of a folder's name, or undefined for a name that no draft has. */
export function slotOf(name: Buffer): number | undefined {
  const text = name.toString('latin1');
  return /^[0-9a-f]{8}$/.test(text) && text !== '00000000' ? Number.parseInt(text, 16) : undefined;
}

/** Name of the index of a run's draft. */
export function indexName(run: string): Buffer {
  return Buffer.from(run + INDEX_SUFFIX);
}

/** Name of an index that is being rewritten. */
export function nextIndexName(run: string): Buffer {
  return Buffer.from(run + NEXT_SUFFIX);
}

/** Name of a content file. */
export function contentName(content: number): Buffer {
  return Buffer.from(`content-${content.toString(16).padStart(8, '0')}`);
}

/** Run whose index stands in a draft's folder; undefined when making the draft was never finished. Throws DraftDamaged. */
export function runOfDraft(folder: number): RunId | undefined {
  const runs = [...entriesIn(folder)]
    .map(({ name }) => name.toString('latin1'))
    .filter((name) => name.endsWith(INDEX_SUFFIX))
    .map((name) => runIdSchema.safeParse(name.slice(0, -INDEX_SUFFIX.length)));
  if (runs.length > 1) throw new DraftDamaged('draft has more than one index');
  const [run] = runs;
  if (run && !run.success) throw new DraftDamaged('draft has an index that names no run');
  return run?.data;
}

/** Everything that the draft in an open folder says. Throws DraftDamaged, also when there is no draft. */
export function readDraft(folder: number): IndexState {
  const run = runOfDraft(folder);
  if (run === undefined) throw new DraftDamaged('draft has no index');
  const descriptor = openInDraft(folder, indexName(run), constants.O_RDONLY);
  try {
    const state = readIndex(descriptor);
    if (state.header.run !== run) throw new DraftDamaged('draft index belongs to another run');
    return state;
  } finally {
    closeSync(descriptor);
  }
}

/** Opens an ordinary file of a draft's folder. Throws DraftDamaged for anything else in its place, NativeError when absent. */
export function openInDraft(folder: number, name: Buffer, flags: number): number {
  const descriptor = openat2(folder, name, {
    flags: flags | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    // openat2(2) refuses a mode where nothing is made
    mode: (flags & constants.O_CREAT) === 0 ? 0 : 0o600,
    resolve: RESOLVE_STRICT,
  });
  try {
    const status = statx(descriptor, NONE);
    if (kindOf(status.mode) === 'file' && status.nlink === 1) return descriptor;
    throw new DraftDamaged('draft has something in it that is not its own file');
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Opens one content file for reading; the receiver hashes what it reads against the manifest. Throws DraftDamaged or NativeError. */
export function openContent(folder: number, content: number): number {
  return openInDraft(folder, contentName(content), constants.O_RDONLY);
}

/** Identity of a file at one time: inode, size, time of content and of status in ns. Equal stamps mean an untouched file. */
export function stampOf(status: FileStatus): string {
  return [status.ino, status.size, status.mtimeNs, status.ctimeNs].join('.');
}

/** The manifest of a draft. Paths whose base came back are no change. */
export function manifestOf(state: Pick<IndexState, 'header' | 'entries'>): Manifest {
  // Keys are latin1 text, of which the order of code units is the order of bytes.
  const inByteOrder = [...state.entries.keys()].toSorted();
  const changes = inByteOrder.flatMap((key) => {
    const entry = state.entries.get(key);
    return entry === undefined ? [] : changesOf(key, entry);
  });
  return {
    version: MANIFEST_VERSION,
    run: state.header.run,
    rootIdentity: state.header.rootIdentity,
    changes,
  };
}

/** Path text of a key. */
export function keyText(path: PathKey): string {
  return toPathText(Buffer.from(path, 'latin1'));
}

function changesOf(key: PathKey, { base, now }: Entry): Change[] {
  const path = keyText(key);
  const deleted = base && base.type !== now.type ? [deletion(path, base)] : [];
  if (now.type === 'removed') return deleted;
  if (now.type === 'directory') {
    if (base?.type === 'directory') return [];
    return [
      ...deleted,
      { path, type: 'directory', kind: 'created', before: null, after: { mode: modeText(now.mode) } },
    ];
  }
  const after = { bytes: now.bytes, mode: modeText(now.mode), sha256: now.sha256 };
  if (base?.type !== 'file') return [...deleted, { path, type: 'file', kind: 'created', before: null, after }];
  const before = { bytes: base.bytes, mode: modeText(base.mode), sha256: base.sha256 };
  if (before.sha256 === after.sha256 && before.mode === after.mode) return [];
  const replaced = base.lost === undefined ? before : { ...before, lost: base.lost };
  return [{ path, type: 'file', kind: 'modified', before: replaced, after }];
}

function deletion(path: string, base: Base): Change {
  const mode = modeText(base.mode);
  if (base.type === 'directory') return { path, type: 'directory', kind: 'deleted', before: { mode }, after: null };
  const before = { bytes: base.bytes, mode, sha256: base.sha256 };
  return { path, type: 'file', kind: 'deleted', before, after: null };
}
