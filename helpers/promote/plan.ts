/*
 * From the manifest to the steps of a promotion, in an order in which every step finds its folder: deletions from the leaves
 * up, then folders from the root down, then new files, then changed ones. Undone in reverse.
 */
import type { IndexState } from '../files/draft-index.ts';
import type { Change, Manifest } from '../files/manifest.ts';
import { fromPathText } from '../protocol/path-text.ts';
import { splitPath } from '../files/walk.ts';
import { Stopped } from './stop.ts';
import { STAGE_PREFIX } from './tree.ts';

/** One side of a change; `mode` holds permission bits, `sha256` is empty for a folder, `lost` is what the approval says that the new file will not have. */
export interface Side {
  readonly mode: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Of something that a kept promotion left or took away. */
  readonly known?: Known;
  readonly lost: readonly string[];
}

/** What is known of a file or folder beside its content: its inode is one of these, its modification time was this one, in ns. */
export interface Known {
  readonly inos: readonly string[];
  readonly mtimeNs: string;
}

/** One step before anything was looked at; `content` is the number of its new content, null where it has none or the host's own stays. */
export interface Planned {
  readonly slot: number;
  readonly path: Buffer;
  readonly change: Change['kind'];
  readonly type: Change['type'];
  readonly before: Side | null;
  readonly after: Side | null;
  readonly content: number | null;
}

/** Most changes of one promotion. */
const CHANGE_LIMIT = 200_000;

const ranks = { deleted: 0, directory: 1, created: 2, modified: 3 } as const;

function rankOf({ change, type }: Pick<Planned, 'change' | 'type'>): number {
  return change === 'created' && type === 'directory' ? ranks.directory : ranks[change];
}

/** Puts steps into the order in which each of them finds its folder, and numbers them. */
export function inOrder(steps: readonly Omit<Planned, 'slot'>[]): Planned[] {
  const sorted = steps.toSorted((one, two) => {
    const [rank, other] = [rankOf(one), rankOf(two)];
    if (rank !== other) return rank - other;
    const order = Buffer.compare(one.path, two.path);
    return rank === ranks.deleted ? -order : order;
  });
  return sorted.map((step, slot) => ({ slot, ...step }));
}

/** Orders the changes of a manifest into steps and refuses lists that contradict themselves. Throws Stopped. */
export function planOf(manifest: Manifest, draft: IndexState): Planned[] {
  if (manifest.changes.length === 0) throw new Stopped('PROMOTION_MANIFEST_INVALID');
  if (manifest.changes.length > CHANGE_LIMIT) throw new Stopped('PROMOTION_REJECTED');
  const rows = manifest.changes.map((change) => ({ change, path: fromPathText(change.path) }));
  checkLimits(rows);
  checkTree(rows);
  return inOrder(
    rows.map(({ change, path }) => ({
      path,
      change: change.kind,
      type: change.type,
      before: sideOf(change.before),
      after: sideOf(change.after),
      content: contentOf(draft, path),
    })),
  );
}

interface Row {
  readonly change: Change;
  readonly path: Buffer;
}

function sideOf(side: Change['before'] | Change['after']): Side | null {
  if (side === null) return null;
  const mode = Number.parseInt(side.mode, 8);
  if (!('sha256' in side)) return { mode, bytes: 0, sha256: '', lost: [] };
  const lost = 'lost' in side ? side.lost : undefined;
  return { mode, bytes: side.bytes, sha256: side.sha256, lost: lost ?? [] };
}

/** In a draft's index 0 says that the host's own content stays. */
function contentOf(draft: IndexState, path: Buffer): number | null {
  const now = draft.entries.get(path.toString('latin1'))?.now;
  return now?.type === 'file' && now.content !== 0 ? now.content : null;
}

/** Modes that no approval can give (N-528, S-153) or that would lock us out before the commit, and names that are ours. */
function checkLimits(rows: readonly Row[]): void {
  for (const { change, path } of rows) {
    if (splitPath(path)[0]?.toString('latin1').startsWith(STAGE_PREFIX))
      throw new Stopped('PROMOTION_UNSAFE_PATH', path);
    const after = sideOf(change.after);
    if (after === null) continue;
    const before = sideOf(change.before);
    const opensToAll = (after.mode & 0o002) !== 0 && ((before?.mode ?? 0) & 0o002) === 0;
    const needed = change.type === 'directory' ? 0o700 : 0o400;
    const closesToOwner = (after.mode & needed) !== needed;
    if (after.mode > 0o777 || opensToAll || closesToOwner) throw new Stopped('PROMOTION_MANIFEST_INVALID', path);
  }
}

/** Refuses new names that a file system without case or with normal forms would take for one, and files with something below them (S-146, S-149). */
function checkTree(rows: readonly Row[]): void {
  const added = new Map<string, Row>();
  const removed = new Set<string>();
  const folded = new Set<string>();
  for (const row of rows) {
    const key = row.path.toString('latin1');
    if (row.change.kind === 'deleted') removed.add(key);
    else added.set(key, row);
    if (row.change.kind === 'deleted') continue;
    const form = row.change.path.normalize('NFC').toLowerCase();
    if (folded.has(form)) throw new Stopped('PROMOTION_MANIFEST_INVALID', row.path);
    folded.add(form);
  }
  for (const { path } of added.values()) {
    const slash = path.lastIndexOf(0x2f);
    if (slash === -1) continue;
    const parent = path.subarray(0, slash).toString('latin1');
    const above = added.get(parent);
    const hasFolder = above === undefined ? !removed.has(parent) : above.change.type === 'directory';
    if (!hasFolder) throw new Stopped('PROMOTION_MANIFEST_INVALID', path);
  }
}
