import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import { LINE_LIMIT, TraceError, formatLine, parseLine, parseTrace } from '../../../machines/trace/format.ts';
import type { TraceLine } from '../../../machines/trace/format.ts';

const line: TraceLine = {
  trace: 1,
  seq: 0,
  machine: 'executor',
  version: '1',
  actor: 'exec-1',
  event: { type: 'executor.silent', payload: {} },
  before: { value: 'online', status: 'active' },
  after: { value: { cancelling: 'leased' }, status: 'active' },
  actions: ['fenceConnections'],
};

describe('the trace format', () => {
  it('reads what it writes, one line an event', () => {
    const text = formatLine(line) + formatLine({ ...line, seq: 1, before: null });
    assert.deepEqual(parseTrace(text), [line, { ...line, seq: 1, before: null }]);
    assert.deepEqual(parseTrace(''), []);
  });

  const broken: readonly (readonly [string, unknown])[] = [
    ['another version', { ...line, trace: 2 }],
    ['an unknown field', { ...line, at: 1 }],
    ['an unknown field of the event', { ...line, event: { ...line.event, source: 'x' } }],
    ['a missing field', { ...line, actions: undefined }],
    ['a negative seq', { ...line, seq: -1 }],
    ['a fraction as seq', { ...line, seq: 0.5 }],
    ['an empty actor', { ...line, actor: '' }],
    ['a state that is a list', { ...line, after: { value: ['online'], status: 'active' } }],
    ['an unknown status', { ...line, after: { value: 'online', status: 'stopped' } }],
    ['a payload that is a list', { ...line, event: { type: 'executor.silent', payload: [] } }],
    ['actions that are no texts', { ...line, actions: [1] }],
    ['a list', [line]],
    ['nothing', null],
  ];
  for (const [name, value] of broken) {
    it(`refuses ${name}, and names the line without repeating it`, () => {
      assert.throws(
        () => parseLine(JSON.stringify(value), 4),
        (error) => error instanceof TraceError && error.message.startsWith('trace line 4: expected '),
      );
    });
  }

  it('refuses a line that was cut, one that is not JSON and one that is too long', () => {
    const text = formatLine(line);
    assert.throws(() => parseTrace(text.slice(0, -1)), TraceError);
    assert.throws(
      () => parseTrace(`${text}secret\n`),
      (error) => error instanceof TraceError && !error.message.includes('secret'),
    );
    assert.throws(() => parseLine(' '.repeat(LINE_LIMIT + 1), 1), TraceError);
  });

  it('answers any text with lines or with a TraceError', () => {
    const text = formatLine(line);
    const damaged = fc.tuple(fc.nat({ max: text.length - 1 }), fc.string({ maxLength: 4 }));
    fc.assert(
      fc.property(damaged, ([at, put]) => {
        const cut = `${text.slice(0, at)}${put}${text.slice(at + 1)}`;
        try {
          for (const one of parseTrace(cut)) assert.equal(one.trace, 1);
        } catch (error) {
          assert.ok(error instanceof TraceError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
