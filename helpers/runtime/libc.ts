import { constants } from 'node:os';

import koffi from 'koffi';

import { isMutating } from './mutating-calls.ts';
import { syscallNumber, thisArchitecture, type SyscallName } from './syscall-numbers.ts';

/** A native call that the kernel refused; `code` is the errno name such as `ENOENT`, `call` the system call, `errno` its number. */
export class NativeError extends Error {
  readonly code: string;
  readonly call: string;
  readonly errno: number;

  constructor(call: string, errno: number) {
    const code = errnoName(errno);
    super(`${call} failed: ${code}`);
    this.name = 'NativeError';
    this.code = code;
    this.call = call;
    this.errno = errno;
  }
}

/** An argument of a system call: an integer, memory that the kernel reads or writes, or a null pointer. */
export type Argument = number | bigint | Buffer | null;

/** The second names of two numbers: a caller compares with EAGAIN and EOPNOTSUPP. */
const ALIASES = new Set(['EWOULDBLOCK', 'ENOTSUP']);
const errnoNames = new Map(
  Object.entries(constants.errno)
    .filter(([name]) => !ALIASES.has(name))
    .map(([name, number]) => [number, name]),
);

function errnoName(errno: number): string {
  return errnoNames.get(errno) ?? `errno ${errno}`;
}

const library = koffi.load(null);
const architecture = thisArchitecture();

type View = (number: number, ...args: Argument[]) => number;
/** Fixed-arity views of syscall(2), made on first use; the key says for each argument whether it is a pointer. */
const views = new Map<number, View>();

function viewFor(args: readonly Argument[]): View {
  let key = 1;
  for (const arg of args) key = (key << 1) | (typeof arg === 'object' ? 1 : 0);
  const known = views.get(key);
  if (known !== undefined) return known;
  const types = args.map((arg) => (typeof arg === 'object' ? 'void *' : 'long'));
  // koffi types every call as any: the declaration on this line is what makes it a View
  const made: View = library.func('syscall', 'long', ['long', ...types]);
  views.set(key, made);
  return made;
}

/**
 * Stands between this process and the kernel: makes the call by `make`, which throws NativeError where the kernel refuses, or
 * answers it itself. `number` counts, from 1 on since the interposer was put there, the calls that change something or bring it to
 * the disk (mutating-calls.ts); the others have none.
 */
export type Interposer = (
  name: SyscallName,
  args: readonly Argument[],
  make: () => number,
  number: number | undefined,
) => number;
let interposer: Interposer | undefined;
let numbered = 0;

/** Puts an interposer before every native call from now on, or takes it away: how tests count, refuse or cut calls. No program calls it. */
export function interpose(between: Interposer | undefined): void {
  interposer = between;
  numbered = 0;
}

/**
 * Makes one system call and returns its result; throws NativeError where the kernel refused.
 * Every native call of the project passes through here, so one place can count, order or interrupt them.
 */
export function syscall(name: SyscallName, ...args: Argument[]): number {
  if (interposer === undefined) return make(name, args);
  const number = isMutating(name, args) ? (numbered += 1) : undefined;
  return interposer(name, args, () => make(name, args), number);
}

function make(name: SyscallName, args: Argument[]): number {
  const number = syscallNumber(architecture, name);
  if (number === undefined) throw new NativeError(name, constants.errno.ENOSYS);
  const result = viewFor(args)(number, ...args);
  if (result < 0) throw new NativeError(name, koffi.errno());
  return result;
}

/** Bytes of one name or path as the kernel wants them, NUL at the end; throws NativeError EINVAL for a NUL inside. */
export function terminated(call: SyscallName, name: Buffer): Buffer {
  // THREAT: a NUL would make the kernel act on a shorter name than the one that was checked
  if (name.includes(0)) throw new NativeError(call, constants.errno.EINVAL);
  const bytes = Buffer.alloc(name.length + 1);
  name.copy(bytes);
  return bytes;
}

/** The address of a buffer's memory, for a structure that holds a pointer; the caller keeps the buffer reachable until the call. */
export function addressOf(memory: Buffer): bigint {
  return koffi.address(memory);
}
