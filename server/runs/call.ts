import { aboutError } from '../about-error.ts';
import type { CommandId } from '../../helpers/protocol/ids.ts';
import { encode } from '../../helpers/protocol/codec.ts';
import { findOperation } from '../../helpers/protocol/operations.ts';
import type { Operation } from '../../helpers/protocol/operations.ts';
import { ARGUMENTS_LIMIT_BYTES } from '../../helpers/protocol/statements.ts';
import { cancelCommand } from '../commands/cancel.ts';
import { digestsOf } from '../commands/lease.ts';
import type { Waiting } from '../commands/lease.ts';
import type { CommandEnd, Progress } from '../commands/outcomes.ts';
import { TOOL_WAITS_MS } from '../commands/rules.ts';
import { queuedColumns } from '../commands/store.ts';
import type { Work } from '../commands/work.ts';
import { newId } from '../new-id.ts';
import { Refusal } from '../refusal.ts';
import type { Writer } from '../store/store.ts';
import type { BindingRow, RunRow } from './store.ts';

/** One call of an operation in a run. */
export interface Call {
  readonly run: RunRow;
  readonly binding: BindingRow;
  readonly arguments: unknown;
  /** Bulk content beside the arguments: a promotion's signed approval. */
  readonly content?: Uint8Array;
  /** Without it each call is one of its own. */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
  readonly progress?: (progress: Progress) => void;
  /** Further rows of the transaction that makes the command; what it throws undoes the command too. */
  readonly also?: (tx: Writer, command: CommandId) => Promise<void>;
}

/** How a call ended, and the command that carried it. */
export interface Called {
  readonly command: CommandId;
  /** Undefined when nobody knows within the tool's own time: the command goes on. */
  readonly end: CommandEnd | undefined;
}

/**
 * Makes a command and waits for its end. A signal asks the machine to stop and the true end is still waited for. Throws Refusal
 * ARGUMENTS_INVALID, ARGUMENTS_TOO_LARGE, RUN_BUSY or what the gate says; nothing ran then.
 */
export async function call(work: Work, order: Call): Promise<Called> {
  const { command, waiting, operation } = prepare(work, order);
  const cancel = (): void => {
    cancelCommand(work, command, 'person').catch((error: unknown) =>
      work.log.error({ ...aboutError(error), command }, 'a cancel could not be stored'),
    );
  };
  const ended = work.outcomes.wait(command, {
    withinMs: operation.lifetimeMs + TOOL_WAITS_MS,
    ...(order.progress ? { progress: order.progress } : {}),
  });
  try {
    await work.dispatcher.submit(waiting);
  } catch (error) {
    work.outcomes.tell(command, { outcome: 'refused', gate: 'control-plane', code: null, result: undefined });
    throw error;
  }
  if (order.signal?.aborted) cancel();
  order.signal?.addEventListener('abort', cancel, { once: true });
  try {
    return { command, end: await ended };
  } finally {
    order.signal?.removeEventListener('abort', cancel);
  }
}

/** Makes a command and answers as soon as it is durable; its end is seen in its row. Throws as `call`. */
export async function start(work: Work, order: Call): Promise<CommandId> {
  const { command, waiting } = prepare(work, order);
  await work.dispatcher.submit(waiting);
  return command;
}

function prepare(work: Work, order: Call) {
  const operation = findOperation(order.binding.operation);
  if (!operation) throw new Refusal('OPERATION_UNKNOWN', 'There is no such operation.');
  const bytes = { arguments: encodeArguments(operation, order.arguments), content: order.content ?? Buffer.alloc(0) };
  const command = newId('cmd');
  return { command, operation, waiting: waitingOf(work, order, operation, command, bytes) };
}

function encodeArguments(operation: Operation, value: unknown): Buffer {
  const parsed = operation.arguments.safeParse(value ?? {});
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue?.path.join('.');
    const message = `${operation.key}: ${where ? `${where}: ` : ''}${issue?.message ?? 'arguments are not in the expected shape'}`;
    throw new Refusal('ARGUMENTS_INVALID', message.slice(0, 400), { status: 400 });
  }
  const bytes = encode(parsed.data);
  if (bytes.length <= ARGUMENTS_LIMIT_BYTES) return bytes;
  throw new Refusal(
    'ARGUMENTS_TOO_LARGE',
    `${operation.key}: arguments of ${bytes.length} bytes, allowed are ${ARGUMENTS_LIMIT_BYTES}; write large files in parts with file_append`,
    { status: 400 },
  );
}

function waitingOf(
  work: Work,
  { run, binding, idempotencyKey, also }: Call,
  operation: Operation,
  command: CommandId,
  bytes: { readonly arguments: Uint8Array; readonly content: Uint8Array },
): Waiting {
  const now = work.clock.now();
  const { executor } = binding;
  return {
    row: {
      id: command,
      run: run.id,
      binding: binding.id,
      executor,
      operation: operation.key,
      agent: operation.caller === 'person' ? null : run.agent,
      idempotencyKey: idempotencyKey ?? command,
      ...queuedColumns({ commandId: command, executorId: executor }),
      epoch: null,
      ...digestsOf(bytes),
      resultDigest: null,
      cancelWanted: 0,
      createdAt: now,
      deadline: now + operation.lifetimeMs,
      leasedAt: null,
      endedAt: null,
    },
    fence: binding.fence,
    person: run.person,
    project: run.project,
    conversation: run.conversation,
    ...bytes,
    fresh: true,
    ...(also ? { also: (tx: Writer) => also(tx, command) } : {}),
  };
}
