/*
 * The journal of one promotion, or of the undo of one, which is a promotion of old files: what lets a crash at any moment be answered
 * with the old tree or the new one.
 *
 * It is one file in promote's own folder. Its name is its state, its records (journal-records.ts) are what a state needs to
 * be left. A state changes by one rename, and only after everything that the next state relies on is on the disk.
 *
 *   (none) --begin--> journal.staging --prepare--> journal.prepared --commit--> journal.committed --archive--> history/ID/
 *                          |                             |                             |
 *                       discard                       restore                        clean
 *                          v                             v                             v
 *                        (none)                (none) or attention/ID        history/ID or waiting/ID
 *
 * STATES and what holds in each
 *
 *   none       The person's tree holds nothing of ours. Every approval that was ever begun stands in `mark`.
 *   staging    The tree is the old one but for the stage folder that `begin` names, which may be missing, and which holds
 *              nothing but copies: throwing it away loses nothing. Records after `begin` decide nothing.
 *   prepared   All new content lies in the stage folder, is on the disk and has the digest that was approved. Each step is
 *              either before (its old file at its path) or after (its new file at its path and its old file in the stage
 *              folder, under the number of the step). After a crash a new folder may be before again and hold what was
 *              placed in it. The way out is back: every step that is after is undone.
 *   committed  Every step is after and on the disk. The stage folder holds old files only. The way out is forward: the old
 *              files go to the history and the stage folder goes away.
 *   waiting    As committed, but some old file is still open for writing somewhere: it is kept until it can be judged.
 *   attention  A restore met a third state, a file that is neither the old nor the new one, or did not find the folder that
 *              a file was placed in. It was left alone, the old one was kept in `kept/ID`, all else was restored. No
 *              promotion begins until a person has seen it.
 *
 * INVARIANT 1  `begin` is on the disk before the stage folder is made; the stage folder is gone before the journal is.
 * INVARIANT 2  Nothing at a path of the person changes before `journal.prepared` is on the disk.
 * INVARIANT 3  No old file is unlinked before `journal.committed` is on the disk.
 * INVARIANT 4  A step moves names only: an old file keeps its inode until it is unlinked, so its bytes, mode, owner, times
 *              and attributes come back with it.
 * INVARIANT 5  Which side a step is on is read from the tree (inode and digest), never from a record: a record can be
 *              written before or after a rename, never together with it.
 * INVARIANT 6  `prepared` and `committed` are believed only whole. A damaged one is left as it is, and so is the tree. So is one of
 *              another root, and a copy of one, such as a backup brings back: it tells of a tree that is gone.
 * INVARIANT 7  A failed sync is final: no sync is asked again for the same change, and no state is entered after one.
 * INVARIANT 8  A file that is neither what was there nor what was placed is a person's work: it is never moved,
 *              overwritten or removed.
 * INVARIANT 9  Going back and going forward may be repeated from any point where they were cut.
 * INVARIANT 10 What an undo took back is noted beside its own journal after the undo's is committed and before that goes to rest.
 */
import { closeSync } from 'node:fs';
import { NativeError } from '../runtime/libc.ts';
import { RENAME, fsync, pwrite, renameat2, statx, unlinkat } from '../runtime/native-files.ts';
import { createOwn, hasOwn, ownTrust, readTrusted } from './own-folder.ts';
import { JournalDamaged, RecordWriter, readRecords } from './journal-records.ts';
import type { Begin, Commit, Folder, JournalRecord, Prepare, Staging, Step } from './journal-records.ts';

/** States of a journal that still has something in the person's tree; its file is `journal.<state>`. */
export type JournalState = 'staging' | 'prepared' | 'committed';
/** Every state, in the order in which they are entered. */
export const states: readonly JournalState[] = ['staging', 'prepared', 'committed'];

/** Largest journal that is read, in bytes: some 500,000 steps. */
const JOURNAL_LIMIT_BYTES = 268_435_456;
/** Records are gathered up to this many bytes before they are written. */
const WRITE_BYTES = 262_144;

/** Name of the journal file of a state. */
export function journalName(state: JournalState): string {
  return `journal.${state}`;
}

/** The rename of the commit was made and may not be on the disk: this process goes neither way (INVARIANT 7) and answers nothing; the next recovery reads what the name says. */
export class CommitUncertain extends Error {
  override readonly name = 'CommitUncertain';
}

/** A journal that is being written. */
export class Journal {
  /** The state that its file's name says. */
  state: JournalState = 'staging';
  readonly #own: number;
  readonly #descriptor: number;
  readonly #writer = new RecordWriter();
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #offset = 0n;

  private constructor(own: number, descriptor: number) {
    this.#own = own;
    this.#descriptor = descriptor;
  }

  /** Enters `staging` (INVARIANT 1). Throws NativeError EEXIST where one stands already. */
  static begin(own: number, begin: Begin): Journal {
    const descriptor = createOwn(own, journalName('staging'));
    const journal = new Journal(own, descriptor);
    try {
      journal.append({ ...begin, journalIno: statx(descriptor, Buffer.alloc(0)).ino.toString() });
      journal.#sync();
      fsync(own);
      return journal;
    } catch (error) {
      journal.close();
      dropUnused(own);
      throw error;
    }
  }

