import assert from 'node:assert/strict';

import { silenced, steps } from '../../../helpers/build/passes.ts';
import { parseTrace } from '../../../machines/trace/format.ts';
import { stateWords, tell } from '../../../machines/trace/tell.ts';
import { waysOf } from '../../../machines/trace/ways.ts';
import { traced } from '../../../machines/registry.ts';
import { nameOf } from '../../../machines/shape.ts';
import { traceOf } from '../../kit/trace-of.ts';
import { goldens } from '../scenarios/index.ts';

describe('the ways of a line', () => {
  for (const [id, scenarios] of Object.entries(goldens)) {
    it(`are the transitions that a live ${id} takes, on every line of every golden trace`, () => {
      const live = silenced(traced[id]!.machine);
      for (const { name, input, events } of scenarios) {
        const lines = parseTrace(traceOf({ machine: id, actor: id, input, events }));
        for (const [index, { transitions }] of steps(live, input, events).entries()) {
          const led = transitions.flatMap(({ source, eventType, target }) =>
            (target ?? []).map((goal) => ({ from: nameOf(source), event: eventType, to: nameOf(goal) })),
          );
          // What xstate calls the transition into the beginning has no event of ours.
          const wanted = led.filter(({ event }) => event !== 'xstate.init');
          assert.deepEqual(waysOf(lines[index]!), wanted, `${name}, line ${index + 1}`);
        }
      }
    });
  }

  it('are none for a machine that this program does not have, however it is called', () => {
    const [line] = parseTrace(
      traceOf({ machine: 'pairing', actor: 'a', input: goldens['pairing']![0]!.input, events: [] }),
    );
    for (const machine of ['other', '__proto__', 'toString']) assert.deepEqual(waysOf({ ...line!, machine }), []);
  });
});

describe('a line in words', () => {
  const lines = (id: string, name: string) => {
    const golden = goldens[id]!.find((one) => one.name === name)!;
    return parseTrace(traceOf({ machine: id, actor: id, input: golden.input, events: golden.events })).map(tell);
  };

  it('says what came, where it led, what was asked for, and the end', () => {
    assert.deepEqual(lines('command', 'queued-cancelled'), [
      'It begins in queued.',
      'command.cancel came (by person): it goes from queued to cancelled. That is its end. It asks for tellWaiter.',
    ]);
    const told = lines('daemon', 'lost-while-silent').join('\n');
    assert.match(
      told,
      /^recoverPromotion was done \(answer settled\): it goes from recovering\.settling to recovering\.reading\./m,
    );
    assert.match(told, /^The delay controlSilence passed: it goes from online\.heard to online\.unheard\./m);
    assert.match(told, /an end of the actor connect/);
  });

  it('says that something was refused', () => {
    assert.match(
      lines('executor', 'refuses-what-comes-too-early-or-twice').join('\n'),
      /^executor\.proved came \(fingerprint \S+\) in pending_pairing: that is refused, and nothing changes\.$/m,
    );
  });

  it('names a state by its path', () => {
    assert.equal(stateWords({ online: 'heard' }), 'online.heard');
    assert.equal(stateWords('queued'), 'queued');
  });
});
