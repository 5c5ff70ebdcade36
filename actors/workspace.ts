/*
 * The daemon's view of workspace: operations of a run by their key, drafts by their run.
 */
import type { Duplex } from 'node:stream';
import { workspaceRefusals, workspaceRequests } from '../helpers/workspace/protocol.ts';
import type { OperationKey, OperationResult } from '../helpers/protocol/operations.ts';
import { failureSchema, findOperation, operationShape } from '../helpers/protocol/operations.ts';
import type { RunId } from '../helpers/protocol/ids.ts';
import { HelperClient, HelperViolation } from './helper-client.ts';

const contract = { requests: workspaceRequests, events: {}, refusals: workspaceRefusals };

/** A connection to workspace. */
export type WorkspaceClient = HelperClient<typeof contract>;

/** One operation of the list for a run. */
export interface WorkspaceCall<Key extends OperationKey> {
  /** Command id: names the call for `workspace.cancel` and is its idempotency key. */
  readonly call: string;
  readonly run: RunId;
  readonly operation: Key;
  readonly arguments: unknown;
  /** Deadline in ms from now; workspace ends the operation then. */
  readonly withinMs: number;
  /** The owner's ignore rules, gitignore syntax. */
  readonly ignore: readonly string[];
}

/** Longest time in ms that workspace may take to say that a deadline passed. */
const GRACE_MS = 5000;

/** Speaks to workspace over a connected stream. */
export function connectWorkspace(connection: Duplex): WorkspaceClient {
  return new HelperClient(connection, contract);
}

/**
 * Runs one operation and checks its result against the operation's schema. Rejects as HelperClient does; a result of
 * another shape is a HelperViolation and the connection ends.
 */
export async function operate<Key extends OperationKey>(
  workspace: WorkspaceClient,
  { call, run, operation, arguments: input, withinMs, ignore }: WorkspaceCall<Key>,
): Promise<OperationResult<Key>> {
  const body = { call, run, operation, arguments: input, withinMs, ignore: [...ignore] };
  const asking = { withinMs: withinMs + GRACE_MS, ...(findOperation(operation)?.writes === true && { key: call }) };
  const { result } = await workspace.request('workspace.operate', body, asking);
  const failure = failureSchema.safeParse(result);
  if (failure.success) return failure.data;
  const success = operationShape(operation).result.safeParse(result);
  if (success.success) {
    // The schema of `operation` passed; the compiler cannot follow an indexed lookup through safeParse.
    return success.data as OperationResult<Key>;
  }
  workspace.close();
  throw new HelperViolation(`workspace answered ${operation} with another shape`, { cause: success.error });
}
