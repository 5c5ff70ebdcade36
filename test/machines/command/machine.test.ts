import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import { commandMachine } from '../../../machines/command/machine.ts';
import type { CommandEvent } from '../../../machines/command/types.ts';
import { begin, step } from '../../../machines/step.ts';
import type { Stepped, StepRefusal, Stored } from '../../../machines/step.ts';

type State = Stored<typeof commandMachine>;

const EPOCH = 7;
const lease: CommandEvent = {
  type: 'command.lease',
  epoch: EPOCH,
  envelopeDigest: 'envelope',
  receiptDigest: 'leased',
};
const accepted: CommandEvent = {
  type: 'receipt.accepted',
  epoch: EPOCH,
  previousDigest: 'leased',
  receiptDigest: 'accepted',
};
const started: CommandEvent = {
  type: 'receipt.started',
  epoch: EPOCH,
  previousDigest: 'accepted',
  receiptDigest: 'started',
};
const ending = <Outcome extends string>(outcome: Outcome) => ({ outcome, code: null, receiptDigest: 'result' });
const result = (outcome: 'succeeded' | 'failed' | 'cancelled' | 'expired'): CommandEvent => {
  return { type: 'result.received', epoch: EPOCH, previousDigest: 'started', ending: ending(outcome) };
};
const notStarted = (outcome: 'refused' | 'cancelled' | 'expired', previousDigest: string): CommandEvent => {
  return { type: 'receipt.not-started', epoch: EPOCH, previousDigest, ending: ending(outcome) };
};
const unacceptable: CommandEvent = {
  type: 'result.unacceptable',
  epoch: EPOCH,
  previousDigest: 'started',
  receiptDigest: 'result',
  code: 'RESULT_TOO_LARGE',
};
const replaced: CommandEvent = {
  type: 'result.replaced',
  epoch: EPOCH,
  previousDigest: 'result',
  receiptDigest: 'replacement',
};
const cancel: CommandEvent = { type: 'command.cancel', by: 'person' };
const expired: CommandEvent = { type: 'command.expired' };
const lost: CommandEvent = { type: 'connection.lost', epoch: EPOCH };
const late = (leasedDigest: string, acceptedDigest: string | null): CommandEvent => {
  return { type: 'receipt.late', leasedDigest, acceptedDigest, ending: ending('succeeded') };
};
const dispatchRefused: CommandEvent = { type: 'command.refused', code: 'offline' };

const events = {
  lease,
  accepted,
  started,
  result: result('succeeded'),
  'not-started after leased': notStarted('refused', 'leased'),
  'not-started after accepted': notStarted('refused', 'accepted'),
  unacceptable,
  replaced,
  cancel,
  expired,
  lost,
  late: late('leased', 'accepted'),
  'dispatch refused': dispatchRefused,
} as const satisfies Record<string, CommandEvent>;

const queued = (): State => begin(commandMachine, { commandId: 'cmd-1', executorId: 'exec-1' }).stored;

function after(...taken: readonly CommandEvent[]): State {
  return taken.reduce((stored, event) => {
    const next = step(commandMachine, stored, event);
    assert.ok(next.ok, `${event.type}: ${next.ok ? '' : next.code}`);
    return next.stored;
  }, queued());
}

const states: { readonly [state: string]: () => State } = {
  queued,
  leased: () => after(lease),
  accepted: () => after(lease, accepted),
  started: () => after(lease, accepted, started),
  'cancelling.leased': () => after(lease, cancel),
  'cancelling.accepted': () => after(lease, accepted, cancel),
  'cancelling.started': () => after(lease, accepted, started, cancel),
  replacing: () => after(lease, accepted, started, unacceptable),
  unknown: () => after(lease, accepted, started, lost),
  succeeded: () => after(lease, accepted, started, result('succeeded')),
  failed: () => after(lease, accepted, started, result('failed')),
  refused: () => after(dispatchRefused),
  cancelled: () => after(cancel),
  expired: () => after(expired),
};

/** What each state makes of each event; whatever is not named is STATE_TRANSITION_INVALID. */
const table: { readonly [state: string]: { readonly [event: string]: string } } = {
  queued: { lease: 'leased', cancel: 'cancelled', expired: 'expired', 'dispatch refused': 'refused' },
  leased: {
    accepted: 'accepted',
    'not-started after leased': 'refused',
    'not-started after accepted': 'RECEIPT_CHAIN_BROKEN',
    cancel: 'cancelling.leased',
    expired: 'unknown',
    lost: 'unknown',
  },
  accepted: {
    started: 'started',
    'not-started after leased': 'RECEIPT_CHAIN_BROKEN',
    'not-started after accepted': 'refused',
    cancel: 'cancelling.accepted',
    expired: 'unknown',
    lost: 'unknown',
  },
  started: {
    result: 'succeeded',
    unacceptable: 'replacing',
    cancel: 'cancelling.started',
    expired: 'unknown',
    lost: 'unknown',
  },
  'cancelling.leased': {
    accepted: 'cancelling.accepted',
    'not-started after leased': 'refused',
    'not-started after accepted': 'RECEIPT_CHAIN_BROKEN',
    cancel: 'ALREADY_CANCELLING',
    expired: 'unknown',
    lost: 'unknown',
  },
  'cancelling.accepted': {
    started: 'cancelling.started',
    'not-started after leased': 'RECEIPT_CHAIN_BROKEN',
    'not-started after accepted': 'refused',
    cancel: 'ALREADY_CANCELLING',
    expired: 'unknown',
    lost: 'unknown',
  },
  'cancelling.started': {
    result: 'succeeded',
    unacceptable: 'replacing',
    cancel: 'ALREADY_CANCELLING',
    expired: 'unknown',
    lost: 'unknown',
  },
  replacing: { replaced: 'failed', expired: 'unknown', lost: 'unknown' },
  unknown: { late: 'succeeded' },
};

