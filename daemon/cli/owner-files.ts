/*
 * Files that the owner's command line writes: the pin, confirmations, policy and configuration. Each holds the old bytes or
 * the new ones, whenever this ends.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** Who may read what the command line writes. */
export interface Readers {
  readonly folder: number;
  readonly file: number;
}

/** For the owner alone. */
export const OWNER_ONLY: Readers = { folder: 0o700, file: 0o600 };

/** Readers of configuration and owner's folder: under root `daemon` and `promote` have other uids and must read them. */
export function configurationReaders(uid: number): Readers {
  return uid === 0 ? { folder: 0o755, file: 0o644 } : OWNER_ONLY;
}

/** Makes a folder and those above it that are missing; one that is there keeps its mode. */
export function makeFolder(folder: string, { folder: mode }: Readers): void {
  fs.mkdirSync(folder, { recursive: true, mode });
}

/** Writes a file durably, all or nothing, in a folder that is there. */
export function writeOwnerFile(file: string, text: string, readers: Readers): void {
  const folder = path.dirname(file);
  const unfinished = path.join(folder, `.${path.basename(file)}.${randomBytes(8).toString('hex')}`);
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants;
  try {
    const descriptor = fs.openSync(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, readers.file);
    try {
      // The umask of a shell must not keep the daemon's own uid from reading it.
      fs.fchmodSync(descriptor, readers.file);
      fs.writeFileSync(descriptor, text);
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    fs.renameSync(unfinished, file);
  } catch (error) {
    fs.rmSync(unfinished, { force: true });
    throw error;
  }
  flushFolder(folder);
}

/** Removes a file durably: it does not come back after lost power. */
export function removeOwnerFile(file: string): void {
  fs.rmSync(file, { force: true });
  flushFolder(path.dirname(file));
}

function flushFolder(folder: string): void {
  const opened = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  try {
    fs.fsyncSync(opened);
  } finally {
    fs.closeSync(opened);
  }
}
