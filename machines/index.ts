/*
 * Package entry `nessie-executor/machines`: every machine of the product, pure, with what is needed to step, simulate and replay one.
 */
export { executionMachine } from './command/execution.ts';
export { commandMachine } from './command/machine.ts';
export type * from './command/types.ts';
export { daemonMachine } from './daemon/machine.ts';
export type {
  Connect,
  ConnectAnswer,
  DaemonContext,
  DaemonEmitted,
  DaemonEvent,
  DaemonFault,
  DaemonInput,
  DaemonOutput,
  OpenLedger,
  RecoverPromotion,
  ReleaseLease,
  ReportFault,
  StopCause,
  StopGuests,
} from './daemon/types.ts';
export { descriptorReviewMachine } from './descriptor-review/machine.ts';
export type * from './descriptor-review/types.ts';
export { executorMachine } from './executor/machine.ts';
export type * from './executor/types.ts';
export type { Permit, StateMeta } from './meta.ts';
export { joiningMachine } from './pairing/joining.ts';
export { pairingMachine } from './pairing/machine.ts';
export type * from './pairing/types.ts';
export { promotionMachine } from './promotion/machine.ts';
export type * from './promotion/types.ts';
export { traced } from './registry.ts';
export type { Traced } from './registry.ts';
export { begin, step } from './step.ts';
export type { NamedAction, Stepped, StepRefusal, Stored } from './step.ts';
export { explain } from './trace/diff.ts';
export { formatLine, parseTrace, TRACE_VERSION, TraceError } from './trace/format.ts';
export type { Json, TraceLine, TraceState } from './trace/format.ts';
export { toMermaid } from './trace/mermaid.ts';
export { toOtel } from './trace/otel.ts';
export type { OtelTraces } from './trace/otel.ts';
export { emptyRecording, recordEvent, recordInspection } from './trace/record.ts';
export type { Recorded, Recording } from './trace/record.ts';
export type { Digester, PayloadRules, Rule } from './trace/redact.ts';
export { replay } from './trace/replay.ts';
export type { Difference, Replay } from './trace/replay.ts';
export { tell } from './trace/tell.ts';
export { choicesOf, placeOf, takeStep, traceOfWalk, undoStep, walkOf } from './trace/walk.ts';
export type { Choice, Place, Untaken, Walk } from './trace/walk.ts';
export { Unprovided } from './unprovided.ts';
export type { Digest, Gate, KnownOutcome, Outcome, Refused } from './values.ts';
