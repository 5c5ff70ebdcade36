import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

/** Ways in which the file of a name is not what promote wrote, given the file that it wrote; each returns false where this user cannot make it. */
export const fileTraps: readonly ((real: string, name: string) => boolean)[] = [
  (real, name) => (fs.symlinkSync(real, name), true),
  (real, name) => (fs.linkSync(real, name), true),
  (_, name) => spawnSync('mkfifo', [name]).status === 0,
  (real, name) => (fs.copyFileSync(real, name), fs.chmodSync(name, 0o644), true),
  (real, name) => {
    fs.copyFileSync(real, name);
    fs.chmodSync(name, 0o600);
    if (process.getuid?.() === 0) fs.chownSync(name, 65534, 65534);
    else fs.chmodSync(name, 0o620);
    return true;
  },
];
