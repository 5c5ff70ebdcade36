/*
 * A trace as OpenTelemetry's JSON (OTLP 1.x, the JSON mapping of `ExportTraceServiceRequest`), for whoever looks at traces in a tool
 * that reads it: a span for each actor, an event for each line, the actor that asked for another one as its parent.
 *
 * A trace has no clock. Times are made of `seq`, one millisecond a line, and an attribute of the resource says so. Ids are digests of
 * the trace itself, so that one trace always gives the same bytes.
 */
import type { Json, TraceLine } from './format.ts';
import { formatLine } from './format.ts';
import type { Digester } from './redact.ts';
import { stateWords, tell } from './tell.ts';

/** Made of a line's `seq` in place of a time: nanoseconds for each line. The first one is not 0, which OTLP reads as no time. */
const NANOSECONDS = 1_000_000n;

const INTERNAL = 1;
const ERROR = 2;

type Value =
  | { readonly stringValue: string }
  | { readonly intValue: string }
  | { readonly boolValue: boolean }
  | { readonly arrayValue: { readonly values: readonly Value[] } };
type Attribute = { readonly key: string; readonly value: Value };
type SpanEvent = { readonly timeUnixNano: string; readonly name: string; readonly attributes: readonly Attribute[] };
type Span = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: typeof INTERNAL;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly events: readonly SpanEvent[];
  readonly status: { readonly code?: typeof ERROR; readonly message?: string };
};

/** What an OTLP/HTTP receiver takes as JSON at `/v1/traces`. */
export type OtelTraces = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string; readonly version: string };
      readonly spans: readonly Span[];
    }[];
  }[];
};

/** Spans of a trace. `digest` is SHA-256 of a text in UTF-8, 64 hexadecimal digits. */
export function toOtel(lines: readonly TraceLine[], digest: Digester): OtelTraces {
  const traceId = digest(lines.map(formatLine).join('')).slice(0, 32);
  const runs = runsOf(lines);
  const idOf = (run: Run): string => digest(`${traceId} ${run.first.seq}`).slice(0, 16);
  const spans = runs.map((run): Span => {
    const parent = parentOf(run, runs);
    const { actor, machine, version } = run.first;
    const broken = run.last.after.status === 'error';
    return {
      traceId,
      spanId: idOf(run),
      ...(parent === undefined ? {} : { parentSpanId: idOf(parent) }),
      name: actor === machine ? machine : `${machine} ${actor}`,
      kind: INTERNAL,
      startTimeUnixNano: timeOf(run.first),
      endTimeUnixNano: timeOf(run.last),
      attributes: [
        text('nessie.machine', machine),
        text('nessie.machine.version', version),
        text('nessie.actor', actor),
        text('nessie.state', stateWords(run.last.after.value)),
        text('nessie.status', run.last.after.status),
      ],
      events: run.lines.map(eventOf),
      status: broken ? { code: ERROR, message: 'the machine broke' } : {},
    };
  });
  return {
    resourceSpans: [
      {
        resource: {
          attributes: [
            text('service.name', 'nessie-executor'),
            text('nessie.time', 'logical: one millisecond a line, counted by seq; this trace has no clock'),
          ],
        },
        scopeSpans: [{ scope: { name: 'nessie-executor/trace', version: '1' }, spans }],
      },
    ],
  };
}

/** One actor from its beginning to its last line; one that begins again is another. */
type Run = { readonly first: TraceLine; readonly lines: readonly TraceLine[]; readonly last: TraceLine };

function runsOf(lines: readonly TraceLine[]): Run[] {
  const runs: { first: TraceLine; lines: TraceLine[]; last: TraceLine }[] = [];
  const current = new Map<string, (typeof runs)[number]>();
  for (const line of lines) {
    const key = JSON.stringify([line.machine, line.actor]);
    const known = line.before === null ? undefined : current.get(key);
    const run = known ?? { first: line, lines: [], last: line };
    if (known === undefined) runs.push(run);
    current.set(key, run);
    run.lines.push(line);
    run.last = line;
  }
  return runs;
}

/** The actor that last asked for this one before it began. */
function parentOf({ first }: Run, runs: readonly Run[]): Run | undefined {
  const wish = `xstate.spawnChild(${first.actor})`;
  return runs.findLast(
    (run) => run.first.seq < first.seq && run.lines.some((line) => line.seq < first.seq && line.actions.includes(wish)),
  );
}

function eventOf(line: TraceLine): SpanEvent {
  const { seq, event, before, after, actions } = line;
  return {
    timeUnixNano: timeOf(line),
    name: event.type,
    attributes: [
      { key: 'nessie.seq', value: { intValue: String(seq) } },
      ...(before === null ? [] : [text('nessie.before', stateWords(before.value))]),
      text('nessie.after', stateWords(after.value)),
      text('nessie.told', tell(line)),
      { key: 'nessie.actions', value: { arrayValue: { values: actions.map((stringValue) => ({ stringValue })) } } },
      ...Object.entries(event.payload).map(([field, value]) => ({
        key: `nessie.payload.${field}`,
        value: valueOf(value),
      })),
    ],
  };
}

function timeOf({ seq }: TraceLine): string {
  return String((BigInt(seq) + 1n) * NANOSECONDS);
}

function text(key: string, stringValue: string): Attribute {
  return { key, value: { stringValue } };
}

/** Texts, whole numbers and flags as they are; anything else as the JSON that it is. */
function valueOf(value: Json): Value {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number' && Number.isSafeInteger(value)) return { intValue: String(value) };
  return { stringValue: JSON.stringify(value) };
}
