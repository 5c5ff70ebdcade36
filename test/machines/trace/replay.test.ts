import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { explain } from '../../../machines/trace/diff.ts';
import { formatLine, parseTrace } from '../../../machines/trace/format.ts';
import type { TraceLine } from '../../../machines/trace/format.ts';
import { replay } from '../../../machines/trace/replay.ts';
import { expectTrace } from '../../kit/index.ts';

const golden = readFileSync(join(import.meta.dirname, '../../traces/executor/drains.jsonl'), 'utf8');
const lines = parseTrace(golden);
const write = (all: readonly TraceLine[]): string => all.map((line, seq) => formatLine({ ...line, seq })).join('');

function changed(at: number, change: Partial<TraceLine>): string {
  return write(lines.map((line, index) => (index === at ? { ...line, ...change } : line)));
}

function first(text: string): string {
  const outcome = replay(text);
  assert.ok(!outcome.ok);
  const { line, why } = outcome.differences[0]!;
  return `line ${line}: ${why}`;
}

describe('replay', () => {
  it('reproduces every state and action of a trace', () => {
    assert.deepEqual(replay(golden), { ok: true, lines: lines.length, actors: 1 });
  });

  it('follows each actor of a trace by itself', () => {
    const both = lines.flatMap((line) => [line, { ...line, actor: 'exec-2' }]);
    assert.deepEqual(replay(write(both)), { ok: true, lines: lines.length * 2, actors: 2 });
  });

  it('names the line where a state differs, and why', () => {
    const text = changed(2, { after: { value: 'offline', status: 'active' } });
    assert.equal(first(text), 'line 3: executor.proved leads to online, the trace has offline');
  });

  it('names the line where the actions differ', () => {
    assert.equal(
      first(changed(2, { actions: [] })),
      'line 3: executor.proved asks for [fenceConnections], the trace has []',
    );
  });

  it('takes an event that the state cannot take as a difference', () => {
    const event = { type: 'executor.drained', payload: {} };
    assert.equal(first(changed(2, { event })), 'line 3: executor.drained cannot be taken in pending_pairing');
  });

  it('says with which versions a changed machine was recorded and replayed', () => {
    const text = changed(2, { version: '0', after: { value: 'offline', status: 'active' } });
    assert.match(first(text), /\(recorded by version 0, replayed by 1\)$/);
  });

  it('refuses lost, added and reordered lines, a trace without its beginning and an unknown machine', () => {
    const lost = lines.toSpliced(2, 1).map(formatLine).join('');
    assert.equal(first(lost), 'line 3: seq is 3 where 2 comes next: lines were lost, added or reordered');
    assert.equal(first(write(lines.slice(1))), 'line 1: pairing.confirmed comes before xstate.init');
    assert.match(first(changed(0, { machine: 'robot' })), /^line 1: machine robot is not one of executor, /);
    assert.match(first('{}\n'), /trace line 1: expected trace in line, got none/);
  });

  it('tells the first difference of each actor and follows it no further', () => {
    const outcome = replay(changed(2, { actions: [] }));
    assert.ok(!outcome.ok);
    assert.equal(outcome.differences.length, 1);
  });
});

