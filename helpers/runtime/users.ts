import fs from 'node:fs';

import { UID_BASE, type Confined } from './privileges.ts';

/** A uid with its gid. */
export type User = { readonly uid: number; readonly gid: number };

/** The user that a row takes when the executor runs as root, or undefined as an ordinary user; `root` is the open root folder. */
export function userOf(row: Confined, root: number): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (row.user.as === 'own uid') return { uid: UID_BASE + row.user.offset, gid: UID_BASE + row.user.offset };
  const { uid, gid } = fs.fstatSync(root);
  return { uid, gid };
}
