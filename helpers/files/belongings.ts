/*
 * What a file has beside its content, mode and times, and what of it a new file in its place would not have. `workspace` lists it
 * in the manifest before anybody approves, `promote` finds it again before it replaces the file; both ask here.
 *
 *   kept    owner, group where this user may give it, POSIX access list, attributes `user.*`
 *   lost    any other group, any other attribute, flags of the file system
 *
 * `security.capability` is never kept: it would be a right that nobody approved.
 */
import { NativeError } from '../runtime/libc.ts';
import { fgetxattr, fileFlags, flistxattr, statx } from '../runtime/native-files.ts';
import { toPathText } from '../protocol/path-text.ts';

const ITSELF = Buffer.alloc(0);
const KEPT_ATTRIBUTES = /^(?:user\.|system\.posix_acl_access$)/;
/** The kernel labels every new file; a file that has the label of its root loses nothing. */
const LABEL = 'security.selinux';
/** Most attributes of one file that are named. */
const NAMED_LIMIT = 8;

/** Flags that a person or a program sets on a file (linux/fs.h); all others are the file system's own business. */
const FLAGS: readonly (readonly [number, string])[] = [
  [0x1, 'secure deletion'],
  [0x2, 'undeletable'],
  [0x4, 'compressed'],
  [0x8, 'synchronous'],
  [0x40, 'no dump'],
  [0x80, 'no access times'],
  [0x400, 'never compressed'],
  [0x4000, 'journalled data'],
  [0x10_0000, 'verity'],
  [0x80_0000, 'no copy on write'],
  [0x200_0000, 'direct access'],
];

/** Names of the attributes of an open file that a new file in its place gets. Throws NativeError. */
export function keptAttributes(descriptor: number): Buffer[] {
  return attributesOf(descriptor).filter((name) => KEPT_ATTRIBUTES.test(name.toString('latin1')));
}

/** What an open file has that a new file in its place, staged at the top of the open root, would not have; in a fixed order. Throws NativeError. */
export function lossesOf(descriptor: number, root: number): string[] {
  const group = mayGive(statx(descriptor, ITSELF).gid) ? [] : ['group'];
  const lost = attributesOf(descriptor)
    .filter((name) => !KEPT_ATTRIBUTES.test(name.toString('latin1')) && !isInherited(name, descriptor, root))
    .toSorted((one, two) => Buffer.compare(one, two))
    .map((name) => `attribute ${toPathText(name)}`);
  const named = lost.slice(0, NAMED_LIMIT);
  if (lost.length > NAMED_LIMIT) named.push(`${lost.length - NAMED_LIMIT} more attributes`);
  const own = fileFlags(descriptor) & ~fileFlags(root);
  const flags = FLAGS.filter(([bit]) => (own & bit) !== 0).map(([, name]) => `flag ${name}`);
  return [...group, ...named, ...flags];
}

/** Whether this user may give a file of its own that group (chown(2)). */
function mayGive(gid: number): boolean {
  // The calls are missing on Windows alone, where neither process runs.
  return process.geteuid?.() === 0 || process.getegid?.() === gid || (process.getgroups?.() ?? []).includes(gid);
}

function attributesOf(descriptor: number): Buffer[] {
  try {
    return flistxattr(descriptor);
  } catch (error) {
    if (error instanceof NativeError && error.code === 'EOPNOTSUPP') return [];
    throw error;
  }
}

function isInherited(name: Buffer, descriptor: number, root: number): boolean {
  if (name.toString('latin1') !== LABEL) return false;
  try {
    return fgetxattr(descriptor, name).equals(fgetxattr(root, name));
  } catch (error) {
    if (error instanceof NativeError && error.code === 'ENODATA') return false;
    throw error;
  }
}
