/*
 * A disk that loses power: which of the changes that were made are there afterwards.
 *
 * ASSUMED of the file system, and no more:
 *   - Changes reach the disk in any order, or not at all, until a sync names the object that they belong to. A crash keeps any
 *     set of them.
 *   - One name of one folder, one mode, one owner, one extended attribute is one cell: its later value replaces its earlier
 *     one, so a later change of a cell is there only where the earlier ones were.
 *   - A change of names is one: a rename, an exchange, a link, a removal is there whole or not at all, also where it joins two
 *     folders. Every file system with a journal keeps that (ext4, XFS, Btrfs: both folders are in one transaction). Without it
 *     no program could move a file over another and keep both.
 *   - A file's bytes are a change of their own, apart from its name, its mode and its length: a write is there whole, or its
 *     first half, or its length alone with zeros, or not at all.
 *   - fsync of a file keeps its bytes and attributes, not its name. fsync of a folder keeps its names, not what they lead to; a
 *     change that joins two folders is kept once both are synced (POSIX promises no more). syncfs keeps everything.
 *   - A new file or folder that was named and not synced is empty and has the mode that it was made with.
 *   - What no name leads to is gone (an unnamed file, what a lost folder held).
 * Times of folders are not modelled: a crash may leave any.
 */
/** Number of a file or folder, as statx tells it while the disk is looked at. */
export type Inode = number;

/** A file as the disk holds it; `mtimeNs` is undefined where this program made the file and its time means nothing. */
export interface FileNode {
  readonly kind: 'file';
  readonly mode: number;
  readonly gid: number;
  readonly mtimeNs: bigint | undefined;
  readonly content: Buffer;
  readonly attributes: ReadonlyMap<string, Buffer>;
}

/** A folder as the disk holds it; names are latin1 text of their bytes. */
export interface FolderNode {
  readonly kind: 'folder';
  readonly mode: number;
  readonly entries: ReadonlyMap<string, Inode>;
}

/** All that a disk holds. A node never changes; a changed one takes its place. */
export type Disk = Map<Inode, FileNode | FolderNode>;

/** One change, whole in itself. `cells` are what it gives a value to; `on` the objects whose sync keeps it; `forms` what of it may be there, all of it first. */
export interface Change {
  readonly kind: 'change';
  readonly what: string;
  readonly cells: readonly string[];
  readonly on: readonly Inode[];
  readonly forms: readonly ((disk: Disk) => void)[];
}

/** One sync; `where` names the line of the program that asked for it and what it synced. */
export interface Sync {
  readonly kind: 'sync';
  readonly on: Inode | 'all';
  readonly where: string;
}

/** What a program did to a disk, one call after the other. */
export type Operation = Change | Sync;

/** A disk that a crash may leave; `before` is the number of the first operation that had not returned, and so may be partly there. */
export interface Crash {
  readonly disk: Disk;
  readonly before: number;
}

/**
 * Every disk that a crash during these operations may leave. Only the moments just before a sync and the end are looked at: what
 * an earlier crash leaves is among what the next of these may leave, since a lost change and one that was not made yet are the same.
 */
export function* crashes(start: Disk, operations: readonly Operation[]): Generator<Crash> {
  let kept: Disk = start;
  let pending: readonly Change[] = [];
  for (const [index, operation] of operations.entries()) {
    if (operation.kind === 'change') {
      pending = [...pending, operation];
      continue;
    }
    for (const disk of persisted(kept, pending)) yield { disk, before: index };
    ({ kept, pending } = synced(kept, pending, operation));
  }
  for (const disk of persisted(kept, pending)) yield { disk, before: operations.length };
}

/** What is surely there after a crash before an operation, and the changes that may be. */
export function openAfter(
  start: Disk,
  operations: readonly Operation[],
  before: number,
): { readonly kept: Disk; readonly pending: readonly Change[] } {
  let kept: Disk = start;
  let pending: readonly Change[] = [];
  for (const operation of operations.slice(0, before)) {
    if (operation.kind === 'change') pending = [...pending, operation];
    else ({ kept, pending } = synced(kept, pending, operation));
  }
  return { kept, pending };
}

/** One disk that a crash before an operation may leave, drawn by `below`, where there are too many to look at each. */
export function drawnCrash(
  start: Disk,
  operations: readonly Operation[],
  before: number,
  below: (limit: number) => number,
): Disk {
  const { kept, pending } = openAfter(start, operations, before);
  const disk = new Map(kept);
  const missing = new Set<string>();
  // most are there, or few, or half of them
  const lostOfEight = below(9);
  for (const { cells, forms } of pending) {
    const isLost = cells.some((cell) => missing.has(cell)) || below(8) < lostOfEight;
    if (isLost) for (const cell of cells) missing.add(cell);
    else forms[below(forms.length)]?.(disk);
  }
  return disk;
}

/** The disk once all operations are on it. */
export function applied(start: Disk, operations: readonly Operation[]): Disk {
  const disk = new Map(start);
  for (const operation of operations) if (operation.kind === 'change') operation.forms[0]?.(disk);
  return disk;
}

function* persisted(
  disk: Disk,
  pending: readonly Change[],
  at = 0,
  missing: ReadonlySet<string> = new Set(),
): Generator<Disk> {
  const change = pending[at];
  if (change === undefined) {
    yield disk;
    return;
  }
  yield* persisted(disk, pending, at + 1, new Set([...missing, ...change.cells]));
  if (change.cells.some((cell) => missing.has(cell))) return;
  for (const form of change.forms) {
    const changed = new Map(disk);
    form(changed);
    yield* persisted(changed, pending, at + 1, missing);
  }
}

/** What a sync keeps: the changes that now have a sync of each of their objects, and those that a kept one replaces. */
function synced(
  kept: Disk,
  pending: readonly Change[],
  { on }: Sync,
): { readonly kept: Disk; readonly pending: readonly Change[] } {
  const cells = new Set<string>();
  const left: Change[] = [];
  const reached: Change[] = [];
  for (const change of pending.toReversed()) {
    const still = on === 'all' ? [] : change.on.filter((object) => object !== on);
    if (still.length > 0 && !change.cells.some((cell) => cells.has(cell))) left.unshift({ ...change, on: still });
    else {
      reached.unshift(change);
      for (const cell of change.cells) cells.add(cell);
    }
  }
  const disk = new Map(kept);
  for (const { forms } of reached) forms[0]?.(disk);
  return { kept: disk, pending: left };
}

/** Everything that a name below a folder leads to, by path, and the folder itself as `.`; in order of the paths. */
export function pathsOf(disk: Disk, top: Inode): ReadonlyMap<string, Inode> {
  const found = new Map<string, Inode>([['.', top]]);
  const walk = (folder: Inode, prefix: string): void => {
    const node = disk.get(folder);
    if (node?.kind !== 'folder') return;
    for (const [name, inode] of node.entries) {
      found.set(prefix + name, inode);
      walk(inode, `${prefix}${name}/`);
    }
  };
  walk(top, '');
  return new Map([...found].toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
