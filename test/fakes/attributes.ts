import fs from 'node:fs';

import { fgetxattr, flistxattr, fsetxattr } from '../../helpers/runtime/native-files.ts';

function withFile<Result>(file: string | Buffer, work: (descriptor: number) => Result): Result {
  const descriptor = fs.openSync(file, 'r');
  try {
    return work(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Sets an extended attribute. Throws NativeError. */
export function setAttribute(file: string | Buffer, name: string, value: string | Buffer): void {
  withFile(file, (descriptor) => fsetxattr(descriptor, Buffer.from(name), Buffer.from(value)));
}

/** All extended attributes of a file by name, values as hexadecimal digits. */
export function attributesOf(file: string | Buffer): Readonly<Record<string, string>> {
  return withFile(file, (descriptor) =>
    Object.fromEntries(
      flistxattr(descriptor).map((name) => [String(name), fgetxattr(descriptor, name).toString('hex')]),
    ),
  );
}

/** Value of `system.posix_acl_access` (acl(5), version 2) under which one more user reads: the owner reads and writes, the group reads, nobody else. */
export function accessList(reader: number): Buffer {
  const [OWNER, USER, GROUP, MASK, OTHERS, NOBODY] = [1, 2, 4, 0x10, 0x20, 0xffff_ffff];
  const entries: readonly (readonly [number, number, number])[] = [
    [OWNER, 6, NOBODY],
    [USER, 4, reader],
    [GROUP, 4, NOBODY],
    [MASK, 4, NOBODY],
    [OTHERS, 0, NOBODY],
  ];
  const bytes = Buffer.alloc(4 + 8 * entries.length);
  bytes.writeUInt32LE(2, 0);
  for (const [index, [tag, rights, id]] of entries.entries()) {
    bytes.writeUInt16LE(tag, 4 + 8 * index);
    bytes.writeUInt16LE(rights, 6 + 8 * index);
    bytes.writeUInt32LE(id, 8 + 8 * index);
  }
  return bytes;
}

/** Value of `security.capability` (capabilities(7), revision 2) that lets a program bind to low ports. */
export const CAPABILITY = Buffer.from('0100000200040000000000000000000000000000', 'hex');
