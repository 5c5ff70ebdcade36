/*
 * Read leases (fcntl(2), F_SETLEASE): while one is held nobody has the file open or mapped for writing, and whoever asks to
 * waits. The signal that tells of a waiting writer is ignored; the lease is asked instead.
 */
import { NativeError } from '../runtime/libc.ts';
import { LEASE, getLease, setLease } from '../runtime/native-locks.ts';
import { digestDescriptor, digestInTurns } from '../files/digest.ts';
import type { Turn } from '../files/digest.ts';

/** What the file system answered to the wish for a lease. */
export type LeaseAnswer = 'held' | 'in-use' | 'unsupported';

const UNSUPPORTED: ReadonlySet<string> = new Set(['EINVAL', 'EOPNOTSUPP', 'ENOSYS', 'ENOLCK']);

/** Asks for a read lease on an open file. Throws NativeError for other errors (EACCES: another owner's file). */
export function takeLease(descriptor: number): LeaseAnswer {
  try {
    setLease(descriptor, LEASE.READ);
    return 'held';
  } catch (error) {
    if (error instanceof NativeError && error.code === 'EAGAIN') return 'in-use';
    if (error instanceof NativeError && UNSUPPORTED.has(error.code)) return 'unsupported';
    throw error;
  }
}

/** Lets a lease go; a writer that waited goes on. */
export function releaseLease(descriptor: number): void {
  setLease(descriptor, LEASE.NONE);
}

/** Whether a writer waits for the file, or came when the lease was broken by force. */
export function writerWaits(descriptor: number): boolean {
  return getLease(descriptor) !== LEASE.READ;
}

/** What `underLease` found: the work was done, or somebody writes to the file, or its content is another. */
export type UnderLease<Result> =
  | { readonly found: 'quiet'; readonly result: Result }
  | { readonly found: 'in-use' }
  | { readonly found: 'changed' };

/** What is done to a file under a lease; it gets a question that tells whether a writer waits by now, and must undo what it did when one does. */
type Work<Result> = (writerWaits: () => boolean) => Result;

/** An open file, the digest that it must have, and whether its file system gives leases. */
export interface Leased {
  readonly descriptor: number;
  readonly sha256: string;
  readonly leases: boolean;
}

/**
 * Does `work` while nobody writes to an open file whose content is the expected one. Without leases the digest alone is compared.
 * The caller closes the descriptor right after it.
 */
export function underLease<Result>(file: Leased, work: Work<Result>): UnderLease<Result> {
  const answer = ask(file);
  return conclude(file, answer, digestDescriptor(file.descriptor).sha256 === file.sha256, work);
}

/** As underLease, letting others in while the file is read; `work` follows the last piece at once. */
export async function underLeaseInTurns<Result>(
  file: Leased,
  turn: Turn,
  work: Work<Result>,
): Promise<UnderLease<Result>> {
  const answer = ask(file);
  return conclude(file, answer, (await digestInTurns(file.descriptor, turn)).sha256 === file.sha256, work);
}

function ask({ descriptor, leases }: Leased): LeaseAnswer {
  return leases ? takeLease(descriptor) : 'unsupported';
}

function conclude<Result>(
  { descriptor }: Leased,
  answer: LeaseAnswer,
  isExpected: boolean,
  work: Work<Result>,
): UnderLease<Result> {
  if (answer === 'in-use') return { found: 'in-use' };
  const outcome: UnderLease<Result> = isExpected
    ? { found: 'quiet', result: work(() => answer === 'held' && writerWaits(descriptor)) }
    : { found: 'changed' };
  // Where anything was thrown the lease ends with the descriptor, and what was thrown is what the caller hears.
  if (answer === 'held') releaseLease(descriptor);
  return outcome;
}
