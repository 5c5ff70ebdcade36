import assert from 'node:assert/strict';
import { operations } from '../../../helpers/protocol/operations.ts';
import { commandMachine } from '../../../machines/command/machine.ts';
import type { CommandEvent } from '../../../machines/command/types.ts';
import { begin, step } from '../../../machines/step.ts';
import {
  commandTimes,
  isOpen,
  judgeFrame,
  refusedOutcome,
  stateName,
  stillHolds,
} from '../../../server/commands/rules.ts';
import { judgePast, nothingRemembered, remember, standingOf } from '../../../server/channel/rules.ts';
import { channelTimes } from '../../../server/protocol.ts';

describe('rules of commands', () => {
  it('deadlines of every operation come in their order: work on the machine, command, tool', () => {
    for (const operation of operations) {
      for (const limitMs of [1000, 30_000, 300_000]) {
        const { runtimeMs, lifetimeMs, toolMs } = commandTimes(operation, limitMs);
        assert.ok(runtimeMs > 0 && runtimeMs < lifetimeMs && lifetimeMs < toolMs, operation.key);
        assert.ok(runtimeMs <= limitMs);
      }
    }
    const { controlHoldMs, controlSilenceStepMs, heartbeatMs, workHoldMs, offlineMs } = channelTimes;
    const order = [controlHoldMs, controlSilenceStepMs, heartbeatMs, workHoldMs, offlineMs];
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
  });

  it('a refused result that is replaced late, after its connection broke, is a failure and no refusal', () => {
    const events: CommandEvent[] = [
      { type: 'command.lease', epoch: 1, envelopeDigest: 'e', receiptDigest: 'l' },
      { type: 'receipt.accepted', epoch: 1, previousDigest: 'l', receiptDigest: 'a' },
      { type: 'receipt.started', epoch: 1, previousDigest: 'a', receiptDigest: 's' },
      { type: 'result.unacceptable', epoch: 1, previousDigest: 's', receiptDigest: 'r', code: 'RESULT_INVALID' },
      { type: 'connection.lost', epoch: 1 },
    ];
    let { stored } = begin(commandMachine, { commandId: 'c', executorId: 'x' });
    for (const event of events) {
      const stepped = step(commandMachine, stored, event);
      assert.ok(stepped.ok);
      stored = stepped.stored;
    }
    const chain = [
      { type: 'control.leased', digest: 'l' },
      { type: 'machine.accepted', digest: 'a' },
      { type: 'machine.started', digest: 's' },
      { type: 'machine.result', digest: 'r' },
    ];
    const replaced = { type: 'machine.refused', code: 'RESULT_REFUSED', digest: 'n', previous: 'r' } as const;
    const from = { epoch: 2, unacceptable: null, failure: null };
    const judged = judgeFrame({ stored, epoch: 1, chain }, [replaced], from, (before, event) =>
      step(commandMachine, before, event),
    );
    assert.equal(judged.is === 'taken' && judged.stored.value, 'failed');
  });

  it('an envelope holds only while every fact that it was built from does', () => {
    const facts = { epoch: 1, confirmedRevision: 2, confirmedPolicyDigest: 'p', catalogueDigest: 'c', runtimeMs: 3 };
    assert.ok(stillHolds(facts, { ...facts }));
    const others = { epoch: 2, confirmedRevision: 3, confirmedPolicyDigest: 'q', catalogueDigest: 'd', runtimeMs: 4 };
    for (const [fact, other] of Object.entries(others))
      assert.ok(!stillHolds(facts, { ...facts, [fact]: other }), fact);
  });

  it('a code of the machine says whether it refused, was told to stop, or came too late', () => {
    assert.equal(refusedOutcome('CANCELLED_BEFORE_START'), 'cancelled');
    assert.equal(refusedOutcome('COMMAND_EXPIRED'), 'expired');
    assert.equal(refusedOutcome('LOCAL_POLICY_DENIED'), 'refused');
  });

  it('a nested state is named by its path, and unknown is not open', () => {
    assert.equal(stateName({ cancelling: 'started' }), 'cancelling.started');
    assert.equal(stateName(undefined), '');
    assert.ok(isOpen('cancelling.started') && isOpen('replacing') && !isOpen('unknown') && !isOpen('failed'));
  });
});

describe('rules of a machine’s past', () => {
  const known = { ledgerCount: 5, ledgerHead: 'h5', guard: 10 };
  const honest = { guard: 11, ledgerCount: 7, ledgerHead: 'h7', acknowledgedCount: 5, acknowledgedHead: 'h5' };
  const cases: Record<string, { stated: Partial<typeof honest>; verdict: string | undefined }> = {
    'a continuation is believed': { stated: {}, verdict: undefined },
    'the very head is believed': { stated: { ledgerCount: 5, ledgerHead: 'h5' }, verdict: undefined },
    'a shorter ledger is an old copy': {
      stated: { ledgerCount: 4, ledgerHead: 'h4', acknowledgedCount: 4, acknowledgedHead: 'h4' },
      verdict: 'ledger-behind',
    },
    'another head at the same count is a fork': {
      stated: { ledgerCount: 5, ledgerHead: 'x5', acknowledgedHead: 'x5' },
      verdict: 'ledger-forked',
    },
    'another head at the acknowledged count is a fork': {
      stated: { acknowledgedHead: 'x5' },
      verdict: 'ledger-forked',
    },
    'an answer to another count is none': {
      stated: { acknowledgedCount: 0, acknowledgedHead: 'h0' },
      verdict: 'ledger-forked',
    },
    'a counter that stands still is a clone': { stated: { guard: 10 }, verdict: 'ledger-forked' },
    'a counter that goes backwards is a clone': { stated: { guard: 3 }, verdict: 'ledger-forked' },
  };
  for (const [what, { stated, verdict }] of Object.entries(cases)) {
    it(what, () => assert.equal(judgePast({ ...honest, ...stated }, known, 5), verdict));
  }

  it('what is remembered only grows', () => {
    assert.deepEqual(remember(known, { guard: 3, ledgerCount: 4, ledgerHead: 'h4' }), known);
    assert.deepEqual(remember(known, { guard: 12 }), { ...known, guard: 12 });
    assert.deepEqual(remember(nothingRemembered, { guard: 1, ledgerCount: 1, ledgerHead: 'h1' }), {
      guard: 1,
      ledgerCount: 1,
      ledgerHead: 'h1',
    });
  });

  it('a control answer says what an executor may expect', () => {
    const row = { state: 'online', epoch: 4, accepting: true };
    assert.equal(standingOf(row, 4), 'accepting');
    assert.equal(standingOf({ ...row, accepting: false }, 4), 'paused');
    assert.equal(standingOf({ ...row, state: 'draining' }, 4), 'draining');
    for (const state of ['offline', 'error', 'pending_pairing'])
      assert.equal(standingOf({ ...row, state }, 4), 'fenced');
    assert.equal(standingOf(row, 3), 'fenced');
    assert.equal(standingOf({ ...row, state: 'revoked' }, 3), 'revoked');
  });
});
