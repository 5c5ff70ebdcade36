import type { PayloadRules } from '../trace/redact.ts';

/** What a trace may show of a promotion's events: ids, digests and outcomes; no path is ever in one. */
export const promotionPayload: PayloadRules = {
  'xstate.init': {
    input: {
      promotionId: 'kept',
      runId: 'kept',
      executorId: 'kept',
      reviewDigest: 'kept',
      manifestDigest: 'kept',
      confirmation: 'kept',
    },
  },
  'promotion.approve': { reviewDigest: 'kept', manifestDigest: 'kept', approvalDigest: 'kept' },
  'promotion.withdrawn': { code: 'kept' },
  'promotion.dispatched': { commandId: 'kept' },
  'promotion.machine-confirmed': { manifestDigest: 'kept' },
  'promotion.ended': { outcome: 'kept', code: 'kept', manifestDigest: 'kept' },
  'promotion.cancel': { by: 'kept' },
};
