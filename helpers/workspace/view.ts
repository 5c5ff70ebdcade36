/*
 * What one run sees: the root, with the run's draft laid over it and what the rules hide taken out. Nothing is copied or
 * remembered; each question walks below the open root again, so its cost follows the question and not the tree.
 */
import { closeSync } from 'node:fs';

import { openContent, stampOf } from '../files/draft.ts';
import type { Base, Entry, Now, PathKey } from '../files/draft-index.ts';
import {
  entriesIn,
  joinNames,
  kindOf,
  openFile,
  openFolder,
  statusBelow,
  WalkRefused,
  type EntryKind,
  type PathNames,
} from '../files/walk.ts';
import { statx, type FileStatus } from '../runtime/native-files.ts';
import type { Rules } from './rules.ts';

/** A draft as a view needs it: its open folder and what it touched. */
export interface Overlay {
  readonly folder: number;
  readonly entries: ReadonlyMap<PathKey, Entry>;
}

/** A file that the draft holds. */
export type DraftFile = Extract<Now, { type: 'file' }>;

/** What stands at a path, for one run. */
export type Place =
  | { readonly of: 'nothing'; readonly base: Base | null | undefined }
  | { readonly of: 'root'; readonly kind: EntryKind; readonly status: FileStatus }
  | { readonly of: 'draft'; readonly kind: 'file'; readonly now: DraftFile; readonly entry: Entry }
  | { readonly of: 'draft'; readonly kind: 'directory'; readonly overRoot: boolean; readonly entry: Entry };

/** A file opened for reading; the receiver closes the descriptor. `sha256` is there where the draft knows it. */
export interface Opened {
  readonly descriptor: number;
  readonly status: FileStatus;
  readonly bytes: number;
  readonly mode: number;
  readonly modifiedMs: number;
  readonly sha256?: string;
}

/** One name in a folder. */
export interface Child {
  readonly name: Buffer;
  readonly kind: EntryKind;
  readonly inDraft: boolean;
}

/** Key of a path in a draft; the root has none and is never asked for. */
export function keyOf(names: PathNames): PathKey {
  return joinNames(names).toString('latin1');
}

/** Beginning of the keys of everything in a folder. */
function prefixOf(names: PathNames): PathKey {
  return names.length === 0 ? '' : `${keyOf(names)}/`;
}

const MS = 1_000_000n;
const ITSELF = Buffer.alloc(0);

/** The merged tree of one run. */
export class View {
  readonly rules: Rules;
  readonly #root: number;
  readonly #overlay: Overlay | undefined;

  constructor(root: number, overlay: Overlay | undefined, rules: Rules) {
    this.rules = rules;
    this.#root = root;
    this.#overlay = overlay;
  }

  /** Entry of the draft at exactly this path. */
  entryAt(names: PathNames): Entry | undefined {
    return this.#overlay?.entries.get(keyOf(names));
  }

  /** What stands at a path; hidden paths are nothing. Throws WalkRefused for a link, a mount or a file in the middle. */
  place(names: PathNames): Place {
    if (this.rules.hide(names, false)) return { of: 'nothing', base: undefined };
    const place = this.#placeUnhidden(names);
    const isFolder = place.of !== 'nothing' && place.kind === 'directory';
    return isFolder && this.rules.hide(names, true) ? { of: 'nothing', base: undefined } : place;
  }

