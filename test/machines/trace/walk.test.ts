import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import { replay } from '../../../machines/trace/replay.ts';
import { stateWords } from '../../../machines/trace/tell.ts';
import { choicesOf, placeOf, takeStep, traceOfWalk, undoStep, walkOf } from '../../../machines/trace/walk.ts';
import type { Choice, Walk } from '../../../machines/trace/walk.ts';
import { traced } from '../../../machines/registry.ts';
import { below, namesIn } from '../../../machines/shape.ts';
import { shapeOf } from '../walk.ts';

const digest = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

function taken(walk: Walk, event: Choice['event']): Walk {
  const next = takeStep(walk, event, digest);
  assert.ok(next.ok, next.ok ? '' : next.why);
  return next.walk;
}

/** States that are passed at once and never stood in. */
const PASSED: { readonly [machine: string]: readonly string[] } = {
  pairing: ['requested'],
  joining: ['starting', 'closing'],
  execution: ['recalling'],
};

/** Every state of a machine in which it can stand. */
function statesOf(machine: string): string[] {
  const all = below(traced[machine]!.machine.root).map(({ path }) => path.join('.'));
  return all.filter((name) => PASSED[machine]?.includes(name) !== true);
}

/** Every walk that leads somewhere that no shorter one led to, while some state was not reached yet. */
function explored(machine: string, visit: (walk: Walk, choices: readonly Choice[]) => void): Set<string> {
  const reached = new Set<string>();
  const known = new Set<string>();
  const all = statesOf(machine);
  const waiting = [walkOf(machine)];
  for (let walk = waiting.shift(); walk !== undefined && known.size < 2_000; walk = waiting.shift()) {
    const choices = choicesOf(walk);
    visit(walk, choices);
    if (all.every((name) => reached.has(name))) break;
    for (const { event } of choices) {
      const next = taken(walk, event);
      const last = next.steps.at(-1)!;
      for (const name of namesIn(last.line.after.value)) reached.add(name);
      const snapshot = last.after.actors.get(machine)?.snapshot;
      const shape = snapshot === undefined ? JSON.stringify(last.line.after) : shapeOf(snapshot);
      if (known.has(shape)) continue;
      known.add(shape);
      waiting.push(next);
    }
  }
  return reached;
}

describe('a walk by hand', function () {
  this.timeout(20_000);

  for (const id of Object.keys(traced)) {
    it(`can come to every state of ${id} by what it offers, and each offer keeps its word`, () => {
      const reached = explored(id, (walk, choices) => {
        for (const { event, leads, outcome } of choices.slice(0, 6)) {
          const { value, status } = placeOf(taken(walk, event));
          assert.ok(value !== null);
          assert.equal(stateWords(value), leads);
          assert.equal(status !== 'active', outcome === 'ends', event.type);
        }
      });
      const missing = statesOf(id).filter((name) => !reached.has(name));
      assert.deepEqual(missing, []);
    });
  }

  it('is a trace at every moment, which replays', () => {
    let walk = walkOf('execution');
    for (let step = 0; step < 12; step += 1) {
      const choices = choicesOf(walk);
      const choice = choices[(step * 7) % Math.max(1, choices.length)];
      if (choice === undefined) break;
      walk = taken(walk, choice.event);
      assert.deepEqual(replay(traceOfWalk(walk)), { ok: true, lines: walk.steps.length, actors: 1 });
    }
    assert.ok(walk.steps.length > 3);
  });

  it('says what holds and what may be asked for, and offers only actors that run', () => {
    const walk = taken(walkOf('daemon'), choicesOf(walkOf('daemon'))[0]!.event);
    const place = placeOf(walk);
    assert.deepEqual(
      place.states.map(({ name, permits }) => [name, permits]),
      [
        ['recovering', []],
        ['recovering.settling', ['promote.recover']],
      ],
    );
    assert.match(place.states[1]!.holds, /^A promotion may stand half-way/);
    const actors = choicesOf(walk).filter(({ event }) => event.type.startsWith('xstate.done.actor.'));
    assert.deepEqual([...new Set(actors.map(({ said }) => said))], ['recoverPromotion done']);
  });

  it('takes the last step back, to the beginning and no further, and changes no walk that went before', () => {
    const first = walkOf('command');
    const second = taken(first, choicesOf(first)[0]!.event);
    const third = taken(second, { type: 'command.cancel', by: 'person' });
    assert.deepEqual(choicesOf(third), [], 'nothing comes after the end');
    assert.deepEqual(undoStep(third), second);
    assert.deepEqual(undoStep(undoStep(undoStep(third))), first);
    assert.equal(second.steps.length, 1);
  });

  it('refuses what cannot be taken with the reason, and a machine that is not there', () => {
    const first = walkOf('command');
    const begun = taken(first, choicesOf(first)[0]!.event);
    const why = (walk: Walk, type: string): string => {
      const answer = takeStep(walk, { type }, digest);
      return answer.ok ? 'taken' : answer.why;
    };
    assert.equal(why(first, 'command.cancel'), 'command.cancel comes before the beginning, which is xstate.init');
    assert.equal(why(begun, 'receipt.late'), 'receipt.late cannot be taken in queued');
    assert.equal(why(begun, 'xstate.init'), 'xstate.init cannot be taken in queued');
    const ended = taken(begun, { type: 'command.expired' });
    assert.equal(why(ended, 'command.cancel'), 'expired is the end: nothing is taken after it');
    for (const name of ['other', '__proto__', 'toString'])
      assert.throws(() => walkOf(name), /there are the machines executor, /);
  });
});
