import assert from 'node:assert/strict';
import { promotionMachine } from '../../../machines/promotion/machine.ts';
import { begin, step } from '../../../machines/step.ts';
import { failureCodes } from '../../../helpers/protocol/operations.ts';
import { stateName } from '../../../server/commands/rules.ts';
import { applyOutcome, changedFact, promotionEvents } from '../../../server/drafts/rules.ts';
import type { CommandState, PromotionFacts } from '../../../server/drafts/rules.ts';

const facts: PromotionFacts = {
  reviewDigest: 'r',
  manifestDigest: 'm',
  run: 'run',
  person: 'per',
  agent: 'agt',
  authorizationRevision: 3,
  granted: true,
  policyDigest: 'p',
};
const manifestDigest = 'm';

describe('rules of promotions', () => {
  it('each of the eight facts by itself is named when it changes, and none when all stand', () => {
    assert.equal(changedFact(facts, facts), undefined);
    const codes = (Object.keys(facts) as (keyof PromotionFacts)[]).map((fact) => {
      const changed = { ...facts, [fact]: fact === 'granted' ? false : fact === 'authorizationRevision' ? 4 : 'other' };
      return changedFact(facts, changed);
    });
    assert.equal(new Set(codes).size, 8);
    assert.ok(!codes.includes(undefined));
    assert.equal(
      changedFact({ ...facts, policyDigest: undefined }, { ...facts, policyDigest: undefined }),
      'PROMOTION_POLICY_CHANGED',
    );
  });

  const ends: Record<string, { command: Partial<CommandState>; outcome: string }> = {
    'a success with the approved manifest': {
      command: { outcome: 'succeeded', appliedManifest: 'm' },
      outcome: 'promoted',
    },
    'a success with another manifest': { command: { outcome: 'succeeded', appliedManifest: 'n' }, outcome: 'failed' },
    'a conflict': { command: { outcome: 'failed', code: 'PROMOTION_CONFLICT' }, outcome: 'rolled-back' },
    'a stale review': { command: { outcome: 'failed', code: 'PROMOTION_REVIEW_STALE' }, outcome: 'refused' },
    'a damaged journal': { command: { outcome: 'failed', code: 'PROMOTION_JOURNAL_INVALID' }, outcome: 'failed' },
    'a refusal of the machine’s gate': {
      command: { outcome: 'refused', code: 'LOCAL_POLICY_DENIED' },
      outcome: 'refused',
    },
    'a cancel before the start': { command: { outcome: 'cancelled', code: null }, outcome: 'cancelled' },
    'a time that ran out before the start': { command: { outcome: 'expired', code: null }, outcome: 'expired' },
    'an unknown outcome': { command: { outcome: 'unknown' }, outcome: 'unknown' },
  };
  for (const confirmation of ['page', 'machine'] as const) {
    for (const [what, { command, outcome }] of Object.entries(ends)) {
      it(`${what} of its command ends a promotion confirmed on the ${confirmation} as ${outcome}`, () => {
        let { stored } = begin(promotionMachine, {
          promotionId: 'p',
          runId: 'r',
          executorId: 'e',
          reviewDigest: 'r',
          manifestDigest,
          confirmation,
        });
        const take = (event: Parameters<typeof step<typeof promotionMachine>>[2]): void => {
          const stepped = step(promotionMachine, stored, event);
          assert.ok(stepped.ok, `${event.type} in ${stateName(stored.value)}`);
          stored = stepped.stored;
        };
        take({ type: 'promotion.approve', reviewDigest: 'r', manifestDigest, approvalDigest: 'a' });
        take({ type: 'promotion.dispatched', commandId: 'c' });
        const told: CommandState = {
          state: String(command.outcome),
          outcome: null,
          code: null,
          appliedManifest: undefined,
          ...command,
        };
        for (const event of promotionEvents({ state: stateName(stored.value), confirmation, manifestDigest }, told))
          take(event);
        assert.equal(stored.value, outcome);
      });
    }
  }

  it('a start seen before the end leads to the same ends', () => {
    for (const confirmation of ['page', 'machine'] as const) {
      for (const code of failureCodes) {
        let { stored } = begin(promotionMachine, {
          promotionId: 'p',
          runId: 'r',
          executorId: 'e',
          reviewDigest: 'r',
          manifestDigest,
          confirmation,
        });
        const events = [
          { type: 'promotion.approve', reviewDigest: 'r', manifestDigest, approvalDigest: 'a' },
          { type: 'promotion.dispatched', commandId: 'c' },
        ] as const;
        const takeAll = (all: readonly Parameters<typeof step<typeof promotionMachine>>[2][]): void => {
          for (const event of all) {
            const stepped = step(promotionMachine, stored, event);
            assert.ok(stepped.ok, `${event.type} in ${stateName(stored.value)}`);
            stored = stepped.stored;
          }
        };
        takeAll(events);
        const where = () => ({ state: stateName(stored.value), confirmation, manifestDigest });
        takeAll(promotionEvents(where(), { state: 'started', outcome: null, code: null, appliedManifest: undefined }));
        assert.equal(stored.value, confirmation === 'page' ? 'applying' : 'awaiting-machine');
        takeAll(promotionEvents(where(), { state: 'failed', outcome: 'failed', code, appliedManifest: undefined }));
        assert.equal(stored.value, applyOutcome(code));
      }
    }
  });
});
