import { endedRule, executionInputRule } from '../command/payload.ts';
import type { PayloadRules } from '../trace/redact.ts';

/** What a trace may show of a daemon's events; errors of actors are dropped, since they may repeat what a helper said. */
export const daemonPayload: PayloadRules = {
  'xstate.init': { input: { executorId: 'kept' } },
  'control.answered': { standing: 'kept' },
  'control.cancel': { commandId: 'kept' },
  'work.received': { execution: executionInputRule },
  'work.turn': { commandId: 'kept' },
  'role.violated': { role: 'kept' },
  'xstate.done.actor.recoverPromotion': { output: { answer: 'kept' } },
  'xstate.done.actor.openLedger': { output: { open: [executionInputRule] } },
  'xstate.done.actor.connect': { output: { answer: 'kept', epoch: 'kept' } },
  'xstate.done.actor.command-*': {
    actorId: 'kept',
    output: { ...endedRule, commandId: 'kept', runId: 'kept' },
  },
  'xstate.error.actor.command-*': { actorId: 'kept' },
};
