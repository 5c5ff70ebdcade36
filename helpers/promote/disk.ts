/* What a disk is called and why it refuses, in sentences for the person: they hold names of file systems and never a path. */
import type { NativeError } from '../runtime/libc.ts';
import { fstatfs } from '../runtime/native-folders.ts';
import type { FileSystemStatus } from '../runtime/native-folders.ts';

/** Magic numbers of statfs(2) and of linux/magic.h; ext2, ext3 and ext4 share theirs. */
const NAMES: ReadonlyMap<bigint, string> = new Map([
  [0xef53n, 'ext4'],
  [0x5846_5342n, 'xfs'],
  [0x9123_683en, 'btrfs'],
  [0x0102_1994n, 'tmpfs'],
  [0x8584_58f6n, 'ramfs'],
  [0x794c_7630n, 'overlayfs'],
  [0xf2f5_2010n, 'f2fs'],
  [0x2fc1_2fc1n, 'zfs'],
  [0xca45_1a4en, 'bcachefs'],
  [0x4d44n, 'vfat'],
  [0x2011_bab0n, 'exfat'],
  [0x7366_746en, 'ntfs3'],
  [0x5346_544en, 'ntfs'],
  [0x6969n, 'nfs'],
  [0xfe53_4d42n, 'smb'],
  [0xff53_4d42n, 'cifs'],
  [0x0102_1997n, '9p'],
  [0x6573_5546n, 'fuse'],
  [0xe0f5_e1e2n, 'erofs'],
  [0x7371_7368n, 'squashfs'],
]);
/** Below this a disk counts as full, in bytes: some file systems keep the last blocks for themselves. */
const FULL_BYTES = 4_194_304n;

/** Name of the file system of an open file, or its magic number. Throws NativeError. */
export function fileSystemName(descriptor: number): string {
  return nameOf(fstatfs(descriptor));
}

function nameOf({ type }: FileSystemStatus): string {
  return NAMES.get(type) ?? `the file system 0x${type.toString(16)}`;
}

/** Why a disk refused a call of a promotion, as far as it can be told now. Throws NativeError. */
export function refusalOf(error: NativeError, { root, own }: { readonly root: number; readonly own: number }): string {
  const disks = [
    ['where the workspace root lies', fstatfs(root)],
    ['where the executor keeps its journal', fstatfs(own)],
  ] as const;
  if (error.code === 'ENOSPC') {
    for (const [what, disk] of disks) {
      if (disk.totalInodes > 0n && disk.freeInodes === 0n) return `no inode is left on ${nameOf(disk)}, ${what}`;
      if (disk.availableBytes < FULL_BYTES) return `no room is left on ${nameOf(disk)}, ${what}`;
    }
  }
  const all = disks.map(([what, disk]) => `${nameOf(disk)}, ${what}`);
  return `${error.message} on ${all.join(', or on ')}`;
}
