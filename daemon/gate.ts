/*
 * The machine's own gate. The control plane has its verdict, this is the other one: every envelope is checked again with this
 * machine's catalogue, policy, limits and ledger, and no flag skips it. Pure: facts in, verdict out.
 *
 * Order: signature, shape, then each bound field with its own code, then replay, then what the owner permits now.
 */
import { findOperation, isUnimplemented } from '../helpers/protocol/operations.ts';
import type { FailureCode, Operation, OperationArguments } from '../helpers/protocol/operations.ts';
import type { EnvelopeRefusal, MachineRefusal } from '../helpers/protocol/errors.ts';
import { PROTOCOL_VERSION } from '../helpers/protocol/descriptor.ts';
import { encode, decode } from '../helpers/protocol/codec.ts';
import { sha256 } from '../helpers/protocol/signed.ts';
import type { AdmittedKey } from '../helpers/protocol/signed.ts';
import { openStatement } from '../helpers/protocol/statements.ts';
import type { CommandEnvelope } from '../helpers/protocol/statements.ts';
import type { ExecutorId, RunId } from '../helpers/protocol/ids.ts';
import type { CommandFrame } from '../server/protocol.ts';
import type { CommandFacts } from './ledger/records.ts';
import type { LedgerMemory } from './ledger/memory.ts';
import { checkBounds, checkReplay, isEqual } from './rules.ts';
import { permits } from '../helpers/protocol/policy.ts';
import type { Policy } from '../helpers/protocol/policy.ts';

/** A promotion that a person at this machine must confirm first: as `promote` would say it. */
const UNCONFIRMED = 'PROMOTION_CONFIRMATION_REQUIRED' satisfies FailureCode;

/** What this machine knows at the moment of the check. */
export interface GateFacts {
  readonly executor: ExecutorId;
  readonly commandKey: AdmittedKey;
  readonly epoch: number;
  /** The revision that a person confirmed last, with the policy that it stated; absent while none is confirmed. */
  readonly confirmed:
    | { readonly revision: number; readonly policy: Policy; readonly policyDigest: Uint8Array }
    | undefined;
  readonly catalogueDigest: Uint8Array;
  /** The owner's policy as it stands now; absent while the file is unreadable or invalid. */
  readonly policy: Policy | undefined;
  /** Whether a person confirmed these changes of a run at this machine; the digest is 64 hexadecimal digits. */
  readonly isConfirmedHere: (run: RunId, manifestDigest: string) => boolean;
  readonly memory: LedgerMemory;
  /** False after the machine slept: nothing starts before a new session. */
  readonly anchored: boolean;
  /** ms since the Unix epoch by the control plane's clock, never before the highest time ever signed to this machine. */
  readonly now: number;
}

/** A command that may be accepted. */
export interface AdmittedCommand {
  readonly envelope: CommandEnvelope;
  readonly facts: CommandFacts;
  readonly operation: Operation;
  readonly arguments: unknown;
  readonly content: Uint8Array;
}

/** The gate's answer. `facts` are there once the signature held, so that the refusal can be recorded and receipted. */
export type GateVerdict =
  | { readonly permitted: true; readonly command: AdmittedCommand }
  | {
      readonly permitted: false;
      readonly gate: 'envelope' | 'policy' | 'ledger';
      readonly code: EnvelopeRefusal | MachineRefusal | typeof UNCONFIRMED;
      readonly facts: CommandFacts | undefined;
    }
  /** The same command with the same bytes again: answered from the ledger, not run. */
  | { readonly permitted: false; readonly gate: 'repeat'; readonly facts: CommandFacts };

/** Decides about one delivered command before anything is recorded. */
export function checkCommand(frame: CommandFrame, known: GateFacts): GateVerdict {
  const opened = openSignedParts(frame, known);
  if (typeof opened === 'string') return refuse('envelope', opened, undefined);
  const { envelope, facts } = opened;
  const bound = checkBoundFields(envelope, known) ?? checkBytes(frame, envelope);
  if (bound) return refuse('envelope', bound, facts);
  const replay = checkReplay(facts, known.memory);
  if (replay === 'repeat') return { permitted: false, gate: 'repeat', facts };
  if (replay) return refuse('ledger', replay, facts);
  const operation = findOperation(envelope.operation);
  if (!operation) return refuse('envelope', unknownOperation(envelope.operation), facts);
  const tie = known.memory.tieOf(facts.binding);
  if (tie && tie.operation !== operation.key) return refuse('ledger', 'BINDING_INVALID', facts);
  const owner = checkOwner(envelope, operation, known);
  if (owner) return refuse(owner === 'LOCAL_POLICY_DENIED' ? 'policy' : 'envelope', owner, facts);
  const parsed = parseArguments(operation, frame.arguments);
  if (!parsed) return refuse('envelope', 'ARGUMENTS_INVALID', facts);
  if (operation.key === 'workspace.promote' && waitsForPerson(envelope, parsed.data, known)) {
    return refuse('policy', UNCONFIRMED, facts);
  }
  return { permitted: true, command: { envelope, facts, operation, arguments: parsed.data, content: frame.content } };
}