/** `cancelling.started` for {"cancelling":"started"}. */
const valueOf = ({ value }: State): string => JSON.stringify(value).replaceAll(/["{}]/g, '').replace(':', '.');

describe('a command of the control plane', () => {
  it('R50 takes from every state exactly the events of its table', () => {
    for (const [state, make] of Object.entries(states)) {
      for (const [name, event] of Object.entries(events)) {
        const next = step(commandMachine, make(), event);
        const expected = table[state]?.[name] ?? 'STATE_TRANSITION_INVALID';
        assert.equal(next.ok ? valueOf(next.stored) : next.code, expected, `${name} in ${state}`);
      }
    }
  });

  it('N-107 passes leased, accepted, started and the countersigned result, and refuses every receipt out of order, unknown or foreign', () => {
    const receipts = [
      accepted,
      started,
      result('succeeded'),
      notStarted('cancelled', 'leased'),
      unacceptable,
      replaced,
    ];
    for (const [state, make] of Object.entries(states)) {
      for (const receipt of receipts) {
        for (const wrong of [
          { ...receipt, epoch: EPOCH + 1 },
          { ...receipt, epoch: EPOCH - 1 },
          { ...receipt, previousDigest: 'a receipt that nobody made' },
        ]) {
          // One of the three is changed in a field that every receipt has.
          const next = step(commandMachine, make(), wrong as CommandEvent);
          assert.ok(!next.ok, `${receipt.type} in ${state}`);
        }
      }
    }
    const actions: string[][] = [];
    let state = queued();
    for (const event of [lease, accepted, started, result('succeeded')]) {
      const next: Stepped<typeof commandMachine> | StepRefusal = step(commandMachine, state, event);
      assert.ok(next.ok);
      actions.push(next.actions.map(({ type }) => type));
      state = next.stored;
    }
    assert.deepEqual(actions, [[], [], [], ['countersign', 'tellWaiter']]);
  });

  it('R58 is not touched by the late end of an older connection', () => {
    for (const state of ['leased', 'accepted', 'started', 'cancelling.started']) {
      const next = step(commandMachine, states[state]!(), { type: 'connection.lost', epoch: EPOCH - 1 });
      assert.ok(!next.ok && next.code === 'CONNECTION_FENCED');
    }
  });

  it('R59 is lost in every state that is not an end when the connection that leased it ends', () => {
    const open = Object.entries(states).filter(([, make]) => make().status !== 'done');
    const leased = Object.keys(table).filter((state) => table[state]?.['lost'] !== undefined);
    assert.equal(leased.length + 2, open.length, 'all that is open but queued and unknown');
    const reached = leased.map((state) => {
      const next = step(commandMachine, states[state]!(), lost);
      return next.ok ? `${valueOf(next.stored)}, ${next.stored.context.unknownBecause}` : next.code;
    });
    assert.deepEqual(new Set(reached), new Set(['unknown, connection-lost']));
  });

  it('is settled once after unknown, by a chain of its own lease alone', () => {
    const unknown = states['unknown']!();
    for (const foreign of [late('another lease', 'accepted'), late('leased', 'another'), late('leased', null)]) {
      const next = step(commandMachine, unknown, foreign);
      assert.ok(!next.ok && next.code === 'RECEIPT_CHAIN_BROKEN');
    }
    const settled = step(commandMachine, unknown, late('leased', 'accepted'));
    assert.ok(settled.ok);
    assert.deepEqual([settled.stored.output?.outcome, settled.stored.output?.late], ['succeeded', true]);
    const again = step(commandMachine, settled.stored, late('leased', 'accepted'));
    assert.ok(!again.ok && again.code === 'STATE_TRANSITION_INVALID');
  });

  it('settles what was only leased by a chain that accepted it later, in a connection that nobody heard', () => {
    const unknown = after(lease, expired);
    assert.ok(step(commandMachine, unknown, late('leased', 'accepted')).ok);
    assert.ok(step(commandMachine, unknown, late('leased', null)).ok);
  });

  it('is a success though somebody wanted it cancelled, if it had succeeded', () => {
    const ended = after(lease, accepted, started, cancel, result('succeeded'));
    assert.equal(ended.output?.outcome, 'succeeded');
    assert.equal(ended.context.cancelledBy, 'person');
  });

  it('says which side refused', () => {
    assert.equal(after(dispatchRefused).output?.gate, 'control-plane');
    assert.equal(after(lease, notStarted('refused', 'leased')).output?.gate, 'machine');
    assert.equal(after(lease, accepted, started, result('failed')).output?.gate, null);
  });

  it('R53 has one end, whatever result, cancel, expiry and loss come in whatever order', () => {
    const all = Object.values(events);
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...all), { maxLength: 30 }), (sequence) => {
        let state = queued();
        let told = 0;
        for (const event of sequence) {
          const next = step(commandMachine, state, event);
          if (!next.ok) continue;
          assert.equal(state.status, 'active', 'no end is ever left');
          if (state.value === 'unknown') assert.equal(event.type, 'receipt.late');
          told += next.actions.filter(({ type }) => type === 'tellWaiter').length;
          state = next.stored;
        }
        assert.ok(told <= (state.context.unknownBecause === null ? 1 : 2));
        assert.equal(state.status === 'done', state.output !== null);
      }),
    );
  });
});
