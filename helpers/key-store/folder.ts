/*
 * The key-store's own folder, held as an open descriptor and reached through /proc/self/fd/N alone, so that nobody can
 * put another folder in its place.
 *
 * INVARIANT 1  A name holds the old bytes or the new ones, whenever the process ends: written under a fresh name, flushed,
 *              renamed, folder flushed.
 * INVARIANT 2  Nothing is read from a folder or file that another user could have written or read.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';

/** The folder, a file in it or a record is not as this process alone would have left it. */
export class StoreUnsafe extends Error {
  override readonly name = 'StoreUnsafe';
}

/** The folder cannot be written: full, read-only or broken. */
export class StoreUnwritable extends Error {
  override readonly name = 'StoreUnwritable';
}

/** Names that the folder may hold. */
export type StoreName = 'key' | 'next' | 'guards';

const NAMES: ReadonlySet<string> = new Set<StoreName>(['key', 'next', 'guards']);
const UNFINISHED = /^\.new-[0-9a-f]{16}$/;
const LARGEST_BYTES = 4096;

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

/** A private folder of small records. */
export class StoreFolder {
  readonly #descriptor: number;
  readonly #uid: number;

  /** Checks owner, bits and every entry, and removes what an interrupted write left. Throws StoreUnsafe with the rule that is broken. */
  constructor(descriptor: number, uid: number) {
    this.#descriptor = descriptor;
    this.#uid = uid;
    const stat = fs.fstatSync(descriptor);
    if (!stat.isDirectory()) throw new StoreUnsafe('key folder is not a folder');
    this.#checkOwner(stat, 'key folder');
    if ((stat.mode & 0o777) !== 0o700) throw new StoreUnsafe(`key folder has mode ${octal(stat)}, expected 700`);
    for (const name of fs.readdirSync(this.#path(''))) {
      if (UNFINISHED.test(name)) fs.unlinkSync(this.#path(name));
      else if (!NAMES.has(name)) throw new StoreUnsafe('key folder holds an entry that no key-store writes');
      else this.#checkFile(fs.lstatSync(this.#path(name)));
    }
  }

  /** Bytes under a name, or undefined where there is none. Throws StoreUnsafe. */
  read(name: StoreName): Buffer | undefined {
    const file = this.#open(name);
    if (file === undefined) return undefined;
    try {
      const stat = fs.fstatSync(file);
      this.#checkFile(stat);
      if (stat.size > LARGEST_BYTES)
        throw new StoreUnsafe(`record of ${stat.size} bytes, allowed are ${LARGEST_BYTES}`);
      return fs.readFileSync(file);
    } finally {
      fs.closeSync(file);
    }
  }

  /** Puts bytes under a name, durably and all or nothing. Throws StoreUnwritable. */
  replace(name: StoreName, bytes: Uint8Array): void {
    const unfinished = this.#path(`.new-${randomBytes(8).toString('hex')}`);
    this.#writing(() => {
      const file = fs.openSync(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
      try {
        fs.writeFileSync(file, bytes);
        fs.fsyncSync(file);
      } finally {
        fs.closeSync(file);
      }
      fs.renameSync(unfinished, this.#path(name));
      fs.fsyncSync(this.#descriptor);
    });
  }

  /** Gives a record another name in place of what was there, durably and all or nothing. Throws StoreUnwritable. */
  rename(from: StoreName, to: StoreName): void {
    this.#writing(() => {
      fs.renameSync(this.#path(from), this.#path(to));
      fs.fsyncSync(this.#descriptor);
    });
  }

  /** Removes a record, durably; its bytes are then overwritten, which a disk may not honour. Throws StoreUnwritable. */
  remove(name: StoreName): void {
    this.#writing(() => {
      const file = fs.openSync(this.#path(name), O_WRONLY | O_NOFOLLOW);
      try {
        fs.unlinkSync(this.#path(name));
        fs.fsyncSync(this.#descriptor);
        fs.writeSync(file, Buffer.alloc(fs.fstatSync(file).size));
        fs.fsyncSync(file);
      } finally {
        fs.closeSync(file);
      }
    });
  }

  #path(name: string): string {
    return `/proc/self/fd/${this.#descriptor}/${name}`;
  }

  #open(name: StoreName): number | undefined {
    try {
      return fs.openSync(this.#path(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (cause) {
      if (isErrno(cause, 'ENOENT')) return undefined;
      throw new StoreUnsafe('key folder holds a record that cannot be opened', { cause });
    }
  }

  #checkOwner(stat: fs.Stats, what: string): void {
    if (stat.uid !== this.#uid) throw new StoreUnsafe(`${what} belongs to another user`);
  }

  #checkFile(stat: fs.Stats): void {
    if (!stat.isFile()) throw new StoreUnsafe('record is a link or another kind of entry, expected a plain file');
    this.#checkOwner(stat, 'record');
    // An access list for somebody else shows as group bits too.
    if ((stat.mode & 0o7777) !== 0o600) throw new StoreUnsafe(`record has mode ${octal(stat)}, expected 600`);
    if (stat.nlink !== 1) throw new StoreUnsafe(`record has ${stat.nlink} names, expected one`);
  }

  #writing(work: () => void): void {
    try {
      work();
    } catch (cause) {
      throw new StoreUnwritable('key folder cannot be written', { cause });
    }
  }
}

const octal = (stat: fs.Stats): string => (stat.mode & 0o7777).toString(8);

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
