import { syscall, terminated } from './libc.ts';

/** One entry of a folder: its name as bytes, inode number, and type as `d_type` of readdir(3). */
export type FolderEntry = { readonly name: Buffer; readonly ino: bigint; readonly type: number };

/** Types of entries (dirent.h); UNKNOWN where the file system does not tell. */
export const ENTRY = { UNKNOWN: 0, FIFO: 1, CHARACTER: 2, FOLDER: 4, BLOCK: 6, FILE: 8, LINK: 10, SOCKET: 12 } as const;

/** Reads the next entries of an open folder, without `.` and `..`; an empty list at the end only. Throws NativeError. */
export function readEntries(descriptor: number): FolderEntry[] {
  const bytes = Buffer.alloc(65_536);
  const entries: FolderEntry[] = [];
  while (entries.length === 0) {
    const length = syscall('getdents64', descriptor, bytes, bytes.length);
    if (length === 0) return entries;
    for (let start = 0; start < length; start += bytes.readUInt16LE(start + 16)) {
      const name = Buffer.from(bytes.subarray(start + 19, bytes.indexOf(0, start + 19)));
      const text = name.toString('latin1');
      if (text === '.' || text === '..') continue;
      entries.push({ name, ino: bytes.readBigUInt64LE(start), type: bytes.readUInt8(start + 18) });
    }
  }
  return entries;
}

/** Content of a symbolic link below a folder, as bytes; an empty name means the link that is open itself (O_PATH). Throws NativeError (EINVAL: no link). */
export function readlinkat(directory: number, name: Buffer): Buffer {
  const bytes = Buffer.alloc(4096);
  const length = syscall('readlinkat', directory, terminated('readlinkat', name), bytes, bytes.length);
  return Buffer.from(bytes.subarray(0, length));
}

/** What fstatfs(2) tells of a file system; `type` is its magic number, `id` the 8 bytes of `f_fsid`. */
export type FileSystemStatus = {
  readonly type: bigint;
  readonly totalBytes: bigint;
  readonly availableBytes: bigint;
  readonly totalInodes: bigint;
  readonly freeInodes: bigint;
  readonly readOnly: boolean;
  readonly id: Buffer;
};

const ST_RDONLY = 1;

/** Status of the file system of an open file; `readOnly` of the mount too. Throws NativeError. */
export function fstatfs(descriptor: number): FileSystemStatus {
  const bytes = Buffer.alloc(120);
  syscall('fstatfs', descriptor, bytes);
  return {
    type: bytes.readBigInt64LE(0),
    totalBytes: bytes.readBigInt64LE(8) * bytes.readBigUInt64LE(16),
    availableBytes: bytes.readBigInt64LE(8) * bytes.readBigUInt64LE(32),
    totalInodes: bytes.readBigUInt64LE(40),
    freeInodes: bytes.readBigUInt64LE(48),
    readOnly: (bytes.readUInt32LE(80) & ST_RDONLY) !== 0,
    id: Buffer.from(bytes.subarray(56, 64)),
  };
}

/** The 8 bytes that name a file system (`f_fsid`). Throws NativeError. */
export function fileSystemId(descriptor: number): Buffer {
  return fstatfs(descriptor).id;
}
