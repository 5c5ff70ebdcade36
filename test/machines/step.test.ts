import assert from 'node:assert/strict';

import { commandMachine } from '../../machines/command/machine.ts';
import { executorMachine } from '../../machines/executor/machine.ts';
import { begin, step } from '../../machines/step.ts';
import { Unprovided, unprovidedActions } from '../../machines/unprovided.ts';

const stored = begin(executorMachine, { executorId: 'exec-1' }).stored;

describe('one step of a stored machine', () => {
  it('survives JSON in between and names its actions with their parameters', () => {
    const next = step(executorMachine, JSON.parse(JSON.stringify(stored)) as typeof stored, {
      type: 'pairing.confirmed',
      fingerprint: 'key-a',
    });
    assert.ok(next.ok);
    assert.deepEqual(next.actions, [{ type: 'fenceConnections', params: { epoch: 1 } }]);
    assert.equal(next.stored.context.fingerprint, 'key-a');
  });

  it('refuses by the code of the machine, changing nothing', () => {
    const before = JSON.stringify(stored);
    const answer = step(executorMachine, stored, { type: 'executor.proved', fingerprint: 'key-a' });
    assert.ok(!answer.ok);
    assert.equal(answer.code, 'PAIRING_NOT_CONFIRMED');
    assert.equal(JSON.stringify(stored), before);
  });

  it('refuses a stored state of another machine, of another version, or that does not exist', () => {
    const bad = [
      { ...stored, machine: 'command' },
      { ...stored, version: '0' },
      { ...stored, value: 'suspended' },
      { ...stored, status: 'done' as const },
    ];
    for (const state of bad) {
      const answer = step(executorMachine, state, { type: 'executor.delete' });
      assert.ok(!answer.ok && answer.code === 'SNAPSHOT_INVALID', JSON.stringify(state));
    }
  });

  it('takes nothing after an end', () => {
    const queued = begin(commandMachine, { commandId: 'cmd-1', executorId: 'exec-1' }).stored;
    const cancelled = step(commandMachine, queued, { type: 'command.cancel', by: 'person' });
    assert.ok(cancelled.ok);
    assert.equal(cancelled.stored.status, 'done');
    assert.equal(cancelled.stored.output?.outcome, 'cancelled');
    const again = step(commandMachine, cancelled.stored, { type: 'command.cancel', by: 'person' });
    assert.ok(!again.ok && again.code === 'STATE_TRANSITION_INVALID');
  });
});

describe('what is not provided', () => {
  it('throws its own name when it is executed', () => {
    const { settle } = unprovidedActions<{ settle: undefined }>({ settle: true });
    assert.throws(
      () => settle({}, undefined),
      (error) => error instanceof Unprovided && error.missing === 'settle',
    );
  });
});
