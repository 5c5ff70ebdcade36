import type { PayloadRules } from '../trace/redact.ts';

/** What a trace may show of a review's events: the revision and its digest. */
export const descriptorReviewPayload: PayloadRules = {
  'xstate.init': { input: { executorId: 'kept', revision: 'kept', descriptorDigest: 'kept' } },
  'descriptor.confirm': { descriptorDigest: 'kept' },
  'descriptor.refuse': { descriptorDigest: 'kept' },
  'descriptor.arrived': { revision: 'kept', descriptorDigest: 'kept' },
};
