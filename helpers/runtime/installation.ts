import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** Name of the file that lists the SHA-256 of every other file of an installation. */
export const MANIFEST = 'manifest.json';

/** Name of the file that holds the parts of the page of `trace view`. */
export const TRACE_PAGE = 'trace-page.json';

/** The bundles in one folder and the hash that each must have; `digest` is SHA-256 over the manifest's bytes, hexadecimal. */
export type Installation = {
  readonly folder: string;
  readonly digest: string;
  readonly hashes: ReadonlyMap<string, string>;
};

/** A file of the installation is absent or not the one that was built; `file` is its name inside the installation. */
export class InstallationError extends Error {
  readonly code: 'INSTALLATION_MISSING' | 'ROLE_MISSING' | 'ROLE_ALTERED';
  readonly file: string;

  constructor(code: InstallationError['code'], file: string) {
    const found = code === 'ROLE_ALTERED' ? 'is not the one that was built' : 'is missing or unreadable';
    super(`${file} ${found}: run \`npm run build\`, or install again`);
    this.name = 'InstallationError';
    this.code = code;
    this.file = file;
  }
}

/** Names below the installation; none leaves it. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function read(folder: string, file: string, code: 'INSTALLATION_MISSING' | 'ROLE_MISSING'): Buffer {
  try {
    return fs.readFileSync(path.join(folder, file));
  } catch {
    // whatever the cause, the remedy is the same; the cause would carry a path
    throw new InstallationError(code, file);
  }
}

/** Reads the manifest of a folder; throws InstallationError. */
export function readInstallation(folder: string): Installation {
  const bytes = read(folder, MANIFEST, 'INSTALLATION_MISSING');
  const hashes = new Map<string, string>();
  const manifest: unknown = JSON.parse(bytes.toString('utf8'));
  const files = typeof manifest === 'object' && manifest !== null && 'files' in manifest ? manifest.files : undefined;
  for (const [name, hash] of Object.entries(files ?? {})) {
    if (typeof hash !== 'string' || !NAME.test(name)) throw new InstallationError('INSTALLATION_MISSING', MANIFEST);
    hashes.set(name, hash);
  }
  return { folder: fs.realpathSync(folder), digest: sha256(bytes), hashes };
}

/** Checks that the named files are the ones that were built; throws InstallationError naming the first that is not. */
export function verifyFiles(installation: Installation, names: readonly string[]): void {
  for (const name of names) {
    const expected = installation.hashes.get(name);
    if (expected === undefined) throw new InstallationError('ROLE_MISSING', name);
    if (sha256(read(installation.folder, name, 'ROLE_MISSING')) !== expected)
      throw new InstallationError('ROLE_ALTERED', name);
  }
}

/** Where root keeps copies of installations that roles of other uids can read. */
const COPIES = '/var/lib/nessie-executor/install';
/** A copy that was asked for within this time may have a starter that has not started anything yet, in ms. */
const UNUSED_MS = 3_600_000;

/**
 * The root-owned copy of an installation, 0755 and 0644, made when it is missing, and then copies that no process runs from go.
 * Throws InstallationError where a file is not the built one.
 */
export function copyForOtherUsers(installation: Installation, copies: string = COPIES): Installation {
  const target = path.join(copies, installation.digest);
  if (!fs.existsSync(target)) {
    verifyFiles(installation, [...installation.hashes.keys()]);
    const umask = process.umask(0o022);
    const next = `${target}.${process.pid}`;
    fs.mkdirSync(next, { recursive: true });
    for (const name of [...installation.hashes.keys(), MANIFEST]) {
      fs.mkdirSync(path.dirname(path.join(next, name)), { recursive: true });
      fs.writeFileSync(path.join(next, name), fs.readFileSync(path.join(installation.folder, name)), { flag: 'wx' });
    }
    try {
      fs.renameSync(next, target);
    } catch (error) {
      // another starter made the same copy meanwhile
      if (!fs.existsSync(target)) throw error;
      fs.rmSync(next, { recursive: true });
    }
    process.umask(umask);
    removeUnused(copies);
  } else fs.utimesSync(target, new Date(), new Date());
  // TRUST: the folders down to the copy belong to root; a copy that was altered is told by its hashes at each start
  return readInstallation(target);
}

function removeUnused(copies: string): void {
  const running = fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(commandLine)
    .join('\n');
  for (const name of fs.readdirSync(copies)) {
    const folder = path.join(copies, name);
    const asked = fs.statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - asked > UNUSED_MS && !running.includes(`${folder}/`))
      fs.rmSync(folder, { recursive: true, force: true });
  }
}

function commandLine(pid: string): string {
  try {
    return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    // It ended while the list was read.
    return '';
  }
}