describe('difference of two traces', () => {
  it('is nothing for equal ones', () => {
    assert.deepEqual(explain(lines, lines), []);
  });

  it('tells one lost and one added line as such', () => {
    assert.deepEqual(explain(lines, lines.toSpliced(4, 1)), [
      'line 5 of the first is missing: executor.proved at executor led to draining',
    ]);
    assert.deepEqual(explain(lines.toSpliced(4, 1), lines), [
      'line 5 of the second is new: executor.proved at executor leads to draining',
    ]);
  });

  it('tells another state, another payload, other actions and another version in words', () => {
    const other = parseTrace(
      changed(1, {
        version: '2',
        event: { type: 'pairing.confirmed', payload: { fingerprint: 'key-b' } },
        after: { value: 'online', status: 'active' },
        actions: ['greet'],
      }),
    );
    assert.deepEqual(explain(lines, other), [
      'machine executor: version 1 became 2',
      'line 2, pairing.confirmed at executor: its fingerprint was "key-a" and is "key-b"',
      'line 2, pairing.confirmed at executor: it led to pending_pairing and leads to online',
      'line 2, pairing.confirmed at executor: it no longer asks for fenceConnections',
      'line 2, pairing.confirmed at executor: it now asks for greet',
    ]);
  });

  it('tells a line that moved, an actor of another name and an end that is none as what they are', () => {
    const swapped = lines.toSpliced(1, 2, lines[2]!, lines[1]!).map((line, seq) => ({ ...line, seq }));
    assert.deepEqual(explain(lines, swapped), [
      'line 2 of the first comes later, at line 3 of the second: pairing.confirmed at executor',
    ]);
    assert.deepEqual(
      explain(
        lines,
        lines.map((line) => ({ ...line, actor: 'exec-2' })),
      ),
      ['the actor executor of the first is called exec-2 in the second, as far as can be told'],
    );
    const broken = parseTrace(changed(1, { after: { ...lines[1]!.after, status: 'error' } }));
    assert.deepEqual(explain(lines, broken), [
      'line 2, pairing.confirmed at executor: it led to pending_pairing and leads to pending_pairing (broken)',
    ]);
  });

  it('tells which field of a payload differs by its path', () => {
    const [one, other] = ['succeeded', 'failed'].map((outcome) => {
      const event = { type: 'result.received', payload: { epoch: 7, ending: { outcome, code: null } } };
      return [{ ...lines[0]!, event }];
    });
    assert.deepEqual(explain(one!, other!), [
      'line 1, result.received at executor: its ending.outcome was "succeeded" and is "failed"',
    ]);
  });

  it('is never silent about traces that are not the same, whichever field of whichever line differs', () => {
    const changes: readonly Partial<TraceLine>[] = [
      { machine: 'daemon' },
      { version: '9' },
      { actor: 'other' },
      { seq: 77 },
      { event: { type: 'other', payload: {} } },
      { event: { ...lines[3]!.event, payload: { other: null } } },
      { before: null },
      { before: { ...lines[3]!.before!, status: 'error' } },
      { after: { value: 'other', status: 'active' } },
      { after: { ...lines[3]!.after, status: 'done' } },
      { actions: ['other'] },
    ];
    for (const change of changes) {
      const other = lines.map((line, index) => (index === 3 ? { ...line, ...change } : line));
      assert.notDeepEqual(explain(lines, other), [], JSON.stringify(change));
      assert.notDeepEqual(explain(other, lines), [], JSON.stringify(change));
    }
    assert.notDeepEqual(explain(lines, lines.toReversed()), []);
    assert.notDeepEqual(explain([], lines), []);
  });

  it('finds one lost line among 20,000 within seconds, and so where every line of the middle differs', () => {
    const long = Array.from({ length: 20_000 }, (_, seq) => {
      return { ...lines[seq % lines.length]!, seq, actor: `exec-${Math.floor(seq / lines.length)}` };
    });
    const begin = performance.now();
    assert.equal(explain(long, long.toSpliced(500, 1)).length, 1);
    const others = long.map((line) => ({ ...line, actions: [...line.actions, 'tell'] }));
    assert.equal(explain(long, others).length, long.length);
    const one = long.map((line) => ({ ...line, actor: 'executor', event: { type: `event-${line.seq}`, payload: {} } }));
    assert.equal(explain(one, one.toSpliced(19_000, 2).toSpliced(500, 1)).length, 3);
    assert.ok(performance.now() - begin < 8_000);
  });
});

describe('expectTrace', () => {
  it('is silent for a trace that this version reproduces and that is the golden one', () => {
    expectTrace(golden);
    expectTrace(golden, golden);
  });

  it('throws an AssertionError that says where and why', () => {
    assert.throws(() => expectTrace(changed(2, { actions: [] })), {
      name: 'AssertionError',
      message: /^line 3, executor: /,
    });
    const shorter = write(lines.slice(0, -1));
    assert.throws(() => expectTrace(shorter, golden), { name: 'AssertionError', message: /of the first is missing/ });
  });
});
