import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

import { formatLine, parseTrace } from '../../../machines/trace/format.ts';
import type { TraceLine } from '../../../machines/trace/format.ts';
import { toMermaid } from '../../../machines/trace/mermaid.ts';
import { toOtel } from '../../../machines/trace/otel.ts';
import { oneCommand } from '../../daemon/trace-page/pages.ts';
import { goldens } from '../scenarios/index.ts';
import { traceOf } from '../../kit/trace-of.ts';

const digest = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

const goldenLines = (id: string, name: string): TraceLine[] => {
  const golden = goldens[id]!.find((one) => one.name === name)!;
  return parseTrace(traceOf({ machine: id, actor: id, input: golden.input, events: golden.events }));
};

const begins = (text: string): TraceLine => ({
  trace: 1,
  seq: 0,
  machine: text,
  version: '1',
  actor: text,
  event: { type: 'xstate.init', payload: { text } },
  before: null,
  after: { value: text, status: 'active' },
  actions: [],
});

describe('a trace as Mermaid', () => {
  it('is the path of each actor, with the numbers of its lines on one arrow between two states', () => {
    assert.equal(
      toMermaid(goldenLines('command', 'started-succeeded')),
      [
        'stateDiagram-v2',
        '  state "command" as a0 {',
        '    state "queued" as a0s0',
        '    state "leased" as a0s1',
        '    state "accepted" as a0s2',
        '    state "started" as a0s3',
        '    state "succeeded" as a0s4',
        '    [*] --> a0s0: 1',
        '    a0s0 --> a0s1: 2 command.lease',
        '    a0s1 --> a0s2: 3 receipt.accepted',
        '    a0s2 --> a0s3: 4 receipt.started',
        '    a0s3 --> a0s3: 5, 6 result.received',
        '    a0s3 --> a0s4: 7 result.received',
        '    a0s4 --> [*]',
        '  }',
        '',
      ].join('\n'),
    );
  });

  it('holds one state for each actor and no text of the trace that Mermaid could read as its own', () => {
    assert.equal(toMermaid(parseTrace(oneCommand())).match(/^ {2}state /gm)?.length, 3);
    const [, , state] = toMermaid([begins('a"\n} --> [*]: <b> ; %%')]).split('\n');
    assert.equal(state, '    state "a#34;#10;#125; --#62; #91;#42;#93;#58; #60;b#62; #59; #37;#37;" as a0s0');
  });
});

/** What each message of OTLP may hold in its JSON mapping (opentelemetry-proto 1.x, trace.proto and common.proto), and how. */
const OTLP: { readonly [message: string]: { readonly [field: string]: (value: unknown) => boolean } } = {
  request: { resourceSpans: every('resourceSpans') },
  resourceSpans: { resource: one('resource'), scopeSpans: every('scopeSpans') },
  resource: { attributes: every('attribute') },
  scopeSpans: { scope: one('scope'), spans: every('span') },
  scope: { name: isText, version: isText },
  span: {
    traceId: (value) => /^(?!0{32})[0-9a-f]{32}$/.test(String(value)),
    spanId: isSpanId,
    parentSpanId: isSpanId,
    name: isText,
    kind: (value) => value === 1,
    startTimeUnixNano: isFixed64,
    endTimeUnixNano: isFixed64,
    attributes: every('attribute'),
    events: every('event'),
    status: one('status'),
  },
  event: { timeUnixNano: isFixed64, name: isText, attributes: every('attribute') },
  status: { code: (value) => value === 2, message: isText },
  attribute: { key: isText, value: (value) => one('value')(value) && Object.keys(value as object).length === 1 },
  value: {
    stringValue: (value) => typeof value === 'string',
    boolValue: (value) => typeof value === 'boolean',
    intValue: (value) => /^-?\d+$/.test(String(value)) && typeof value === 'string',
    arrayValue: one('array'),
  },
  array: { values: (value) => Array.isArray(value) && value.every((inner) => one('value')(inner)) },
};

function one(message: string): (value: unknown) => boolean {
  return (value) => {
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), message);
    for (const [field, inner] of Object.entries(value))
      assert.ok(OTLP[message]?.[field]?.(inner), `${message}.${field}: ${JSON.stringify(inner)}`);
    return true;
  };
}

function every(message: string): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.every((inner) => one(message)(inner));
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function isSpanId(value: unknown): boolean {
  return /^(?!0{16})[0-9a-f]{16}$/.test(String(value));
}

/** Whole numbers of 64 bits are decimal text in JSON; 0 would say that there is no time. */
function isFixed64(value: unknown): boolean {
  return typeof value === 'string' && /^[1-9]\d*$/.test(value) && BigInt(value) < 2n ** 64n;
}

describe('a trace as OpenTelemetry’s JSON', () => {
  const traces = Object.entries(goldens).flatMap(([id, scenarios]) =>
    scenarios.map(({ name }) => goldenLines(id, name)),
  );

  it('keeps the JSON mapping of OTLP, for every golden trace and for texts of strangers', () => {
    for (const lines of [...traces, parseTrace(oneCommand()), [begins('</script>\u202E')]]) {
      const sent: unknown = JSON.parse(JSON.stringify(toOtel(lines, digest)));
      assert.ok(one('request')(sent));
    }
  });

  it('has a span for each actor with an event for each line, below the actor that asked for it, in the order of the trace', () => {
    const lines = parseTrace(oneCommand());
    const spans = toOtel(lines, digest).resourceSpans[0]!.scopeSpans[0]!.spans;
    assert.deepEqual(
      spans.map(({ name }) => name),
      ['command cmd-1', 'daemon', 'execution command-cmd-1'],
    );
    const [control, daemon, execution] = spans;
    assert.deepEqual(
      [control?.parentSpanId, daemon?.parentSpanId, execution?.parentSpanId],
      [undefined, undefined, daemon?.spanId],
    );
    assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, 3);
    assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
    const events = spans.flatMap((span) => {
      for (const { timeUnixNano } of span.events) {
        assert.ok(
          BigInt(span.startTimeUnixNano) <= BigInt(timeUnixNano) &&
            BigInt(timeUnixNano) <= BigInt(span.endTimeUnixNano),
        );
      }
      return span.events;
    });
    const seqs = events
      .map(({ timeUnixNano }) => Number(BigInt(timeUnixNano) / 1_000_000n) - 1)
      .toSorted((a, b) => a - b);
    assert.deepEqual(
      seqs,
      lines.map(({ seq }) => seq),
    );
  });

  it('says that its time is logical, and is the same bytes for the same trace alone', () => {
    const [lines, other] = [parseTrace(oneCommand()), goldenLines('daemon', 'drains')];
    const made = JSON.stringify(toOtel(lines, digest));
    assert.match(made, /"nessie\.time","value":\{"stringValue":"logical: /);
    assert.equal(made, JSON.stringify(toOtel(parseTrace(lines.map(formatLine).join('')), digest)));
    const idOf = (of: readonly TraceLine[]) => toOtel(of, digest).resourceSpans[0]!.scopeSpans[0]!.spans[0]!.traceId;
    assert.notEqual(idOf(lines), idOf(other));
  });

  it('tells an actor that broke as an error', () => {
    const line = { ...begins('a'), after: { value: 'a', status: 'error' as const } };
    assert.equal(toOtel([line], digest).resourceSpans[0]!.scopeSpans[0]!.spans[0]!.status.code, 2);
  });
});