  /** Adds a record; it is on the disk with the next change of state. */
  append(record: JournalRecord): void {
    const bytes = this.#writer.next(record);
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.length;
    if (this.#pendingBytes >= WRITE_BYTES) this.write();
  }

  /** Hands gathered records to the kernel, so that they survive the end of this process but not of the machine. */
  write(): void {
    if (this.#pendingBytes === 0) return;
    const bytes = Buffer.concat(this.#pending);
    this.#pending = [];
    this.#pendingBytes = 0;
    pwrite(this.#descriptor, bytes, this.#offset);
    this.#offset += BigInt(bytes.length);
  }

  /** Enters `prepared` (INVARIANT 2). */
  prepare(record: Prepare): void {
    this.append(record);
    this.#enter('prepared');
    fsync(this.#own);
  }

  /** Enters `committed` (INVARIANT 3): when this returns, the new tree is the tree. Throws CommitUncertain when nobody can say. */
  commit(record: Commit): void {
    this.append(record);
    this.#enter('committed');
    try {
      fsync(this.#own);
    } catch (cause) {
      throw new CommitUncertain('the commit may not be on the disk', { cause });
    }
  }

  /** Lets the file go; its state stays. */
  close(): void {
    closeSync(this.#descriptor);
  }

  #enter(to: JournalState): void {
    this.#sync();
    const [from, into] = [Buffer.from(journalName(this.state)), Buffer.from(journalName(to))];
    renameat2(this.#own, from, this.#own, into, RENAME.NOREPLACE);
    this.state = to;
  }

  #sync(): void {
    this.write();
    fsync(this.#descriptor);
  }
}

/** Removes a journal that was never begun whole: nothing was done on the strength of it. */
function dropUnused(own: number): void {
  try {
    discardJournal({ folder: own, name: journalName('staging') });
  } catch (error) {
    // It stays for the next recovery; what kept it from being begun is what is told.
    if (!(error instanceof NativeError)) throw error;
  }
}

/** What a journal tells about one promotion once it is prepared. */
export interface Prepared {
  readonly begin: Begin;
  readonly staging: Staging;
  readonly steps: readonly Step[];
  readonly folders: readonly Folder[];
  readonly leases: boolean;
}

/** A journal that was found; `digest`, 64 hexadecimal digits, binds every record of it. */
export type FoundJournal =
  | { readonly state: 'staging'; readonly begin: Begin | undefined; readonly staging: Staging | undefined }
  | { readonly state: 'prepared' | 'committed'; readonly prepared: Prepared; readonly digest: string };

/** Reads the journal that an earlier process left, or undefined. Throws JournalDamaged, UntrustedFile; the file is left as it is (INVARIANT 6). */
export function findJournal(own: number): FoundJournal | undefined {
  const found = states.filter((state) => hasOwn(own, journalName(state)));
  const [state] = found;
  if (state === undefined) return undefined;
  if (found.length > 1) throw new JournalDamaged(`journals of ${found.length} states at once`);
  return readJournal(own, journalName(state), state);
}

/** Reads a journal of a known state from a folder. Throws JournalDamaged, UntrustedFile. */
export function readJournal(folder: number, name: string, state: JournalState): FoundJournal {
  const content = readTrusted(folder, name, JOURNAL_LIMIT_BYTES, ownTrust());
  if (content === undefined) throw new JournalDamaged(`${name} went away while it was read`);
  const { records, chain, whole } = readRecords(content);
  const [begin, staging] = records;
  if (state === 'staging') {
    return {
      state,
      begin: begin?.kind === 'begin' ? begin : undefined,
      staging: staging?.kind === 'staging' ? staging : undefined,
    };
  }
  const committed = records.at(-1)?.kind === 'commit';
  if (state === 'committed' && !(committed && whole)) throw new JournalDamaged('a committed journal that is not whole');
  const prepared = readPrepared(committed ? records.slice(0, -1) : records);
  return { state, prepared, digest: chain.toString('hex') };
}

/** Anything after a whole prepare record is a commit that was cut: it was never entered, so it says nothing. */
function readPrepared(records: readonly JournalRecord[]): Prepared {
  const [begin, staging] = records;
  const prepare = records.at(-1);
  if (begin?.kind !== 'begin' || staging?.kind !== 'staging' || prepare?.kind !== 'prepare') {
    throw new JournalDamaged('a prepared journal that is not whole');
  }
  const steps: Step[] = [];
  const folders: Folder[] = [];
  for (const record of records.slice(2, -1)) {
    if (record.kind === 'step') steps.push(record);
    else if (record.kind === 'folder') folders.push(record);
    else throw new JournalDamaged(`a ${record.kind} record out of its place`);
  }
  const inOrder = steps.every((step, index) => step.slot === index);
  if (!inOrder || steps.length !== prepare.steps || folders.length !== prepare.folders) {
    throw new JournalDamaged('a prepared journal with records missing');
  }
  return { begin, staging, steps, folders, leases: prepare.leases };
}

/** Where a journal lies: an open folder of our own and a name in it. */
export interface JournalFile {
  readonly folder: number;
  readonly name: string;
}

/** Leaves every state: nothing of this promotion is in the person's tree any more (INVARIANT 1). */
export function discardJournal(file: JournalFile): void {
  unlinkat(file.folder, Buffer.from(file.name), 0);
  fsync(file.folder);
}

/** Moves a journal out of the way of the next one, as `journal` in another folder of our own. */
export function archiveJournal(file: JournalFile, folder: number): void {
  renameat2(file.folder, Buffer.from(file.name), folder, Buffer.from('journal'), RENAME.NOREPLACE);
  fsync(folder);
  fsync(file.folder);
}
