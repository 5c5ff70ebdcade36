/*
 * Refusals and wire errors that more than one process names. A refusal says which side and which gate refused; two causes
 * have two codes.
 */

/** Why the machine does not run an envelope; each bound field has its own code (N-108, S-202). */
export const envelopeRefusals = [
  'SIGNATURE_INVALID',
  'ENVELOPE_INVALID',
  'PROTOCOL_VERSION_UNSUPPORTED',
  'EXECUTOR_MISMATCH',
  'COMMAND_ID_REUSED',
  'COMMAND_RUN_INVALID',
  'COMMAND_ORIGIN_INVALID',
  'BINDING_INVALID',
  'FENCE_STALE',
  'EPOCH_STALE',
  'DESCRIPTOR_STALE',
  'CATALOGUE_MISMATCH',
  'POLICY_STALE',
  'OPERATION_UNKNOWN',
  'OPERATION_NOT_IMPLEMENTED',
  'OPERATION_CALLER_INVALID',
  'MODE_UNSUPPORTED',
  'RUNTIME_EXCEEDED',
  'COMMAND_NOT_YET_VALID',
  'COMMAND_EXPIRED',
  'IDEMPOTENCY_CONFLICT',
  'COMMAND_DIGEST_INVALID',
  'CONTENT_DIGEST_INVALID',
  'ARGUMENTS_INVALID',
  'LEASE_INVALID',
] as const;
export type EnvelopeRefusal = (typeof envelopeRefusals)[number];

/** Why the machine does not run a well-made envelope now. */
export const machineRefusals = [
  'LOCAL_POLICY_DENIED',
  'NOT_ACCEPTING',
  'CONTROL_SILENT',
  'CONCURRENCY_LIMIT',
  'LEDGER_UNAVAILABLE',
  'CANCELLED_BEFORE_START',
  'ROOT_UNCONFIRMED',
  'HELPER_UNAVAILABLE',
] as const;
export type MachineRefusal = (typeof machineRefusals)[number];

/** Why the control plane does not offer or dispatch an operation: the six conditions of availability and absence (N-090 to N-096). */
export const availabilityReasons = [
  'not_discoverable',
  'operation_ungranted',
  'logical_tool_ungranted',
  'scope_mismatch',
  'offline',
  'descriptor_unreviewed',
  'local_policy_denied',
] as const;
export type AvailabilityReason = (typeof availabilityReasons)[number];

/** Exit code of a process that met a protocol violation of its peer, or that saw one in itself. */
export const EXIT_PROTOCOL_VIOLATION = 64;
