/*
 * Stands at the seam of libc.ts and writes down what a program does to a modelled disk, while its calls are made on a real
 * copy of that disk. A call that the model does not know ends the run, so nothing is left out in silence. The program is told
 * the modelled inode numbers: a journal that names them is true of every copy that is made of the disk later.
 */
import { constants, fstatSync, lstatSync, readFileSync, readSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';

import { FICLONE } from '../../../helpers/runtime/mutating-calls.ts';
import { RENAME } from '../../../helpers/runtime/native-files.ts';
import type { Argument } from '../../../helpers/runtime/libc.ts';
import type { SyscallName } from '../../../helpers/runtime/syscall-numbers.ts';
import { attributed, filled, grouped, moded, named, written } from './changes.ts';
import type { Entry } from './changes.ts';
import type { Change, Disk, Inode, Operation } from './model.ts';

const UNNAMED = 0o20000000;
const ELSEWHERE = new Set<SyscallName>([
  'statx',
  'pread64',
  'getdents64',
  'fcntl',
  'flock',
  'flistxattr',
  'fgetxattr',
  'fstatfs',
  'readlinkat',
]);
/** Offset of the inode number in the answer of statx. */
const STATX_INO = 32;
/** Modelled numbers lie above all that a file system here gives. */
let lastInode: Inode = 2 ** 40;

/** A number that no other file or folder of a modelled disk has. */
export function freshInode(): Inode {
  lastInode += 1;
  return lastInode;
}

type Arguments = readonly Argument[];
const numberAt = (args: Arguments, at: number): number => Number(args[at]);
function bytesAt(args: Arguments, at: number): Buffer {
  const value = args[at];
  if (!Buffer.isBuffer(value)) throw new Error(`argument ${at} is no memory`);
  return value;
}
const nameAt = (args: Arguments, at: number): string => bytesAt(args, at).subarray(0, -1).toString('latin1');

/** Follows one program on one disk. `known` says which modelled file or folder each real one stands for, by real inode. */
export class Recorder {
  readonly operations: Operation[] = [];
  /** What was made on the way, as it is without any later change. */
  readonly born: Disk = new Map();
  /** Which modelled file or folder each real one stands for now, by real inode. */
  readonly known: Map<bigint, Inode>;
  readonly #names: ReadonlyMap<Inode, string>;
  readonly #entries: Map<string, Inode>;

  /** `names` are the paths of what stands on the disk, for what is said about syncs. */
  constructor(known: ReadonlyMap<bigint, Inode>, disk: Disk, names: ReadonlyMap<Inode, string>) {
    this.known = new Map(known);
    this.#names = names;
    this.#entries = new Map(
      [...disk].flatMap(([folder, node]) =>
        node.kind === 'folder' ? [...node.entries].map(([name, inode]) => [`${folder}/${name}`, inode] as const) : [],
      ),
    );
  }

  /** For `interpose`. */
  readonly interposer = (name: SyscallName, args: Arguments, make: () => number): number => {
    if (name === 'fsync' || name === 'fdatasync' || name === 'syncfs') return this.#sync(name, args);
    const before = this.#beforeCall(name, args);
    const result = make();
    if (name === 'statx') this.#translate(args);
    else if (!ELSEWHERE.has(name) && !asksForFlags(name, args)) this.#note(name, args, result, before);
    return result;
  };

  /** What a call takes away can be found only before it is made. */
  #beforeCall(name: SyscallName, args: Arguments): readonly (Inode | undefined)[] {
    if (name !== 'renameat2') return [];
    return [this.#at(this.#entry(args, 0, 1)), this.#at(this.#entry(args, 2, 3))];
  }

  #note(name: SyscallName, args: Arguments, result: number, before: readonly (Inode | undefined)[]): void {
    const notes: Partial<Record<SyscallName, () => void>> = {
      openat2: () => this.#opened(args, result),
      mkdirat: () => this.#made(args),
      linkat: () => this.#linked(args),
      unlinkat: () => this.#name(`unlink ${nameAt(args, 1)}`, [[this.#entry(args, 0, 1), undefined]]),
      renameat2: () => this.#renamed(args, before),
      pwrite64: () => this.#wrote(args, result),
      fchmod: () => this.#add(moded(this.#of(args), numberAt(args, 1))),
      fchown: () => this.#add(grouped(this.#of(args), numberAt(args, 2))),
      fsetxattr: () => this.#add(attributed(this.#of(args), nameAt(args, 1), Buffer.from(bytesAt(args, 2)))),
      utimensat: () => this.#checkTimed(args),
      // What was copied is read back: the file holds what the kernel took, however the original changes later.
      ioctl: () => this.#add(filled(this.#of(args), readFileSync(`/proc/self/fd/${numberAt(args, 0)}`))),
      copy_file_range: () => this.#copied(args, result),
    };
    const note = notes[name];
    if (note === undefined) throw new Error(`${name} is not modelled`);
    note();
  }

  #wrote(args: Arguments, count: number): void {
    this.#add(written(this.#of(args), numberAt(args, 3), Buffer.from(bytesAt(args, 1).subarray(0, count))));
  }

  #copied(args: Arguments, count: number): void {
    const bytes = Buffer.alloc(count);
    const at = Number(bytesAt(args, 3).readBigInt64LE(0));
    readSync(numberAt(args, 2), bytes, 0, count, at);
    this.#add(written(this.#of([numberAt(args, 2)]), at, bytes));
  }

  /** Nothing is brought to a disk here: the model alone says what a sync keeps. */
  #sync(name: SyscallName, args: Arguments): number {
    const on = this.#of(args);
    this.operations.push({
      kind: 'sync',
      on: name === 'syncfs' ? 'all' : on,
      where: `${callerOf()}: ${this.#called(on)}`,
    });
    return 0;
  }

  #opened(args: Arguments, descriptor: number): void {
    const flags = Number(bytesAt(args, 2).readBigUInt64LE(0));
    if ((flags & constants.O_TRUNC) !== 0) throw new Error('O_TRUNC is not modelled');
    const isUnnamed = (flags & UNNAMED) === UNNAMED;
    if (!isUnnamed && (flags & constants.O_CREAT) === 0) return;
    if (!isUnnamed && (flags & constants.O_EXCL) === 0) throw new Error('O_CREAT without O_EXCL is not modelled');
    const inode = this.#bear(fstatSync(descriptor, { bigint: true }));
    if (!isUnnamed) this.#name(`create ${nameAt(args, 1)}`, [[this.#entry(args, 0, 1), inode]]);
  }

  #made(args: Arguments): void {
    const where = Buffer.concat([Buffer.from(`/proc/self/fd/${numberAt(args, 0)}/`), bytesAt(args, 1).subarray(0, -1)]);
    const inode = this.#bear(lstatSync(where, { bigint: true }));
    this.#name(`mkdir ${nameAt(args, 1)}`, [[this.#entry(args, 0, 1), inode]]);
  }

  #linked(args: Arguments): void {
    const descriptor = /^\/proc\/self\/fd\/(\d+)$/.exec(nameAt(args, 1))?.[1];
    if (descriptor === undefined) throw new Error('a link from anything but a descriptor is not modelled');
    this.#name(`link ${nameAt(args, 3)}`, [[this.#entry(args, 2, 3), this.#of([Number(descriptor)])]]);
  }

  #renamed(args: Arguments, [moved, target]: readonly (Inode | undefined)[]): void {
    const isExchange = numberAt(args, 4) === RENAME.EXCHANGE;
    this.#name(`rename ${nameAt(args, 1)} ${isExchange ? 'and' : 'to'} ${nameAt(args, 3)}`, [
      [this.#entry(args, 0, 1), isExchange ? target : undefined],
      [this.#entry(args, 2, 3), moved],
    ]);
  }

  /** Times are not modelled for folders and for promote's own files; nothing may set one of a person's file. */
  /** Of times the model knows only those of files that stood before, and nothing changes one of these. */
  #checkTimed(args: Arguments): void {
    const isFolder = fstatSync(numberAt(args, 0)).isDirectory();
    const on = this.#of(args);
    if (!isFolder && !this.born.has(on) && !this.#called(on).includes('journal'))
      throw new Error('a time of an old file is not modelled');
  }

  #bear(status: BigIntStats): Inode {
    const inode = freshInode();
    const [mode, gid] = [Number(status.mode) & 0o7777, Number(status.gid)];
    const file = {
      kind: 'file',
      mode,
      gid,
      mtimeNs: undefined,
      content: Buffer.alloc(0),
      attributes: new Map(),
    } as const;
    this.born.set(inode, status.isDirectory() ? { kind: 'folder', mode, entries: new Map() } : file);
    this.known.set(status.ino, inode);
    return inode;
  }

  #translate(args: Arguments): void {
    const out = bytesAt(args, 4);
    const inode = this.known.get(out.readBigUInt64LE(STATX_INO));
    if (inode !== undefined) out.writeBigUInt64LE(BigInt(inode), STATX_INO);
  }

  #of(args: Arguments): Inode {
    const inode = this.known.get(fstatSync(numberAt(args, 0), { bigint: true }).ino);
    if (inode === undefined) throw new Error('a change outside the modelled disk');
    return inode;
  }

  #entry(args: Arguments, folder: number, name: number): Entry {
    return { folder: this.#of([numberAt(args, folder)]), name: nameAt(args, name) };
  }

  #at({ folder, name }: Entry): Inode | undefined {
    return this.#entries.get(`${folder}/${name}`);
  }

  #name(what: string, values: readonly (readonly [Entry, Inode | undefined])[]): void {
    for (const [{ folder, name }, inode] of values) {
      if (inode === undefined) this.#entries.delete(`${folder}/${name}`);
      else this.#entries.set(`${folder}/${name}`, inode);
    }
    this.#add(named(what, values));
  }

  #add(change: Change): void {
    this.operations.push(change);
  }

  /** What a person would call a file or folder of the disk: its last name. */
  #called(inode: Inode): string {
    const own = this.#names.get(inode);
    if (own !== undefined) return own;
    const key = [...this.#entries].find(([, found]) => found === inode)?.[0];
    if (key === undefined) return 'a file without a name';
    const slash = key.indexOf('/');
    return `${this.#called(Number(key.slice(0, slash)))}/${key.slice(slash + 1)}`;
  }
}

/** ioctl(2) changes something by FICLONE alone. */
function asksForFlags(name: SyscallName, args: Arguments): boolean {
  return name === 'ioctl' && args[1] !== FICLONE;
}

/** The function of promote that asked for a sync. */
function callerOf(): string {
  const lines = (new Error('here').stack ?? '').split('\n');
  const line = lines.find((text) => text.includes('/helpers/promote/')) ?? '';
  const [, name = 'unknown', file = 'unknown'] =
    /at (?:async )?(\S+) .*\/helpers\/promote\/([a-z-]+\.ts)/.exec(line) ?? [];
  return `${file} ${name.replace(/^.*\./, '')}`;
}
