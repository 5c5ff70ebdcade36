import type { PayloadRules } from '../trace/redact.ts';

/** What a trace may show of the lifecycle's events: all of it is identity and state. */
export const executorPayload: PayloadRules = {
  'xstate.init': { input: { executorId: 'kept' } },
  'pairing.confirmed': { fingerprint: 'kept' },
  'executor.proved': { fingerprint: 'kept' },
  'executor.damaged': { fault: 'kept' },
  'executor.disconnect': { by: 'kept' },
};
