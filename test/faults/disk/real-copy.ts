/* Writes a modelled disk into real folders and reads real folders back. */
import {
  chmodSync,
  chownSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';

import { fgetxattr, flistxattr, fsetxattr, futimens } from '../../../helpers/runtime/native-files.ts';
import { freshInode } from './recorder.ts';
import type { Disk, FileNode, Inode } from './model.ts';

/** Which modelled file or folder each real one stands for, by real inode. */
export type Known = Map<bigint, Inode>;

const below = (folder: Buffer, name: string): Buffer =>
  Buffer.concat([folder, Buffer.from('/'), Buffer.from(name, 'latin1')]);

/** Empties real folders and fills each as the modelled folder of its number stands; the folders themselves stay the same ones. */
export function writeCopy(disk: Disk, tops: ReadonlyMap<string, Inode>): Known {
  const known: Known = new Map();
  for (const [folder, inode] of tops) {
    for (const name of readdirSync(folder, { encoding: 'buffer' })) {
      rmSync(below(Buffer.from(folder), name.toString('latin1')), { recursive: true });
    }
    fill(disk, Buffer.from(folder), inode, known);
  }
  return known;
}

function fill(disk: Disk, where: Buffer, inode: Inode, known: Known): void {
  const node = disk.get(inode);
  if (node?.kind !== 'folder') throw new Error(`inode ${inode} is no folder of the modelled disk`);
  for (const [name, child] of node.entries) {
    const path = below(where, name);
    const made = disk.get(child);
    if (made?.kind === 'folder') {
      mkdirSync(path, { mode: 0o700 });
      fill(disk, path, child, known);
    } else if (made?.kind === 'file') writeFile(path, made);
  }
  chmodSync(where, node.mode);
  known.set(lstatSync(where, { bigint: true }).ino, inode);
  for (const [name, child] of node.entries) {
    if (disk.get(child)?.kind === 'file') known.set(lstatSync(below(where, name), { bigint: true }).ino, child);
  }
}

function writeFile(path: Buffer, node: FileNode): void {
  writeFileSync(path, node.content, { mode: 0o600 });
  if (lstatSync(path).gid !== node.gid) chownSync(path, -1, node.gid);
  const descriptor = openSync(path, 'r');
  for (const [name, value] of node.attributes) fsetxattr(descriptor, Buffer.from(name, 'latin1'), value);
  if (node.mtimeNs !== undefined) futimens(descriptor, node.mtimeNs, node.mtimeNs);
  closeSync(descriptor);
  chmodSync(path, node.mode);
}

/** Reads real folders as a disk; what `known` does not name gets a number of its own, and is noted there. */
export function readCopy(tops: ReadonlyMap<string, Inode>, known: Known): Disk {
  const disk: Disk = new Map();
  for (const [folder, inode] of tops) known.set(lstatSync(folder, { bigint: true }).ino, inode);
  for (const folder of tops.keys()) read(disk, Buffer.from(folder), known);
  return disk;
}

function read(disk: Disk, where: Buffer, known: Known): Inode {
  const status = lstatSync(where, { bigint: true });
  const inode = known.get(status.ino) ?? freshInode();
  known.set(status.ino, inode);
  const mode = Number(status.mode) & 0o7777;
  if (status.isDirectory()) {
    const names = readdirSync(where, { encoding: 'buffer' }).map((name) => name.toString('latin1'));
    disk.set(inode, {
      kind: 'folder',
      mode,
      entries: new Map(names.map((name) => [name, read(disk, below(where, name), known)])),
    });
    return inode;
  }
  const { mtimeNs } = status;
  const gid = Number(status.gid);
  // what is neither a file nor a folder was put there by a test, which looks whether it stays
  const [content, attributes] = status.isFile()
    ? [readFileSync(where), attributesOf(where)]
    : [Buffer.from('neither a file nor a folder'), new Map<string, Buffer>()];
  disk.set(inode, { kind: 'file', mode, gid, mtimeNs, content, attributes });
  return inode;
}

function attributesOf(where: Buffer): Map<string, Buffer> {
  const descriptor = openSync(where, 'r');
  try {
    const names = flistxattr(descriptor).filter((name) => name.toString('latin1').startsWith('user.'));
    return new Map(names.map((name) => [name.toString('latin1'), fgetxattr(descriptor, name)]));
  } finally {
    closeSync(descriptor);
  }
}
