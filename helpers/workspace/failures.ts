/* How an operation says that it did not succeed: a code of operations.ts and a sentence without a host path. */
import { DraftDamaged } from '../files/draft-index.ts';
import { RootRefused } from '../files/root.ts';
import { PathRefused, WalkRefused, type WalkReason } from '../files/walk.ts';
import type { FailureCode, OperationFailure } from '../protocol/operations.ts';

/** An operation that ended without success; `message` says what to do and holds no host path and no content. */
export class OperationFailed extends Error {
  override readonly name = 'OperationFailed';
  readonly code: FailureCode;

  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A rule said no. */
export const denied = (message: string): OperationFailed => new OperationFailed('WORKSPACE_DENIED', message);

/** It cannot be done as things stand. */
export const unavailable = (message: string): OperationFailed => new OperationFailed('WORKSPACE_UNAVAILABLE', message);

/** Nothing that this run may see stands at the path; the same words whether it is absent or kept out by a rule. */
export const nothingThere = (): OperationFailed => unavailable('there is nothing at this path');

const walkRules: ReadonlySet<WalkReason> = new Set(['link', 'mount']);

const systemSentences: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk that holds drafts is full; nothing was changed',
  EDQUOT: 'the disk quota for drafts is used up; nothing was changed',
  EMFILE: 'too many files are open at this moment; try again',
  ENFILE: 'too many files are open on the machine; try again',
  ENAMETOOLONG: 'the path is longer than the system takes',
  EACCES: 'the owner’s permissions do not let this be read',
  EPERM: 'the owner’s permissions do not let this be read',
  EIO: 'the disk reported an error',
};

const failure = (code: FailureCode, message: string): OperationFailure => ({
  success: false,
  code,
  message: message.slice(0, 400),
});

/** The failure that an error is to the caller; undefined for a bug, which nobody may turn into an answer. */
export function failureOf(error: unknown): OperationFailure | undefined {
  if (error instanceof OperationFailed) return failure(error.code, error.message);
  if (error instanceof PathRefused) return failure('WORKSPACE_DENIED', error.message);
  if (error instanceof WalkRefused) {
    return failure(walkRules.has(error.reason) ? 'WORKSPACE_DENIED' : 'WORKSPACE_UNAVAILABLE', error.message);
  }
  if (error instanceof RootRefused) return failure('WORKSPACE_UNAVAILABLE', error.message);
  if (error instanceof DraftDamaged) {
    return failure(
      'WORKSPACE_UNAVAILABLE',
      'the draft of this run is damaged; its owner can discard it on the machine',
    );
  }
  const code = systemCode(error);
  if (code === undefined) return undefined;
  return failure('WORKSPACE_UNAVAILABLE', systemSentences[code] ?? `the system refused with ${code}`);
}

/** Name of the errno of a system error, such as `ENOENT`; undefined for any other error. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  return /^E[A-Z0-9]+$/.test(error.code) ? error.code : undefined;
}
