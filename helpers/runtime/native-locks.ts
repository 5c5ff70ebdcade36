import { NativeError, syscall } from './libc.ts';

const LOCK_EX = 2;
const LOCK_NB = 4;

/** Takes the exclusive lock of an open file without waiting; false when another open file description holds it (flock(2)). */
export function tryLock(descriptor: number): boolean {
  try {
    syscall('flock', descriptor, LOCK_EX | LOCK_NB);
    return true;
  } catch (error) {
    if (error instanceof NativeError && error.code === 'EAGAIN') return false;
    throw error;
  }
}

const F_GETFD = 1;
const F_SETFD = 2;
const FD_CLOEXEC = 1;
const F_DUPFD = 0;
const F_DUPFD_CLOEXEC = 1030;
const F_SETLEASE = 1024;
const F_GETLEASE = 1025;

/** Whether the descriptor is closed by an exec. */
export function isClosedOnExec(descriptor: number): boolean {
  return (syscall('fcntl', descriptor, F_GETFD) & FD_CLOEXEC) !== 0;
}

/** Sets whether the descriptor is closed by an exec. */
export function setClosedOnExec(descriptor: number, closed: boolean): void {
  syscall('fcntl', descriptor, F_SETFD, closed ? FD_CLOEXEC : 0);
}

/** Duplicates a descriptor to the lowest free number from `atLeast` on and returns it. */
export function duplicate(descriptor: number, atLeast: number, closedOnExec: boolean): number {
  return syscall('fcntl', descriptor, closedOnExec ? F_DUPFD_CLOEXEC : F_DUPFD, atLeast);
}

/** Makes `target` another number of `descriptor`, kept open by an exec; what was open there is closed. */
export function replaceDescriptor(descriptor: number, target: number): void {
  if (descriptor !== target) syscall('dup3', descriptor, target, 0);
}

/** States of a lease as fcntl(2) numbers them. */
export const LEASE = { READ: 0, WRITE: 1, NONE: 2 } as const;
/** One of the lease states. */
export type Lease = (typeof LEASE)[keyof typeof LEASE];

/** Takes or lets go a lease; throws NativeError: EAGAIN while anyone has the file open or mapped for writing, EACCES for a file of another uid. */
export function setLease(descriptor: number, lease: Lease): void {
  syscall('fcntl', descriptor, F_SETLEASE, lease);
}

/** The lease as it stands; NONE after READ was taken means that a writer waits or has come (fcntl(2), F_GETLEASE during a break). */
export function getLease(descriptor: number): Lease {
  const state = syscall('fcntl', descriptor, F_GETLEASE);
  if (state === LEASE.READ || state === LEASE.WRITE || state === LEASE.NONE) return state;
  throw new Error(`fcntl F_GETLEASE answered ${state}, expected 0, 1 or 2`);
}