  #placeUnhidden(names: PathNames): Place {
    if (names.length === 0) return { of: 'root', kind: 'directory', status: statusBelow(this.#root, names) };
    if (!this.#reachesRoot(names)) return this.#inDraft(names) ?? { of: 'nothing', base: null };
    return this.#inDraft(names) ?? this.#inRoot(names);
  }

  /** Whether the draft leaves the way to the root's own file open; throws where a part of the path is no folder. */
  #reachesRoot(names: PathNames): boolean {
    let open = true;
    if (!this.#overlay || this.#overlay.entries.size === 0) return true;
    for (let length = 1; length < names.length; length += 1) {
      const entry = this.entryAt(names.slice(0, length));
      if (!entry) continue;
      if (entry.now.type === 'file') throw new WalkRefused('not-a-folder');
      if (entry.now.type === 'removed' || entry.base?.type !== 'directory') open = false;
    }
    return open;
  }

  #inDraft(names: PathNames): Place | undefined {
    const entry = this.entryAt(names);
    if (!entry) return undefined;
    if (entry.now.type === 'removed') return { of: 'nothing', base: entry.base };
    if (entry.now.type === 'file') return { of: 'draft', kind: 'file', now: entry.now, entry };
    return { of: 'draft', kind: 'directory', overRoot: entry.base?.type === 'directory', entry };
  }

  #inRoot(names: PathNames): Place {
    try {
      const status = statusBelow(this.#root, names);
      return { of: 'root', kind: kindOf(status.mode), status };
    } catch (error) {
      if (error instanceof WalkRefused && error.reason === 'missing') return { of: 'nothing', base: null };
      throw error;
    }
  }

  /** Opens the file at a path. Throws WalkRefused where there is none. */
  open(names: PathNames): Opened {
    const place = this.place(names);
    if (place.of === 'nothing') throw new WalkRefused('missing');
    if (place.of === 'draft' && place.kind === 'file' && place.now.content !== 0) return this.#openContent(place.now);
    if (place.kind === 'link') throw new WalkRefused('link');
    if (place.kind !== 'file') throw new WalkRefused('not-a-file');
    const { descriptor, status } = openFile(this.#root, names);
    const mode = place.of === 'draft' ? place.now.mode : status.mode & 0o777;
    return { descriptor, status, bytes: Number(status.size), mode, modifiedMs: Number(status.mtimeNs / MS) };
  }

  #openContent(now: DraftFile): Opened {
    if (!this.#overlay) throw new TypeError('a draft file without a draft');
    const descriptor = openContent(this.#overlay.folder, now.content);
    const status = statx(descriptor, ITSELF);
    const { bytes, mode, sha256 } = now;
    return { descriptor, status, bytes, mode, sha256, modifiedMs: Number(status.mtimeNs / MS) };
  }

  /** Names in a folder that this run sees, in no order; empty where there is no folder. */
  *children(names: PathNames, place: Place): Generator<Child> {
    if (place.of === 'nothing' || place.kind !== 'directory') return;
    if (place.of === 'root' || place.overRoot) yield* this.#rootChildren(names);
    for (const name of this.#draftNames(names)) {
      const child = [...names, name];
      const entry = this.entryAt(child);
      if (!entry || entry.now.type === 'removed') continue;
      const kind = entry.now.type;
      if (!this.rules.hide(child, kind === 'directory')) yield { name, kind, inDraft: true };
    }
  }

  /** Whether the root has something in a folder that the rules hide from this run. */
  hidesSomethingIn(names: PathNames): boolean {
    const folder = openFolder(this.#root, names);
    try {
      for (const { name, kind } of entriesIn(folder)) {
        if (this.rules.hideChild(names, name, kind === 'directory')) return true;
      }
      return false;
    } finally {
      closeSync(folder);
    }
  }

  *#rootChildren(names: PathNames): Generator<Child> {
    const folder = openFolder(this.#root, names);
    try {
      const prefix = prefixOf(names);
      const entries = this.#overlay?.entries;
      for (const { name, kind } of entriesIn(folder)) {
        if (entries?.has(prefix + name.toString('latin1'))) continue;
        if (!this.rules.hideChild(names, name, kind === 'directory')) yield { name, kind, inDraft: false };
      }
    } finally {
      closeSync(folder);
    }
  }

  *#draftNames(names: PathNames): Generator<Buffer> {
    const prefix = prefixOf(names);
    for (const key of this.#overlay?.entries.keys() ?? []) {
      if (!key.startsWith(prefix) || key.includes('/', prefix.length)) continue;
      yield Buffer.from(key.slice(prefix.length), 'latin1');
    }
  }
}

/** Whether an open file still is what it was when it was opened. */
export function isUnchanged({ descriptor, status }: Opened): boolean {
  return stampOf(statx(descriptor, ITSELF)) === stampOf(status);
}
