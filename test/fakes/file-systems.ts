import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A file system of its own, mounted; `remove` takes it away. */
export interface Mounted {
  readonly at: string;
  remove(): void;
}

/** How each is made: its size, and the program with its arguments before the image; tmpfs needs none. */
const MAKERS = {
  ext4: { bytes: 67_108_864, make: ['mkfs.ext4', '-q', '-N', '400'] },
  xfs: { bytes: 314_572_800, make: ['mkfs.xfs', '-q'] },
  btrfs: { bytes: 134_217_728, make: ['mkfs.btrfs', '-q'] },
  tmpfs: { bytes: 67_108_864, make: undefined },
} as const;
/** File systems that can be mounted for a test. */
export type FileSystem = keyof typeof MAKERS;
export const FILE_SYSTEMS = ['ext4', 'xfs', 'btrfs', 'tmpfs'] as const satisfies readonly FileSystem[];

/** What of a file system is missing here, or undefined; asked before `mounted`. */
export function missingFor(kind: FileSystem): string | undefined {
  if (process.getuid?.() !== 0) return 'file systems are mounted by root';
  const known = fs.readFileSync('/proc/filesystems', 'latin1').split(/\s+/);
  if (!known.includes(kind)) return `this kernel has no ${kind}`;
  const { make } = MAKERS[kind];
  const found = make === undefined || spawnSync(make[0], ['-V']).error === undefined;
  return found ? undefined : make[0];
}

function done(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, [...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program}: ${stderr}`);
}

/** Makes and mounts an empty file system. Throws Error where it cannot be. */
export function mounted(kind: FileSystem): Mounted {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `${kind}-`));
  fs.chmodSync(folder, 0o755);
  const at = path.join(folder, 'mounted');
  fs.mkdirSync(at);
  const { bytes, make } = MAKERS[kind];
  if (make === undefined) {
    done('mount', ['-t', 'tmpfs', '-o', `size=${bytes},nr_inodes=400`, 'tmpfs', at]);
  } else {
    const image = path.join(folder, 'image');
    fs.closeSync(fs.openSync(image, 'w'));
    fs.truncateSync(image, bytes);
    const [program, ...args] = make;
    done(program, [...args, image]);
    done('mount', ['-o', 'loop', image, at]);
  }
  return {
    at,
    remove() {
      done('umount', [at]);
      fs.rmSync(folder, { recursive: true });
    },
  };
}

/** Takes all room of a mounted file system. */
export function fill(at: string): void {
  const descriptor = fs.openSync(path.join(at, 'filler'), 'w');
  try {
    for (const bytes of [1_048_576, 4096, 512]) {
      const piece = Buffer.alloc(bytes, 1);
      while (isTaken(() => void fs.writeSync(descriptor, piece)));
    }
    isTaken(() => fs.fsyncSync(descriptor));
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Takes all inodes of a mounted file system. */
export function fillInodes(at: string): void {
  const folder = path.join(at, 'fillers');
  fs.mkdirSync(folder);
  let made = 0;
  while (isTaken(() => fs.closeSync(fs.openSync(path.join(folder, String(made)), 'w')))) made += 1;
}

function isTaken(take: () => void): boolean {
  try {
    take();
    return true;
  } catch (error) {
    // Full is what was wanted.
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return false;
    throw error;
  }
}
