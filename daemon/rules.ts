/*
 * What the machine itself decides, pure: the bound fields of an envelope, its place in what the ledger remembers, whether an accepted
 * command may start, and what a restart goes on with. The gate asks these about real bytes, the simulation about modelled ones.
 */
import type { EnvelopeRefusal, MachineRefusal } from '../helpers/protocol/errors.ts';
import type { CommandEnvelope } from '../helpers/protocol/statements.ts';
import type { ExecutionInput } from '../machines/command/types.ts';
import type { CommandMemory, LedgerMemory } from './ledger/memory.ts';
import type { CommandFacts, Ended } from './ledger/records.ts';

/** How far a fence may run ahead of the highest one seen: more is a mistake or an attack (S-206). */
export const FENCE_JUMP_LIMIT = 1_048_576;

/** Fields of an envelope that this machine compares with what it knows. */
export type BoundFields = Pick<
  CommandEnvelope,
  | 'protocolVersion'
  | 'executor'
  | 'epoch'
  | 'capabilityRevision'
  | 'catalogueDigest'
  | 'policyDigest'
  | 'mode'
  | 'maximumRuntimeMs'
  | 'notBefore'
  | 'expiresAt'
  | 'fence'
>;

/** What this machine knows when it compares them. */
export interface Bounds {
  readonly protocolVersion: number;
  readonly executor: string;
  readonly epoch: number;
  /** Revision and policy that a person confirmed last; absent while none is confirmed. */
  readonly confirmed: { readonly revision: number; readonly policyDigest: Uint8Array } | undefined;
  readonly catalogueDigest: Uint8Array;
  /** Longest runtime that the owner permits now, in ms. */
  readonly runtimeMs: number;
  readonly highFence: number;
  /** ms since the Unix epoch. */
  readonly now: number;
}

/** The first bound field that differs, by its own code. */
export function checkBounds(envelope: BoundFields, known: Bounds): EnvelopeRefusal | undefined {
  if (envelope.protocolVersion !== known.protocolVersion) return 'PROTOCOL_VERSION_UNSUPPORTED';
  if (envelope.executor !== known.executor) return 'EXECUTOR_MISMATCH';
  if (envelope.epoch !== known.epoch) return 'EPOCH_STALE';
  if (!known.confirmed || envelope.capabilityRevision !== known.confirmed.revision) return 'DESCRIPTOR_STALE';
  if (!isEqual(envelope.catalogueDigest, known.catalogueDigest)) return 'CATALOGUE_MISMATCH';
  if (!isEqual(envelope.policyDigest, known.confirmed.policyDigest)) return 'POLICY_STALE';
  if (envelope.mode !== 'foreground') return 'MODE_UNSUPPORTED';
  if (envelope.maximumRuntimeMs > known.runtimeMs) return 'RUNTIME_EXCEEDED';
  if (envelope.notBefore > known.now) return 'COMMAND_NOT_YET_VALID';
  if (envelope.expiresAt <= known.now) return 'COMMAND_EXPIRED';
  return envelope.fence > known.highFence + FENCE_JUMP_LIMIT ? 'FENCE_STALE' : undefined;
}

/** Whether a command was here before, in whole or by one of the things that are its own; `repeat` is the same one again. */
export function checkReplay(facts: CommandFacts, memory: LedgerMemory): EnvelopeRefusal | 'repeat' | undefined {
  const earlier = memory.commands.get(facts.command);
  if (earlier) return isEqual(earlier.facts.envelopeDigest, facts.envelopeDigest) ? 'repeat' : 'COMMAND_ID_REUSED';
  if (memory.byIdempotencyKey(facts.idempotencyKey)) return 'IDEMPOTENCY_CONFLICT';
  const tie = memory.tieOf(facts.binding);
  if (tie && tie.run !== facts.run) return 'COMMAND_RUN_INVALID';
  const run = memory.runs.get(facts.run);
  if (!run) return undefined;
  if (!isEqual(run.originDigest, facts.originDigest)) return 'COMMAND_ORIGIN_INVALID';
  if (facts.agent !== null && run.agent !== null && facts.agent !== run.agent) return 'COMMAND_ORIGIN_INVALID';
  const bound = run.bindings.get(facts.operation);
  if (bound === undefined) return undefined;
  if (bound.binding !== facts.binding) return 'BINDING_INVALID';
  return bound.fence === facts.fence ? undefined : 'FENCE_STALE';
}

/** What is asked of an accepted command at the moment of its start. */
export interface StartFacts {
  /** False after the machine slept: nothing starts before a new session. */
  readonly anchored: boolean;
  readonly epoch: number;
  readonly now: number;
  /** By the confirmed policy and the one of this moment, both (D-22). */
  readonly permitted: boolean;
}

/** Whether an accepted command may start now: asked again, because a withdrawal may have come in between (N-103). */
export function checkStart(
  facts: Pick<CommandFacts, 'epoch' | 'expiresAt'>,
  known: StartFacts,
): EnvelopeRefusal | MachineRefusal | undefined {
  if (!known.anchored) return 'CONTROL_SILENT';
  if (facts.epoch !== known.epoch) return 'EPOCH_STALE';
  if (facts.expiresAt <= known.now) return 'COMMAND_EXPIRED';
  return known.permitted ? undefined : 'LOCAL_POLICY_DENIED';
}

/** Whether a restart goes on with a command: a refusal that was not countersigned is sent again, an unknown outcome is never sent. */
export function isOpen(command: CommandMemory): boolean {
  if (command.phase === 'acknowledged' || command.phase === 'reserved') return false;
  return !(command.phase === 'ended' && command.ended?.outcome === 'unknown');
}

/** Input of a command's machine after a restart, from what the ledger remembers of it. */
export function recalled(command: CommandMemory): ExecutionInput {
  switch (command.phase) {
    case 'accepted':
      return inputOf(command.facts, 'accepted-pending');
    case 'started':
      return inputOf(command.facts, 'executing');
    case 'refused':
    case 'ended':
    case 'reserved':
    case 'acknowledged': {
      const replaced =
        command.receipts.length > 1 &&
        command.receipts.at(-1)?.type === 'machine.refused' &&
        command.receipts.some(({ type }) => type === 'machine.result');
      const ended = command.ended ?? { outcome: 'refused', code: null, resultDigest: null };
      return inputOf(command.facts, 'result-pending', ended, replaced);
    }
  }
}

/** Input of a command's machine. */
export function inputOf(
  facts: CommandFacts,
  phase: ExecutionInput['phase'],
  ended: Ended | null = null,
  replaced = false,
): ExecutionInput {
  return {
    commandId: facts.command,
    runId: facts.run,
    operation: facts.operation,
    envelopeDigest: hex(facts.envelopeDigest),
    epoch: facts.epoch,
    maximumRuntimeMs: facts.maximumRuntimeMs,
    phase,
    ended: ended && { ...ended, resultDigest: ended.resultDigest && hex(ended.resultDigest) },
    replaced,
    cancelled: false,
  };
}

/** Whether two strings of bytes are the same. What is compared here is public, so time tells nothing. */
export function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}
