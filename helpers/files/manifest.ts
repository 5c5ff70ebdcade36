/*
 * What a draft changes, as a list that two processes rebuild byte for byte and a person approves by its digest.
 *
 *   {"changes": [...], "rootIdentity": "<64 hex>", "run": "run_...", "version": 2}     canonical JSON, RFC 8785
 *   change  {"after": side | null, "before": side | null, "kind", "path": path text, "type"}
 *   side    of a file {"bytes", "mode", "sha256"}, of a directory {"mode"}; before of a modified file also {"lost": [...]} where the
 *           new file will not have something that the old one has (belongings.ts)
 *
 * INVARIANT 1  Changes stand in byte order of their paths, so the digest depends on no locale and no listing order.
 * INVARIANT 2  One path stands once, or twice: deleted as one type, then created as the other.
 * INVARIANT 3  before is null exactly when created, after is null exactly when deleted; a modified file differs in digest or mode.
 * INVARIANT 4  A rename is a deletion and a creation; the content that moved is found by its digest.
 */
import { canonicalBytes } from '../protocol/descriptor.ts';
import { digestTextSchema, runIdSchema, type RunId } from '../protocol/ids.ts';
import { fromPathText } from '../protocol/path-text.ts';
import { digestBytes } from './digest.ts';
import { splitPath } from './walk.ts';

/** Raised by any change of the shape. */
export const MANIFEST_VERSION = 2;

/** One side of a file; `mode` is three octal digits, or four where set-id or sticky bits stand on the host's side. */
export interface FileSide {
  readonly bytes: number;
  readonly mode: string;
  readonly sha256: string;
}

/** The old side of a file that is replaced; `lost` is absent for nothing. */
export interface ReplacedSide extends FileSide {
  readonly lost?: readonly string[];
}

/** One side of a folder. */
export interface DirectorySide {
  readonly mode: string;
}

/** One change below the root; `path` is path text. */
export type Change = { readonly path: string } & (
  | { readonly type: 'file'; readonly kind: 'created'; readonly before: null; readonly after: FileSide }
  | { readonly type: 'file'; readonly kind: 'modified'; readonly before: ReplacedSide; readonly after: FileSide }
  | { readonly type: 'file'; readonly kind: 'deleted'; readonly before: FileSide; readonly after: null }
  | { readonly type: 'directory'; readonly kind: 'created'; readonly before: null; readonly after: DirectorySide }
  | { readonly type: 'directory'; readonly kind: 'deleted'; readonly before: DirectorySide; readonly after: null }
);

/** Everything that an approval of a draft covers; `rootIdentity` is 64 hexadecimal digits. */
export interface Manifest {
  readonly version: typeof MANIFEST_VERSION;
  readonly run: RunId;
  readonly rootIdentity: string;
  readonly changes: readonly Change[];
}

/** Bytes that are not the one spelling of a manifest. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

/** Canonical bytes of a manifest whose changes are in order. */
export function manifestBytes(manifest: Manifest): Buffer {
  return canonicalBytes(manifest);
}

/** SHA-256 of manifest bytes, 64 hexadecimal digits: what a person approves. */
export function manifestDigest(bytes: Uint8Array): string {
  return digestBytes(bytes);
}

/** Order of changes: bytes of the path, then deleted before created. */
export function compareChanges(one: Change, two: Change): number {
  const order = Buffer.compare(fromPathText(one.path), fromPathText(two.path));
  if (order !== 0) return order;
  if (one.kind === two.kind) return 0;
  return one.kind === 'deleted' ? -1 : 1;
}

/**
 * Reads manifest bytes. Throws ManifestError for anything but exactly what manifestBytes writes: each known field is read
 * and checked, and then the whole is written again and compared, so an unknown key or another spelling cannot pass.
 */
