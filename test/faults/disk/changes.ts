/* The changes that calls make to a modelled disk, each as one value of model.ts. */
import type { Change, Disk, FileNode, FolderNode, Inode } from './model.ts';

/** One name in one folder. */
export interface Entry {
  readonly folder: Inode;
  readonly name: string;
}

const cellOf = ({ folder, name }: Entry): string => `${folder}/${name}`;

function folderOf(disk: Disk, inode: Inode): FolderNode {
  const node = disk.get(inode);
  if (node?.kind !== 'folder') throw new Error(`inode ${inode} is no folder of the modelled disk`);
  return node;
}

function fileOf(disk: Disk, inode: Inode): FileNode {
  const node = disk.get(inode);
  if (node?.kind !== 'file') throw new Error(`inode ${inode} is no file of the modelled disk`);
  return node;
}

function setEntry(disk: Disk, { folder, name }: Entry, inode: Inode | undefined): void {
  const node = folderOf(disk, folder);
  const entries = new Map(node.entries);
  if (inode === undefined) entries.delete(name);
  else entries.set(name, inode);
  disk.set(folder, { ...node, entries });
}

/** Names that get new values together; undefined takes a name away. */
export function named(what: string, values: readonly (readonly [Entry, Inode | undefined])[]): Change {
  return {
    kind: 'change',
    what,
    cells: values.map(([entry]) => cellOf(entry)),
    on: values.map(([{ folder }]) => folder),
    forms: [(disk) => values.forEach(([entry, inode]) => setEntry(disk, entry, inode))],
  };
}

/** A mode of a file or folder. */
export function moded(inode: Inode, mode: number): Change {
  const form = (disk: Disk): void => {
    const node = disk.get(inode);
    if (node !== undefined) disk.set(inode, { ...node, mode });
  };
  return { kind: 'change', what: 'mode', cells: [`${inode} mode`], on: [inode], forms: [form] };
}

/** A group of a file. */
export function grouped(inode: Inode, gid: number): Change {
  const form = (disk: Disk): void => void disk.set(inode, { ...fileOf(disk, inode), gid });
  return { kind: 'change', what: 'group', cells: [`${inode} group`], on: [inode], forms: [form] };
}

/** An extended attribute of a file. */
export function attributed(inode: Inode, name: string, value: Buffer): Change {
  const form = (disk: Disk): void => {
    const node = fileOf(disk, inode);
    disk.set(inode, { ...node, attributes: new Map([...node.attributes, [name, value]]) });
  };
  return { kind: 'change', what: 'attribute', cells: [`${inode} attribute ${name}`], on: [inode], forms: [form] };
}

/** Bytes at an offset of a file: all of them, the first half, or their length alone. */
export function written(inode: Inode, offset: number, bytes: Buffer): Change {
  const form = (part: Buffer) => (disk: Disk) => {
    const node = fileOf(disk, inode);
    const content = Buffer.alloc(Math.max(node.content.length, offset + part.length));
    node.content.copy(content);
    part.copy(content, offset);
    disk.set(inode, { ...node, content });
  };
  const parts = [bytes, bytes.subarray(0, bytes.length >> 1), Buffer.alloc(bytes.length)];
  const cells = [`${inode} bytes at ${offset}`];
  return { kind: 'change', what: `${bytes.length} bytes`, cells, on: [inode], forms: parts.map(form) };
}

/** The whole content of a file at once: all of it, or its length alone. */
export function filled(inode: Inode, content: Buffer): Change {
  const form = (bytes: Buffer) => (disk: Disk) => void disk.set(inode, { ...fileOf(disk, inode), content: bytes });
  const forms = [content, Buffer.alloc(content.length)].map(form);
  return { kind: 'change', what: `${content.length} shared bytes`, cells: [`${inode} content`], on: [inode], forms };
}
