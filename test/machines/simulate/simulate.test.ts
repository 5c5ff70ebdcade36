import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { readScenario } from '../../../daemon/cli/scenario.ts';
import { CONTROL_SILENCE_MS } from '../../../machines/daemon/connection.ts';
import { replay } from '../../../machines/trace/replay.ts';
import { faultKinds } from '../../../machines/trace/simulate/faults.ts';
import { shippedRules } from '../../../machines/trace/simulate/rules.ts';
import { tell } from '../../../machines/trace/simulate/scenario.ts';
import { shrink } from '../../../machines/trace/simulate/shrink.ts';
import { simulate } from '../../../machines/trace/simulate/simulate.ts';
import type { SimulationOptions } from '../../../machines/trace/simulate/simulate.ts';
import { dense } from '../../../machines/trace/simulate/society.ts';
import { CONTROL_HOLD_MS, OFFLINE_MS } from '../../../machines/trace/simulate/times.ts';
import { channelTimes } from '../../../server/protocol.ts';
import { simulateWorld, tellStory } from '../../kit/simulate.ts';
import { mutants } from './mutants.ts';

const stories = path.join(import.meta.dirname, '../../../docs/scenarios');
const digest = (text: string) => createHash('sha256').update(text).digest('hex');

describe('a simulated world', function () {
  this.timeout(60_000);

  it('keeps every invariant through faults of every kind, with one process of the control plane and with three', () => {
    for (const [seed, controlPlanes] of [
      ['first', 1],
      ['second', 3],
    ] as const) {
      const { violations, events, faults } = simulateWorld({ seed, controlPlanes, hours: 0.2, pace: 'dense' });
      assert.deepEqual(violations, [], `seed ${seed}`);
      assert.ok(events > 2500, `${events} events`);
      for (const kind of ['cut', 'partition', 'daemon', 'helper', 'replay', 'nonsense'])
        assert.ok((faults[kind] ?? 0) > 0, `${kind} happened`);
    }
  });

  it('tells the same story for the same seed, byte for byte, and another one for another', () => {
    const run = (seed: string) => simulateWorld({ seed, hours: 3, executors: 3 });
    const one = run('1');
    assert.equal(run('1').traceDigest, one.traceDigest);
    assert.notEqual(run('2').traceDigest, one.traceDigest);
  });

  it('traces in the public format, which replays through the machines that ship', () => {
    const lines: string[] = [];
    simulateWorld({ seed: 'replayed', hours: 1, executors: 2, faults: ['cut', 'daemon'] }, (line) => lines.push(line));
    const replayed = replay(lines.join(''));
    assert.deepEqual(replayed.ok ? [] : replayed.differences, []);
  });
});

describe('the modelled channel', () => {
  it('has the times of the real one', () => {
    const modelled = [CONTROL_HOLD_MS, CONTROL_SILENCE_MS, OFFLINE_MS];
    const { controlHoldMs, controlSilenceStepMs, offlineMs } = channelTimes;
    assert.deepEqual(modelled, [controlHoldMs, controlSilenceStepMs, offlineMs]);
  });
});

describe('a rule that is missing', function () {
  this.timeout(60_000);
  // The others take more events than the suite has time for: `npm run campaign -- rule-mutants` plays all.
  const soon = [
    'a proof says nothing of the past: an old copy is let in',
    'the epoch stands while a state changes',
    'what is remembered of a machine is what it said last, not the highest',
    'the lease is given to a connection of an earlier epoch',
    'the machine starts what an earlier connection delivered',
    'a repeated command is taken again',
    'a prepared promotion holds whatever changed',
    'the last administrator goes',
  ];
  const options: SimulationOptions = {
    seed: '1',
    executors: 5,
    hours: 48,
    events: 40_000,
    faults: faultKinds,
    pace: dense,
    digest,
  };

  for (const name of soon) {
    it(`is noticed: ${name}`, () => {
      const rules = mutants[name];
      assert.ok(rules);
      const { violations } = simulate({ ...options, rules: { ...shippedRules, ...rules } });
      assert.notEqual(violations.length, 0);
    });
  }

  it('is shown by a smaller world that breaks the same invariant', () => {
    const rules = { ...shippedRules, ...mutants['the last administrator goes'] };
    const wide: SimulationOptions = { ...options, faults: ['cut', 'helper', 'replay'], rules };
    const found = simulate(wide);
    const { options: small, simulated } = shrink(wide, found, () => undefined);
    assert.equal(simulated.violations[0]?.invariant, found.violations[0]?.invariant);
    assert.ok(small.executors < wide.executors);
    assert.ok(small.faults.length < wide.faults.length, 'faults that it does not need are left out');
  });
});

describe('stories', () => {
  for (const file of fs.readdirSync(stories)) {
    const story = readScenario(fs.readFileSync(path.join(stories, file), 'utf8'));
    it(`${file}: ${story.tells}`, () => {
      const { violations, unmet } = tellStory(story);
      assert.deepEqual([violations, unmet], [[], []]);
    });
  }

  it('say what came where it is not what was written', () => {
    const story = readScenario(fs.readFileSync(path.join(stories, 'cancel-overtakes.yaml'), 'utf8'));
    const expect = [{ command: 'waiting', ends: ['succeeded'] }];
    const { unmet } = tell({ ...story, expect }, { digest });
    assert.deepEqual(unmet, ['command waiting: expected succeeded, got cancelled']);
  });

  it('that are no stories are refused with the place and what was expected there', () => {
    const said = (text: string): string => {
      try {
        readScenario(text);
        return '';
      } catch (error) {
        return String(error);
      }
    };
    assert.match(said('tells: x\nsteps: [{ at: soon, do: call }]\nexpect: []'), /steps\.0\.at: a time such as 500ms/);
    assert.match(said('tells: x\nsteps: [{ at: 1s, do: fly }]\nexpect: []'), /steps\.0\.do/);
    assert.match(said('tells: x\nsteps: [\n'), /line|YAML|Flow/);
  });
});
