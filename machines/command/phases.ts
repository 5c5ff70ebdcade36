/*
 * Types, actors, actions and guards of an execution, and the transitions that several of its states share. The invariants that they
 * keep are stated in execution.ts.
 */
import { assign, emit, setup } from 'xstate';
import { declared } from '../meta.ts';
import type { Permit, StateMeta } from '../meta.ts';
import { unprovided } from '../unprovided.ts';
import type { Outcome } from '../values.ts';
import type {
  AskOutcome,
  CheckGate,
  DeliverResult,
  Ended,
  ExecutionCode,
  ExecutionContext,
  ExecutionEmitted,
  ExecutionEvent,
  ExecutionInput,
  ExecutionOutput,
  Phase,
  RecordPhase,
  RecordReplacement,
  RecordResult,
  RunOperation,
  StopOperation,
  StopReason,
  Verdict,
} from './types.ts';

/** Which requests each actor of an execution makes; a state that invokes one must permit them. */
export const executionRequests = {
  checkGate: ['gate.check'],
  recordPhase: ['ledger.append', 'keystore.sign'],
  runOperation: ['workspace.operate', 'workspace.difference', 'workspace.freeze', 'workspace.release', 'promote.apply'],
  stopOperation: ['workspace.cancel', 'promote.cancel'],
  askOutcome: [],
  recordResult: ['ledger.append', 'keystore.sign'],
  deliverResult: ['link.send'],
  recordReplacement: ['ledger.append', 'keystore.sign'],
} as const satisfies Record<string, readonly Permit[]>;

/** An ending before the start, by the execution itself. */
export const endedEarly = (outcome: 'refused' | 'cancelled', code: ExecutionCode): Ended => {
  return { outcome, code, resultDigest: null };
};

/** Types, actors, actions, guards and delays of an execution; execution.ts adds the states. */
export const execution = setup({
  types: declared<{
    context: ExecutionContext;
    events: ExecutionEvent;
    input: ExecutionInput;
    output: ExecutionOutput;
    emitted: ExecutionEmitted;
    meta: StateMeta;
  }>(),
  actors: {
    checkGate: unprovided<CheckGate['output'], CheckGate['input']>('checkGate'),
    recordPhase: unprovided<RecordPhase['output'], RecordPhase['input']>('recordPhase'),
    runOperation: unprovided<RunOperation['output'], RunOperation['input']>('runOperation'),
    stopOperation: unprovided<StopOperation['output'], StopOperation['input']>('stopOperation'),
    askOutcome: unprovided<AskOutcome['output'], AskOutcome['input']>('askOutcome'),
    recordResult: unprovided<RecordResult['output'], RecordResult['input']>('recordResult'),
    deliverResult: unprovided<DeliverResult['output'], DeliverResult['input']>('deliverResult'),
    recordReplacement: unprovided<RecordReplacement['output'], RecordReplacement['input']>('recordReplacement'),
  },
  actions: {
    reportPhase: emit(({ context }, phase: Phase) => ({
      type: 'execution.phase',
      commandId: context.commandId,
      phase,
    })),
    recordStarted: assign({ started: true }),
    recordEnded: assign((_, ended: Ended) => ({ ended })),
    recordVerdict: assign(({ context }, verdict: Verdict) => {
      if (verdict.permitted) return { ended: context.ended };
      return { ended: { outcome: verdict.outcome, code: verdict.code, resultDigest: null } };
    }),
    recordGateFailure: assign({ ended: endedEarly('refused', 'GATE_UNAVAILABLE') }),
    recordLedgerFailure: assign({ ended: endedEarly('refused', 'LEDGER_UNAVAILABLE') }),
    recordUnknown: assign({ ended: { outcome: 'unknown', code: null, resultDigest: null } }),
    recordWithdrawal: assign(({ context }, ended: Ended) => ({ withdrawn: context.withdrawn ?? ended })),
    recordWithdrawn: assign(({ context }) => {
      const ended = context.withdrawn ?? context.ended;
      // A refusal is a word about the start: once that is recorded, what ends without an effect was cancelled.
      return { ended: context.started ? { ...ended, outcome: 'cancelled' as const } : ended };
    }),
    recordStopReason: assign((_, stopReason: StopReason) => ({ stopReason })),
    recordReplaced: assign((_, answer: DeliverResult['output']) => {
      const code = answer.answer === 'refused' ? answer.code : null;
      return { replaced: true, ended: { outcome: 'failed', code, resultDigest: null } };
    }),
    recordDisconnected: assign({ connected: false, late: true }),
    recordConnected: assign({ connected: true }),
    /** Its turn came after its end was settled. */
    dropTurn: () => undefined,
    /** The helper was asked; `runOperation` or the grace decides what comes next. */
    awaitEnd: () => undefined,
  },
  guards: {
    isRecalled: ({ context }, phase: Phase) => context.recalled === phase,
    isPermitted: (_, verdict: Verdict) => verdict.permitted,
    isWithdrawn: ({ context }) => context.withdrawn !== null,
    isConnected: ({ context }) => context.connected,
    isUnknown: ({ context }) => context.ended.outcome === 'unknown',
    isClosedAs: ({ context }, end: { is: Outcome; answer: DeliverResult['output'] }) =>
      context.ended.outcome === end.is && (end.answer.answer === 'acknowledged' || context.replaced),
  },
  delays: {
    runtime: ({ context }) => context.maximumRuntimeMs,
    stopGrace: 2_000,
    redelivery: 1_000,
  },
});

/** A connection that is over; where a state must react, it names its target. */
const connectionOver = [
  { type: 'recordWithdrawal', params: endedEarly('refused', 'CONNECTION_FENCED') },
  'recordDisconnected',
] as const;

/** What each state knows of the daemon's wishes when it does not name them itself: they are kept and change no state. */
export const wishes = {
  'execution.cancel': {
    actions: { type: 'recordWithdrawal', params: endedEarly('cancelled', 'CANCELLED_BEFORE_START') },
  },
  'execution.stop': {
    actions: {
      type: 'recordWithdrawal',
      params: ({ event }: { event: Extract<ExecutionEvent, { type: 'execution.stop' }> }) =>
        endedEarly('refused', event.reason === 'control-lost' ? 'CONTROL_SILENT' : 'DAEMON_STOPPED'),
    },
  },
  'execution.fenced': { actions: connectionOver },
  'execution.connected': { actions: 'recordConnected' },
  'execution.start': { actions: 'dropTurn' },
} as const;

/** The connection ends while an ending is on its way: it goes back to waiting for one. */
export const disconnected = <Target extends string>(target: Target) => ({ target, actions: connectionOver }) as const;

/** The control plane answered: the execution closes as it ended, unless its ending was refused for the first time. */
const closedAs = <Is extends Exclude<Outcome, 'unknown'>>(is: Is) =>
  ({
    guard: {
      type: 'isClosedAs',
      params: ({ event }: { event: { output: DeliverResult['output'] } }) => ({ is, answer: event.output }),
    },
    target: `#execution.${is}`,
  }) as const;

/** Branches of an answer to a delivered ending, one for each outcome. */
export const closed = [
  closedAs('succeeded'),
  closedAs('failed'),
  closedAs('refused'),
  closedAs('cancelled'),
  closedAs('expired'),
] as const;

/** A final state; the outcome stands in the context that becomes the output. */
export const ended = (holds: string) => ({ type: 'final', meta: { holds, permits: [] } }) as const;
