import assert from 'node:assert/strict';
import { decideAvailability, nearestReason } from '../../../server/availability/rules.ts';
import type { AvailabilityFacts } from '../../../server/availability/rules.ts';

const all: AvailabilityFacts = {
  discoverable: true,
  granted: true,
  toolGranted: true,
  inScope: true,
  online: true,
  approved: true,
  permittedLocally: true,
};
const names = ['discoverable', 'granted', 'toolGranted', 'inScope', 'online', 'approved', 'permittedLocally'] as const;
const reasons = [
  'not_discoverable',
  'operation_ungranted',
  'logical_tool_ungranted',
  'scope_mismatch',
  'offline',
  'descriptor_unreviewed',
  'local_policy_denied',
] as const;

describe('availability rules', () => {
  it('each combination of the facts is their conjunction, with the reason of the first that is false', () => {
    for (let bits = 0; bits < 128; bits += 1) {
      const facts = Object.fromEntries(names.map((name, index) => [name, (bits & (1 << index)) === 0]));
      const first = names.findIndex((_, index) => (bits & (1 << index)) !== 0);
      const answer = decideAvailability({ ...all, ...facts });
      assert.deepEqual(answer, first === -1 ? { available: true } : { available: false, reason: reasons[first] });
    }
  });

  it('of several refusals the executor that came furthest gives the reason', () => {
    assert.equal(nearestReason([]), 'not_discoverable');
    assert.equal(nearestReason(['operation_ungranted', 'offline', 'not_discoverable']), 'offline');
  });
});
