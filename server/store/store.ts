/*
 * The one interface to what the control plane remembers, so that another dialect can stand behind it with the same migrations.
 *
 * INVARIANT 1  `write` resolves only after its job is durable: committed and flushed to the disk.
 *              Readers may see it a moment earlier; what they do about it in this store becomes durable after it.
 * INVARIANT 2  Jobs that arrive together share one flush, and each keeps its own savepoint: one that throws takes back its own rows
 *              and nobody else's.
 * INVARIANT 3  A job touches the database and nothing else: it awaits no socket, no timer and no other process, and it acts on the
 *              world only after `write` resolved.
 */
import type { Kysely, Transaction } from 'kysely';
import type { Tables } from './tables.ts';

/** What reads accept: the store itself or a transaction of it, which also sees what its own job wrote. */
export type Reader = Kysely<Tables>;
/** What writes need. */
export type Writer = Transaction<Tables>;

/** The store behind every subject. */
export interface Store {
  readonly dialect: 'sqlite' | 'postgres';
  /** Reads what is committed and cannot write. Several reads that must agree share `read.transaction()`, which holds nobody up. */
  readonly read: Reader;
  /** Runs one durable job; rejects with what the job threw, or with StoreFailed when the flush failed and nothing of the group stands. */
  write<Result>(job: (tx: Writer) => Promise<Result>): Promise<Result>;
  /** Leaves no deleted content in any page or log of the files (N-552). */
  scrub(): Promise<void>;
  /** Writes a whole, consistent copy as one new file; refuses a file that exists. */
  backup(file: string): Promise<void>;
  /** What is wrong with the stored pages and references; empty when nothing is. */
  faults(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The store could not make a group of jobs durable: none of them happened. */
export class StoreFailed extends Error {
  override readonly name = 'StoreFailed';
}