/** Arguments that the operation's schema passed; undefined for bytes that are none. */
function parseArguments(operation: Operation, bytes: Uint8Array): { readonly data: unknown } | undefined {
  try {
    const parsed = operation.arguments.safeParse(decode(bytes));
    return parsed.success ? parsed : undefined;
  } catch {
    // Signed bytes that are not msgpack are arguments of another shape, no more and no less.
    return undefined;
  }
}

function refuse(
  gate: 'envelope' | 'policy' | 'ledger',
  code: EnvelopeRefusal | MachineRefusal | typeof UNCONFIRMED,
  facts: CommandFacts | undefined,
): GateVerdict {
  return { permitted: false, gate, code, facts };
}

function openSignedParts(
  frame: CommandFrame,
  known: GateFacts,
): { envelope: CommandEnvelope; facts: CommandFacts } | EnvelopeRefusal {
  try {
    const opened = openStatement('control.command', known.commandKey, frame.envelope);
    if (!opened) return 'SIGNATURE_INVALID';
    const leased = openStatement('control.leased', known.commandKey, frame.leased);
    if (!leased) return 'LEASE_INVALID';
    const envelope = opened.statement;
    const lease = leased.statement;
    const matches =
      lease.command === envelope.command &&
      lease.executor === envelope.executor &&
      lease.epoch === envelope.epoch &&
      opened.digest.equals(lease.envelopeDigest);
    if (!matches) return 'LEASE_INVALID';
    return { envelope, facts: factsOf(frame, envelope, opened.digest, leased.digest) };
  } catch {
    // The key signed bytes that are no statement: nothing of them is believed.
    return 'ENVELOPE_INVALID';
  }
}

function factsOf(
  frame: CommandFrame,
  envelope: CommandEnvelope,
  envelopeDigest: Buffer,
  leasedDigest: Buffer,
): CommandFacts {
  const { command, run, operation, binding, fence, epoch, maximumRuntimeMs, expiresAt, idempotencyKey } = envelope;
  const { agent = null, ...origin } = envelope.origin;
  return {
    command,
    run,
    operation,
    binding,
    fence,
    epoch,
    maximumRuntimeMs,
    expiresAt,
    idempotencyKey,
    envelopeDigest,
    leasedDigest,
    originDigest: sha256(encode(origin)),
    agent,
    requestDigest: sha256(sha256(Buffer.from(operation)), sha256(frame.arguments), sha256(frame.content)),
  };
}

function checkBoundFields(envelope: CommandEnvelope, known: GateFacts): EnvelopeRefusal | undefined {
  const { executor, epoch, confirmed, catalogueDigest, memory, now } = known;
  const { highFence } = memory;
  // Without a confirmed revision its own code comes before any limit.
  const runtimeMs = (known.policy ?? confirmed?.policy)?.limits.runtimeMs ?? 0;
  const protocolVersion = PROTOCOL_VERSION;
  return checkBounds(envelope, {
    protocolVersion,
    executor,
    epoch,
    confirmed,
    catalogueDigest,
    runtimeMs,
    highFence,
    now,
  });
}

function checkBytes(frame: CommandFrame, envelope: CommandEnvelope): EnvelopeRefusal | undefined {
  if (!isEqual(sha256(frame.arguments), envelope.argumentsDigest)) return 'COMMAND_DIGEST_INVALID';
  return isEqual(sha256(frame.content), envelope.contentDigest) ? undefined : 'CONTENT_DIGEST_INVALID';
}

function unknownOperation(key: string): EnvelopeRefusal {
  return isUnimplemented(key) ? 'OPERATION_NOT_IMPLEMENTED' : 'OPERATION_UNKNOWN';
}

function checkOwner(
  envelope: CommandEnvelope,
  operation: Operation,
  known: GateFacts,
): EnvelopeRefusal | MachineRefusal | undefined {
  const byAgent = envelope.origin.agent !== undefined;
  if (byAgent !== (operation.caller === 'agent')) return 'OPERATION_CALLER_INVALID';
  return isPermittedNow(operation.key, known) ? undefined : 'LOCAL_POLICY_DENIED';
}

/**
 * Whether a promotion needs a person at this machine, by the confirmed policy or the one of this moment (D-22), and none confirmed
 * it. `promote` asks the same of the owner's files itself: this spares the start of what it would refuse.
 */
function waitsForPerson(envelope: CommandEnvelope, input: unknown, known: GateFacts): boolean {
  const rules = [known.policy?.promotion.confirm, known.confirmed?.policy.promotion.confirm];
  if (!rules.includes('machine')) return false;
  // These arguments passed the schema of the operation.
  const { manifestDigest } = input as OperationArguments<'workspace.promote'>;
  return !known.isConfirmedHere(envelope.run, manifestDigest);
}

/** Under the confirmed policy and the one of this moment, both (D-22). */
export function isPermittedNow(key: string, known: Pick<GateFacts, 'policy' | 'confirmed'>): boolean {
  return (
    known.policy !== undefined &&
    known.confirmed !== undefined &&
    permits(known.policy, key) &&
    permits(known.confirmed.policy, key)
  );
}