export function parseManifest(bytes: Uint8Array): Manifest {
  const value = fieldsOf(jsonOf(bytes));
  const changes = value['changes'];
  if (value['version'] !== MANIFEST_VERSION) throw new ManifestError(`manifest is not of version ${MANIFEST_VERSION}`);
  if (!Array.isArray(changes)) throw new ManifestError('manifest has no list of changes');
  const manifest: Manifest = {
    version: MANIFEST_VERSION,
    run: checked(() => runIdSchema.parse(value['run'])),
    rootIdentity: checked(() => digestTextSchema.parse(value['rootIdentity'])),
    changes: changes.map(changeOf),
  };
  if (!manifestBytes(manifest).equals(bytes))
    throw new ManifestError('manifest is not canonical or has unknown fields');
  manifest.changes.forEach((change, index) => {
    const next = manifest.changes[index + 1];
    if (next) checkNeighbours(change, next);
  });
  return manifest;
}

function checkNeighbours(change: Change, next: Change): void {
  if (compareChanges(change, next) >= 0) throw new ManifestError('changes are not in byte order of their paths');
  if (change.path === next.path && change.type === next.type) throw new ManifestError('a path stands twice');
}

function jsonOf(bytes: Uint8Array): unknown {
  return checked(() => JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)));
}

function checked<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new ManifestError('manifest has a field that is missing or malformed', { cause });
  }
}

function fieldsOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ManifestError('an object was expected in the manifest');
  }
  return Object.fromEntries(Object.entries(value));
}

function changeOf(value: unknown): Change {
  const { path, kind, type, before, after } = fieldsOf(value);
  if (typeof path !== 'string') throw new ManifestError('a change has no path');
  checked(() => splitPath(fromPathText(path)));
  const change =
    type === 'directory' ? directoryChange(path, kind, before, after) : fileChange(path, kind, before, after);
  if (change) return change;
  throw new ManifestError('a change does not fit its kind');
}

function fileChange(path: string, kind: unknown, before: unknown, after: unknown): Change | undefined {
  const type = 'file';
  if (kind === 'created' && before === null) return { path, type, kind, before, after: fileSide(after, AFTER_MODE) };
  if (kind === 'deleted' && after === null) return { path, type, kind, before: fileSide(before, BEFORE_MODE), after };
  if (kind !== 'modified') return undefined;
  const sides = { before: replacedSide(before), after: fileSide(after, AFTER_MODE) };
  if (sides.before.sha256 === sides.after.sha256 && sides.before.mode === sides.after.mode) return undefined;
  return { path, type, kind, ...sides };
}

function directoryChange(path: string, kind: unknown, before: unknown, after: unknown): Change | undefined {
  const type = 'directory';
  if (kind === 'created' && before === null)
    return { path, type, kind, before, after: { mode: modeOf(after, AFTER_MODE) } };
  if (kind === 'deleted' && after === null)
    return { path, type, kind, before: { mode: modeOf(before, BEFORE_MODE) }, after };
  return undefined;
}

const BEFORE_MODE = /^[1-7]?[0-7]{3}$/;
/** A draft gives rights of reading, writing and running, never set-id or sticky bits. */
const AFTER_MODE = /^[0-7]{3}$/;

function modeOf(side: unknown, shape: RegExp): string {
  const { mode } = fieldsOf(side);
  if (typeof mode !== 'string' || !shape.test(mode)) throw new ManifestError('a mode is not octal digits');
  return mode;
}

function fileSide(side: unknown, shape: RegExp): FileSide {
  const { bytes, sha256 } = fieldsOf(side);
  if (typeof bytes !== 'number' || !Number.isSafeInteger(bytes) || bytes < 0)
    throw new ManifestError('a size is not a byte count');
  return { bytes, mode: modeOf(side, shape), sha256: checked(() => digestTextSchema.parse(sha256)) };
}

function replacedSide(side: unknown): ReplacedSide {
  const { lost } = fieldsOf(side);
  const replaced = fileSide(side, BEFORE_MODE);
  if (lost === undefined) return replaced;
  if (!Array.isArray(lost) || lost.length === 0 || !lost.every((text) => typeof text === 'string'))
    throw new ManifestError('what is lost is not a list of names');
  return { ...replaced, lost };
}

/** Mode of a manifest from mode bits: three octal digits, four with set-id or sticky bits. */
export function modeText(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(3, '0');
}
