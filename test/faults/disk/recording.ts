/* What was recorded of promotions on a modelled disk, and what may stand there at any moment of it. */
import { pathsOf } from './model.ts';
import type { Disk, FileNode, FolderNode, Inode, Operation } from './model.ts';

/** Number of a tree: 0 is the one before the first promotion, n the one that the nth promotion makes. */
export type Side = number;
/** A tree: for each path what stands there as text, with its inode number, so that an old file is that file and no copy of it. */
export type Tree = ReadonlyMap<string, string>;

/** One promotion of a recording. */
export interface Promoted {
  readonly id: string;
  /** Number of the operation that names the journal prepared, and of the one that the commit waits for. */
  readonly prepared: number;
  readonly committed: number;
  /** Contents of the files that it took away. */
  readonly old: readonly string[];
}

/** Promotions, one after the other. */
export interface Recording {
  /** The disk before, with all that is made on the way, without a name yet. */
  readonly start: Disk;
  readonly operations: readonly Operation[];
  readonly trees: readonly Tree[];
  readonly promotions: readonly Promoted[];
}

/** Trees that may stand after a crash before an operation: that of the last promotion that was told, and that of one that may be committed. */
export function allowedSides({ promotions }: Recording, before: number): readonly Side[] {
  const told = promotions.filter(({ committed }) => before > committed).length;
  const begun = promotions.filter(({ prepared }) => before > prepared).length;
  return begun > told ? [told, begun] : [told];
}

/** A tree as text. The time of a file is in it where it is one that stood before. */
export function treeOf(disk: Disk, top: Inode, start: Disk): Tree {
  return new Map(
    Array.from(pathsOf(disk, top), ([path, inode]) => {
      const was = start.get(inode);
      const node = disk.get(inode);
      const isTimed = was?.kind === 'file' && was.mtimeNs !== undefined && node?.kind === 'file';
      return [path, `${inode} ${isTimed ? `${String(node.mtimeNs)} ` : ''}${toldOf(node)}`];
    }),
  );
}

/** Kind, mode and, of a file, group, attributes and content. */
export function toldOf(node: FileNode | FolderNode | undefined): string {
  if (node === undefined) return 'nothing';
  const mode = node.mode.toString(8);
  if (node.kind === 'folder') return `folder ${mode}`;
  const attributes = Array.from(node.attributes, ([name, value]) => `${name}=${value.toString('hex')}`);
  return `file ${mode} ${node.gid} [${attributes.join()}] ${node.content.toString('latin1')}`;
}

/** Which of the trees this one is. */
export function sideOf(tree: Tree, { trees }: Recording): Side | undefined {
  const side = trees.findIndex(
    (one) => one.size === tree.size && [...one].every(([path, text]) => tree.get(path) === text),
  );
  return side === -1 ? undefined : side;
}

/** Contents of files that are at another path, or nowhere, once a promotion was made. */
export function takenAway(before: Disk, after: Disk, top: Inode): string[] {
  const paths = pathsOf(after, top);
  return [...pathsOf(before, top)].flatMap(([path, inode]) => {
    const node = before.get(inode);
    return node?.kind === 'file' && paths.get(path) !== inode ? [node.content.toString('latin1')] : [];
  });
}
