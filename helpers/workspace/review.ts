/* workspace.review: what the draft of a run changes, under the digest that a person approves. */
import { closeSync } from 'node:fs';

import { manifestOf, stampOf } from '../files/draft.ts';
import type { Base } from '../files/draft-index.ts';
import { MANIFEST_VERSION, manifestBytes, manifestDigest, type Change, type Manifest } from '../files/manifest.ts';
import { kindOf, openFile, splitPath, statusBelow, WalkRefused, type PathNames } from '../files/walk.ts';
import type { OperationArguments, OperationSuccess } from '../protocol/operations.ts';
import { fromPathText } from '../protocol/path-text.ts';
import type { Call } from './call.ts';
import { denied, OperationFailed } from './failures.ts';
import type { OpenDraft } from './open-draft.ts';
import type { Sealed } from './sealed.ts';
import { isUnchanged, keyOf } from './view.ts';

type Reviewed = OperationSuccess<'workspace.review'>;

const PAGE_CHANGES = 100;
/** Encoded changes of one page, bytes; the rest of a result's limit is for its frame. */
const PAGE_LIMIT_BYTES = 60_000;
const CURSOR_DIGITS = 16;

/** The manifest of a run, also of one that has changed nothing. Throws OperationFailed where the rules now hide a change. */
export function sealedFor(call: Call, draft: OpenDraft | undefined): Sealed {
  const seal = (): Sealed => sealFor(call, draft);
  return draft === undefined ? seal() : call.services.lastSealed.take(draft, call.rules, seal);
}

function sealFor(call: Call, draft: OpenDraft | undefined): Sealed {
  const rootIdentity = call.services.guard.facts.rootIdentity.toString('hex');
  const manifest: Manifest = draft
    ? manifestOf(draft)
    : { version: MANIFEST_VERSION, run: call.run, rootIdentity, changes: [] };
  const hidden = manifest.changes.filter(({ path, type }) =>
    call.rules.hide(namesOf(path), type === 'directory'),
  ).length;
  if (hidden > 0) {
    throw denied(
      `${hidden} of the changes are at paths that the owner now keeps out; discard the draft on the machine`,
    );
  }
  const bytes = manifestBytes(manifest);
  return { manifest, bytes, digest: manifestDigest(bytes) };
}

/** Names of a path of a manifest. */
export function namesOf(path: string): PathNames {
  return splitPath(fromPathText(path));
}

/** Tells one page of what the draft changes. */
export function reviewDraft(call: Call, { cursor }: OperationArguments<'workspace.review'>): Promise<Reviewed> {
  return call.services.store.lend(call.run, async (draft) => {
    const { manifest, digest } = sealedFor(call, draft);
    const changeCount = manifest.changes.length;
    if (cursor === undefined && changeCount > PAGE_CHANGES) {
      throw new OperationFailed(
        'REVIEW_TOO_LARGE',
        `the draft has ${changeCount} changes; begin with the cursor "0" and read them in pages`,
      );
    }
    const first = firstOf(cursor ?? '0', digest, changeCount);
    const changes: Reviewed['changes'] = [];
    let bytes = 0;
    for (const change of manifest.changes.slice(first, first + PAGE_CHANGES)) {
      await call.ending.breathe();
      const line = { ...lineOf(change), hostChanged: await hostChanged(call, draft, change) };
      bytes += Buffer.byteLength(JSON.stringify(line)) + 1;
      if (bytes > PAGE_LIMIT_BYTES) break;
      changes.push(line);
    }
    const next = first + changes.length;
    const page = {
      success: true as const,
      changeCount,
      changes,
      manifestDigest: digest,
      rootIdentity: manifest.rootIdentity,
    };
    return next < changeCount ? { ...page, cursor: `${next}.${digest.slice(0, CURSOR_DIGITS)}` } : page;
  });
}

function firstOf(cursor: string, digest: string, changeCount: number): number {
  if (cursor === '0') return 0;
  const [index = '', of = ''] = cursor.split('.');
  if (!/^[1-9]\d{0,5}$/.test(index) || !/^[0-9a-f]{16}$/.test(of)) {
    throw denied('the cursor is not one that a review gave; begin with "0"');
  }
  if (of !== digest.slice(0, CURSOR_DIGITS) || Number(index) >= changeCount) {
    throw new OperationFailed(
      'REVIEW_STALE',
      'the draft was changed since the first page; begin again with the cursor "0"',
    );
  }
  return Number(index);
}

function lineOf(change: Change): Omit<Reviewed['changes'][number], 'hostChanged'> {
  const { path, kind, type } = change;
  const side = change.type === 'file' ? (change.after ?? change.before) : undefined;
  return { path, kind, type, byteCount: side?.bytes ?? 0, ...lostBy(change) };
}

/** What a change takes from the file that it replaces, to be shown before anybody approves (S-172). */
export function lostBy(change: Change): { lost?: string[] } {
  const lost = change.kind === 'modified' ? change.before.lost : undefined;
  return lost === undefined ? {} : { lost: [...lost] };
}

/** Whether the root's file is no longer what it was when the draft first touched it. */
async function hostChanged(call: Call, draft: OpenDraft | undefined, { path }: Change): Promise<boolean> {
  const names = namesOf(path);
  const base = draft?.entries.get(keyOf(names))?.base ?? null;
  try {
    const status = statusBelow(call.services.root, names);
    if (!base) return true;
    if (base.type === 'directory') return kindOf(status.mode) !== 'directory' || String(status.ino) !== base.stamp;
    if (stampOf(status) === base.stamp) return false;
    return !(await hasSameContent(call, names, base));
  } catch (error) {
    if (!(error instanceof WalkRefused)) throw error;
    return base !== null || error.reason !== 'missing';
  }
}

async function hasSameContent(call: Call, names: PathNames, base: Extract<Base, { type: 'file' }>): Promise<boolean> {
  const { descriptor, status } = openFile(call.services.root, names);
  try {
    const bytes = Number(status.size);
    if (bytes !== base.bytes || (status.mode & 0o7777) !== base.mode) return false;
    const opened = { descriptor, status, bytes, mode: status.mode & 0o777, modifiedMs: 0 };
    return (await call.services.digests.of(opened, call.ending)) === base.sha256 && isUnchanged(opened);
  } finally {
    closeSync(descriptor);
  }
}
