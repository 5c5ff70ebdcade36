/*
 * Runs one operation of the list with the helper that can do it, and says how it ended as result bytes. Policy was decided
 * before; here is only who does what.
 */
import { HelperGone, HelperRefused, HelperSilent } from '../actors/helper-client.ts';
import { operate } from '../actors/workspace.ts';
import type { WorkspaceClient } from '../actors/workspace.ts';
import { encode } from '../helpers/protocol/codec.ts';
import type { FailureCode, OperationFailure } from '../helpers/protocol/operations.ts';
import { sha256 } from '../helpers/protocol/signed.ts';
import type { Outcome } from '../helpers/protocol/statements.ts';
import type { AdmittedCommand } from './gate.ts';
import { PeerAbsent } from './peers.ts';
import type { Promotions } from './promotions.ts';

/** A result as it will be sent. */
export interface Finished {
  readonly outcome: Outcome;
  readonly code: FailureCode | null;
  readonly result: Buffer;
  readonly resultDigest: Buffer;
}

/** Who does the work. */
export interface Workers {
  readonly workspace: () => WorkspaceClient;
  readonly promotions: Promotions;
  /** The owner's ignore rules of this moment. */
  readonly ignore: () => readonly string[];
  /** Whether the page may see a difference. */
  readonly differenceShown: () => 'page' | 'machine';
}

/**
 * Runs a started command. Rejects only when its outcome cannot be known: a helper that was asked to write is gone, or a promotion was
 * handed over and nobody can say what became of it (OutcomeUnknown).
 */
export async function runOperation(workers: Workers, command: AdmittedCommand): Promise<Finished> {
  try {
    return finish(command, await perform(workers, command));
  } catch (error) {
    const answered = error instanceof HelperRefused || error instanceof PeerAbsent;
    const gone = error instanceof HelperGone || error instanceof HelperSilent;
    if (answered || (gone && !command.operation.writes))
      return finish(command, failure(codeOf(error), messageOf(error)));
    throw error;
  }
}

/** The result of a command that was stopped or refused after its start and before its effect. */
export function failed(code: FailureCode, message?: string): Finished {
  return finishAs(
    code === 'CANCELLED' ? 'cancelled' : code === 'EXPIRED' ? 'expired' : 'failed',
    failure(code, message),
  );
}

function perform(workers: Workers, command: AdmittedCommand): Promise<unknown> {
  const { key } = command.operation;
  if (key === 'sandbox.stop') return Promise.resolve({ success: true, status: 'no_active_sandbox' });
  if (key === 'workspace.promote') return workers.promotions.promote(command);
  if (key === 'review.difference' && workers.differenceShown() === 'machine') {
    return Promise.resolve(
      failure('DIFFERENCE_DENIED', 'The owner shows differences on the machine alone: nessie-executor review RUN.'),
    );
  }
  const { envelope, arguments: input } = command;
  return operate(workers.workspace(), {
    call: envelope.command,
    run: envelope.run,
    operation: key,
    arguments: input,
    withinMs: envelope.maximumRuntimeMs,
    ignore: workers.ignore(),
  });
}

function finish(command: AdmittedCommand, result: unknown): Finished {
  const code = failureCode(result);
  const finished = finishAs(code === null ? 'succeeded' : outcomeOf(code), result);
  if (finished.result.length <= command.operation.resultLimitBytes) return finished;
  return finishAs(
    'failed',
    failure(
      'RESULT_TOO_LARGE',
      `result of ${finished.result.length} bytes, allowed are ${command.operation.resultLimitBytes}`,
    ),
  );
}

function finishAs(outcome: Outcome, result: unknown): Finished {
  const bytes = encode(result);
  return { outcome, code: failureCode(result), result: bytes, resultDigest: sha256(bytes) };
}

function outcomeOf(code: FailureCode): Outcome {
  if (code === 'CANCELLED') return 'cancelled';
  return code === 'EXPIRED' ? 'expired' : 'failed';
}

function failureCode(result: unknown): FailureCode | null {
  if (typeof result !== 'object' || result === null || !('success' in result) || result.success !== false) return null;
  // Every failure here was made by `failure` or passed failureSchema in actors/workspace.ts.
  return (result as OperationFailure).code;
}

function failure(code: FailureCode, message?: string): OperationFailure {
  return message === undefined ? { success: false, code } : { success: false, code, message: message.slice(0, 400) };
}

function codeOf(error: unknown): FailureCode {
  return error instanceof HelperRefused && error.code === 'CANCELLED' ? 'CANCELLED' : 'WORKSPACE_UNAVAILABLE';
}

function messageOf(error: unknown): string {
  return error instanceof HelperRefused
    ? `${error.code}: ${error.message}`
    : 'A process that this needs is not there; try again in a moment.';
}
