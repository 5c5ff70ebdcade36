import { NativeError } from '../runtime/libc.ts';
import { toPathText } from '../protocol/path-text.ts';
import type { FailureCode } from '../protocol/operations.ts';
import { PathRefused, WalkRefused } from '../files/walk.ts';

/** The reasons with which a promotion ends before its commit; a part of the wire's failure codes. */
export type StopCode = Extract<FailureCode, `PROMOTION_${string}` | 'CANCELLED' | 'EXPIRED'>;

/** A promotion that ends before its commit: what is placed goes back. `path` is path text below the root, `detail` a sentence for the person that holds no path. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
  readonly code: StopCode;
  readonly path: string | undefined;
  readonly detail: string | undefined;

  constructor(code: StopCode, path?: Buffer, options?: ErrorOptions & { readonly detail?: string }) {
    super(code, options);
    this.code = code;
    this.detail = options?.detail;
    this.path = path === undefined ? undefined : toPathText(path);
  }
}

/** Why something ended, as Stopped has it. */
export interface Reason<Code = StopCode> {
  readonly code: Code;
  readonly path: string | undefined;
  readonly detail?: string | undefined;
}

/** A reason as an answer carries it; a path that is longer as path text than it holds is left out. */
export function named<Code>({ code, path, detail }: Reason<Code>): { code: Code; path?: string; detail?: string } {
  const fits = path !== undefined && path.length <= 4096;
  return { code, ...(fits ? { path } : {}), ...(detail === undefined ? {} : { detail: detail.slice(0, 300) }) };
}

/** Refusals of the kernel that speak of the path, not of the disk. */
const UNSAFE: ReadonlySet<string> = new Set([
  'ELOOP',
  'EXDEV',
  'ENOTDIR',
  'EISDIR',
  'EACCES',
  'EPERM',
  'ENAMETOOLONG',
  'ENXIO',
]);
const CHANGED: ReadonlySet<string> = new Set(['ENOENT', 'EEXIST', 'ENOTEMPTY', 'ESTALE']);

/** What a disk that fails or is full, and a kernel that is short of something, answer whatever was asked. */
const TROUBLES: ReadonlySet<string> = new Set([
  'EIO',
  'ENOSPC',
  'EDQUOT',
  'EROFS',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'EINTR',
  'ETIMEDOUT',
]);

/** Whether a call was refused for a reason that says nothing about what it was asked about: no verdict on a file follows from it. */
export function isTrouble(error: unknown): boolean {
  const known = asNative(error);
  return known instanceof NativeError && TROUBLES.has(known.code);
}

/** What node:fs throws where the kernel refused, as a native call would throw it; anything else as it is. */
export function asNative(error: unknown): unknown {
  if (error instanceof NativeError || !(error instanceof Error)) return error;
  if (!('errno' in error) || typeof error.errno !== 'number' || !('syscall' in error)) return error;
  return new NativeError(String(error.syscall), Math.abs(error.errno));
}

/** Gives an error of a step its reason; a bug stays what it is. */
export function stopFor(thrown: unknown, path: Buffer): unknown {
  const error = asNative(thrown);
  if (error instanceof PathRefused) return new Stopped('PROMOTION_UNSAFE_PATH', path, { cause: error });
  if (error instanceof WalkRefused) {
    const gone = error.reason === 'missing' || error.reason === 'changing';
    return new Stopped(gone ? 'PROMOTION_CONFLICT' : 'PROMOTION_UNSAFE_PATH', path, { cause: error });
  }
  if (!(error instanceof NativeError)) return error;
  if (UNSAFE.has(error.code)) return new Stopped('PROMOTION_UNSAFE_PATH', path, { cause: error });
  if (CHANGED.has(error.code)) return new Stopped('PROMOTION_CONFLICT', path, { cause: error });
  return new Stopped('PROMOTION_IO_FAILURE', path, { cause: error });
}
