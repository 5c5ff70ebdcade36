import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { metaOf } from '../../machines/shape.ts';
import { traced } from '../../machines/registry.ts';
import { expectTrace } from '../kit/index.ts';
import { traceOf } from '../kit/trace-of.ts';
import { goldens } from './scenarios/index.ts';
import { UNREACHED } from '../../helpers/build/coverage.ts';
import { namedTransitions, passed } from '../../helpers/build/passes.ts';
import { statesOf } from './walk.ts';

const folder = join(import.meta.dirname, '../traces');

describe('golden traces', () => {
  for (const [id, scenarios] of Object.entries(goldens)) {
    describe(id, () => {
      it('has one file for each scenario and no other', () => {
        const names = scenarios.map(({ name }) => `${name}.jsonl`);
        assert.equal(new Set(names).size, names.length);
        assert.deepEqual(readdirSync(join(folder, id)).toSorted(), names.toSorted());
      });

      for (const { name, tells, input, events } of scenarios) {
        it(`${name}: ${tells}`, () => {
          const golden = readFileSync(join(folder, id, `${name}.jsonl`), 'utf8');
          expectTrace(golden);
          expectTrace(traceOf({ machine: id, actor: id, input, events }), golden);
        });
      }

      it('passes every state and every transition', () => {
        const { machine } = traced[id]!;
        const states = new Set<string>();
        const transitions = new Set<string>();
        for (const { input, events } of scenarios) {
          const way = passed(machine, input, events);
          for (const state of way.states) states.add(state);
          for (const transition of way.transitions) transitions.add(transition);
        }
        const missedStates = statesOf(machine)
          .filter((node) => !states.has(node.id))
          .map((node) => node.id);
        const all = [...namedTransitions(machine).values()];
        const missed = all.filter((name) => !transitions.has(name) && UNREACHED[name] === undefined);
        assert.deepEqual({ states: missedStates, transitions: missed }, { states: [], transitions: [] });
      });
    });
  }

  it('exist for every machine', () => {
    assert.deepEqual(Object.keys(goldens), Object.keys(traced));
  });

  it('excuse no transition that is taken or does not exist', () => {
    const all = Object.values(traced).flatMap(({ machine }) => [...namedTransitions(machine).values()]);
    assert.deepEqual(
      Object.keys(UNREACHED).filter((name) => !all.includes(name)),
      [],
    );
  });
});

describe('every state', () => {
  it('says what holds and what it permits', () => {
    for (const { machine } of Object.values(traced)) {
      for (const node of statesOf(machine)) {
        assert.match(metaOf(node).holds, /^[A-Z].{20,}\.$/, node.id);
      }
    }
  });
});
