import assert from 'node:assert/strict';

import { traced } from '../../../machines/registry.ts';
import { KEPT_LIMIT, redact } from '../../../machines/trace/redact.ts';
import type { Rule } from '../../../machines/trace/redact.ts';
import { traceOf } from '../../kit/index.ts';
import { goldens } from '../scenarios/index.ts';

const digest = (text: string): string => `digest-of-${text.length}`;

describe('redaction', () => {
  it('keeps what is listed, digests what must only compare, and drops everything else', () => {
    const rules = {
      'thing.happened': { id: 'kept', name: 'digested', inner: { count: 'kept' }, list: [{ id: 'kept' }] },
    } as const;
    const event = {
      type: 'thing.happened',
      id: 'thing-1',
      name: 'a name',
      secret: 'MARKER',
      inner: { count: 3, secret: 'MARKER' },
      list: [{ id: 'one', secret: 'MARKER' }],
    };
    assert.deepEqual(redact(rules, event, digest), {
      id: 'thing-1',
      name: 'sha256:digest-of-6',
      inner: { count: 3 },
      list: [{ id: 'one' }],
    });
  });

  it('drops the payload of an event that has no row', () => {
    assert.deepEqual(redact({}, { type: 'thing.happened', secret: 'MARKER' } as { type: string }, digest), {});
  });

  it('keeps no object and no long text under a rule for a plain value', () => {
    const rules = { 'thing.happened': { value: 'kept' } } as const;
    const keep = (value: unknown) =>
      redact(rules, { type: 'thing.happened', value } as { type: string }, digest)['value'];
    assert.equal(keep({ secret: 'MARKER' }), undefined);
    assert.equal(keep(['MARKER']), undefined);
    assert.equal(keep(Number.NaN), undefined);
    assert.equal(keep('x'.repeat(KEPT_LIMIT + 1)), `sha256:digest-of-${KEPT_LIMIT + 1}`);
    assert.equal(keep(false), false);
    assert.equal(keep(null), null);
  });

  it('lists no field under a name that holds digits of a code, challenges, facts of people, contents or errors', () => {
    const named = (rule: Rule | { readonly [field: string]: Rule }): string[] =>
      typeof rule === 'string' ? [] : Object.entries(rule).flatMap(([field, inner]) => [field, ...named(inner)]);
    for (const { payload } of Object.values(traced)) {
      const fields = Object.values(payload).flatMap(named);
      for (const field of ['digits', 'challenge', 'facts', 'content', 'error', 'label', 'machineName', 'path']) {
        assert.ok(!fields.includes(field), field);
      }
    }
  });

  it('leaves no marker in a trace, wherever it is planted in an event', () => {
    const planted = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(planted);
      if (typeof value !== 'object' || value === null || value instanceof Error) return value;
      const inner = Object.entries(value).map(([field, one]) => [field, planted(one)] as const);
      return { ...Object.fromEntries(inner), planted: 'MARKER', digits: 'MARKER', facts: { team: 'MARKER' } };
    };
    for (const [machine, scenarios] of Object.entries(goldens)) {
      for (const { input, events } of scenarios) {
        const marked = events.map((event) => ({ ...(planted(event) as object), type: event.type }));
        const text = traceOf({ machine, actor: machine, input: planted(input), events: marked });
        assert.ok(!text.includes('MARKER'));
      }
    }
  });
});
