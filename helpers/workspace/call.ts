/* One operation of one run, and what the operations share: the view, whole reads of files, and steps of the draft. */
import { closeSync } from 'node:fs';

import { lossesOf } from '../files/belongings.ts';
import { stampOf } from '../files/draft.ts';
import type { Base, Entry, Step } from '../files/draft-index.ts';
import { WalkRefused, type PathNames } from '../files/walk.ts';
import type { RunId } from '../protocol/ids.ts';
import type { Digests } from './digests.ts';
import type { DraftStore } from './draft-store.ts';
import type { Ending } from './ending.ts';
import { denied } from './failures.ts';
import type { OpenDraft } from './open-draft.ts';
import type { Pool } from './pool.ts';
import type { RootGuard } from './root-guard.ts';
import type { Rules } from './rules.ts';
import type { LastSealed } from './sealed.ts';
import { isUnchanged, keyOf, View, type Opened, type Place } from './view.ts';

/** What the process holds for all operations; `root` is the open root. */
export interface Services {
  readonly root: number;
  readonly guard: RootGuard;
  readonly store: DraftStore;
  readonly pool: Pool;
  readonly digests: Digests;
  readonly lastSealed: LastSealed;
}

/** One operation that is running. */
export interface Call {
  readonly run: RunId;
  readonly rules: Rules;
  readonly ending: Ending;
  readonly services: Services;
}

/** A change that is being made: what the run sees, and its draft, which `make` gives in any case. */
export interface Changing {
  readonly view: View;
  readonly make: () => Promise<OpenDraft>;
}

/** Lets an operation read what its run sees. */
export function reading<Result>(call: Call, read: (view: View) => Promise<Result>): Promise<Result> {
  const { store, root } = call.services;
  return store.lend(call.run, (draft) => read(new View(root, draft, call.rules)));
}

/** Lets an operation change the draft of its run; changes of one run wait for each other. */
export function changing<Result>(call: Call, change: (work: Changing) => Promise<Result>): Promise<Result> {
  const { store, root } = call.services;
  return store.change(call.run, (draft, make) => {
    call.ending.check();
    return change({ view: new View(root, draft, call.rules), make });
  });
}

/** Refuses to change the root itself and what the rules keep out. */
export function assertMayChange(view: View, names: PathNames): void {
  if (names.length === 0) throw denied('the workspace root itself cannot be changed');
  if (view.rules.hide(names, false) || view.rules.hide(names, true)) {
    throw denied('the owner of this machine keeps this path out of the workspace; choose another');
  }
}

const ATTEMPTS = 3;

/** Gives `use` an open file and its digest, again if the file was changed meanwhile. Throws WalkRefused, OperationFailed. */
export async function withFile<Result>(
  call: Call,
  view: View,
  names: PathNames,
  use: (opened: Opened, sha256: string) => Promise<Result> | Result,
): Promise<Result> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    call.ending.check();
    const opened = view.open(names);
    try {
      const sha256 = opened.sha256 ?? (await call.services.digests.of(opened, call.ending));
      const result = await use(opened, sha256);
      if (opened.sha256 !== undefined || isUnchanged(opened)) return result;
    } finally {
      closeSync(opened.descriptor);
    }
  }
  throw new WalkRefused('changing');
}

/** What stands in the root at a path that the draft touches now; null for nothing. Throws OperationFailed for links and devices. */
export async function baseAt(call: Call, view: View, names: PathNames, place: Place): Promise<Base | null> {
  const entry = view.entryAt(names);
  if (entry) return entry.base;
  if (place.of !== 'root') return null;
  if (place.kind === 'directory') {
    return { type: 'directory', mode: place.status.mode & 0o7777, stamp: String(place.status.ino) };
  }
  if (place.kind !== 'file') throw notChangeable(place.kind);
  return withFile(call, view, names, ({ descriptor, status, bytes }, sha256) => {
    const lost = lossesOf(descriptor, call.services.root);
    const base = { type: 'file' as const, bytes, mode: status.mode & 0o7777, sha256, stamp: stampOf(status) };
    return lost.length === 0 ? base : { ...base, lost };
  });
}

/** Why a link or a device stays as it is. */
export function notChangeable(kind: 'link' | 'other'): Error {
  return denied(
    kind === 'link'
      ? 'a symbolic link is shown but never changed, because it could not be promoted'
      : 'only files and folders can be changed; this is neither',
  );
}

/** A step that puts something at a path; nothing at all when the base is back as it was. */
export function step(names: PathNames, base: Base | null, now: Entry['now']): Step {
  return { path: keyOf(names), entry: isBack(base, now) ? null : { base, now, at: Date.now() } };
}

function isBack(base: Base | null, now: Entry['now']): boolean {
  if (!base) return now.type === 'removed';
  if (now.type === 'directory') return base.type === 'directory';
  if (now.type !== 'file' || base.type !== 'file') return false;
  return base.sha256 === now.sha256 && base.mode === now.mode;
}
