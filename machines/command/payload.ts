import type { PayloadRules, Rule } from '../trace/redact.ts';

const ending = { outcome: 'kept', code: 'kept', receiptDigest: 'kept' } as const satisfies Rule;
const link = { epoch: 'kept', previousDigest: 'kept' } as const satisfies Rule;

/** What a trace may show of a command's events: ids, digests and outcomes; no argument and no result is ever in one. */
export const commandPayload: PayloadRules = {
  'xstate.init': { input: { commandId: 'kept', executorId: 'kept' } },
  'command.lease': { epoch: 'kept', envelopeDigest: 'kept', receiptDigest: 'kept' },
  'command.refused': { code: 'kept' },
  'receipt.accepted': { ...link, receiptDigest: 'kept' },
  'receipt.started': { ...link, receiptDigest: 'kept' },
  'receipt.not-started': { ...link, ending },
  'result.received': { ...link, ending },
  'result.unacceptable': { ...link, receiptDigest: 'kept', code: 'kept' },
  'result.replaced': { ...link, receiptDigest: 'kept' },
  'command.cancel': { by: 'kept' },
  'connection.lost': { epoch: 'kept' },
  'receipt.late': { leasedDigest: 'kept', acceptedDigest: 'kept', ending },
};

/** What a trace may show of an ending on the machine. */
export const endedRule = { outcome: 'kept', code: 'kept', resultDigest: 'kept' } as const satisfies Rule;

/** What a trace may show of an execution's input. */
export const executionInputRule = {
  commandId: 'kept',
  runId: 'kept',
  operation: 'kept',
  envelopeDigest: 'kept',
  epoch: 'kept',
  maximumRuntimeMs: 'kept',
  phase: 'kept',
  ended: endedRule,
  replaced: 'kept',
  cancelled: 'kept',
} as const satisfies Rule;

const verdict = { permitted: 'kept', outcome: 'kept', code: 'kept' } as const satisfies Rule;

/** What a trace may show of an execution's events; errors of actors are dropped, since they may repeat what a helper said. */
export const executionPayload: PayloadRules = {
  'xstate.init': { input: executionInputRule },
  'execution.stop': { reason: 'kept' },
  'xstate.done.actor.checkGate': { output: verdict },
  'xstate.done.actor.checkGateAgain': { output: verdict },
  'xstate.done.actor.operation': { output: endedRule },
  'xstate.done.actor.askOutcome': { output: endedRule },
  'xstate.done.actor.deliverResult': { output: { answer: 'kept', code: 'kept' } },
};
