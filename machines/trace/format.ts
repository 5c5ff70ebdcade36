import type { StateValue } from 'xstate';

/** Version of the trace format; a line of another version is refused. */
export const TRACE_VERSION = 1;

/** A value that survives JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** State of a machine without its context: its value, and whether it goes on. */
export type TraceState = {
  readonly value: StateValue;
  readonly status: 'active' | 'done' | 'error';
};

/** One event of one actor: one line of JSON, its fields in this order. Logical time only: `seq` counts the lines of a trace from 0. */
export type TraceLine = {
  readonly trace: typeof TRACE_VERSION;
  readonly seq: number;
  /** Id of the machine. */
  readonly machine: string;
  /** Version of the machine that recorded the line. */
  readonly version: string;
  readonly actor: string;
  /** Type of the event, and what of its payload may be shown; `xstate.init` begins an actor and carries its input. */
  readonly event: { readonly type: string; readonly payload: { readonly [field: string]: Json } };
  /** Null for `xstate.init`. */
  readonly before: TraceState | null;
  readonly after: TraceState;
  /** Names of the actions that the step asked for, in order; xstate's own with what they are about. */
  readonly actions: readonly string[];
};

/** A line that is not one: what was expected and what came. */
export class TraceError extends Error {
  constructor(line: number, expected: string, came: string) {
    super(`trace line ${line}: expected ${expected}, got ${came}`);
    this.name = 'TraceError';
  }
}

/** Largest line, in UTF-16 units. */
export const LINE_LIMIT = 65_536;

/** Writes one line, with its line end. */
export function formatLine(line: TraceLine): string {
  const { trace, seq, machine, version, actor, event, before, after, actions } = line;
  const { type, payload } = event;
  return `${JSON.stringify({ trace, seq, machine, version, actor, event: { type, payload }, before, after, actions })}\n`;
}

/** Reads a whole trace: one line of JSON each, the last one ended. Throws TraceError for the first line that is not one. */
export function parseTrace(text: string): TraceLine[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new TraceError(lines.length + 1, 'a line end after the last line', 'a cut line');
  return lines.map((line, index) => parseLine(line, index + 1));
}

/** Reads one line; `number` counts from 1 and is named in the error. Throws TraceError for anything outside the closed schema. */
export function parseLine(text: string, number: number): TraceLine {
  if (text.length > LINE_LIMIT) throw new TraceError(number, `at most ${LINE_LIMIT} characters`, `${text.length}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The position that JSON.parse names would repeat bytes of the line.
    throw new TraceError(number, 'one JSON object', 'something else');
  }
  const check = new Shape(number);
  const fields = ['trace', 'seq', 'machine', 'version', 'actor', 'event', 'before', 'after', 'actions'];
  const line = check.object(value, 'line', fields);
  if (line['trace'] !== TRACE_VERSION)
    throw new TraceError(number, `trace version ${TRACE_VERSION}`, kind(line['trace']));
  const event = check.object(line['event'], 'event', ['type', 'payload']);
  return {
    trace: TRACE_VERSION,
    seq: check.count(line['seq'], 'seq'),
    machine: check.text(line['machine'], 'machine'),
    version: check.text(line['version'], 'version'),
    actor: check.text(line['actor'], 'actor'),
    event: { type: check.text(event['type'], 'event.type'), payload: check.record(event['payload'], 'event.payload') },
    before: line['before'] === null ? null : check.state(line['before'], 'before'),
    after: check.state(line['after'], 'after'),
    actions: check.texts(line['actions'], 'actions'),
  };
}

/** The closed schema of a line, written by hand: machines import no validator. */
class Shape {
  private readonly number: number;

  constructor(number: number) {
    this.number = number;
  }

  object(value: unknown, name: string, fields: readonly string[]): Record<string, unknown> {
    if (!isObject(value)) return this.refuse(`${name} to be an object`, value);
    const keys = Object.keys(value);
    const unknown = keys.find((key) => !fields.includes(key));
    const missing = fields.find((field) => !keys.includes(field));
    if (unknown !== undefined)
      throw new TraceError(this.number, `only ${fields.join(', ')} in ${name}`, 'another field');
    if (missing !== undefined) throw new TraceError(this.number, `${missing} in ${name}`, 'none');
    return value;
  }

  record(value: unknown, name: string): { readonly [field: string]: Json } {
    if (!isObject(value)) return this.refuse(`${name} to be an object`, value);
    // JSON.parse made it, and so it holds JSON values alone.
    return value as { readonly [field: string]: Json };
  }

  text(value: unknown, name: string): string {
    return typeof value === 'string' && value !== '' ? value : this.refuse(`${name} to be text`, value);
  }

  texts(value: unknown, name: string): readonly string[] {
    if (!Array.isArray(value)) return this.refuse(`${name} to be a list`, value);
    return value.map((one) => this.text(one, `each of ${name}`));
  }

  count(value: unknown, name: string): number {
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
      ? value
      : this.refuse(`${name} to be a count`, value);
  }

  state(value: unknown, name: string): TraceState {
    const { value: inner, status } = this.object(value, name, ['value', 'status']);
    if (status !== 'active' && status !== 'done' && status !== 'error') {
      return this.refuse(`${name}.status to be active, done or error`, status);
    }
    return { value: this.stateValue(inner, `${name}.value`), status };
  }

  private stateValue(value: unknown, name: string): StateValue {
    if (typeof value === 'string') return value;
    if (!isObject(value)) return this.refuse(`${name} to be a state`, value);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, this.stateValue(inner, name)]));
  }

  private refuse(expected: string, value: unknown): never {
    throw new TraceError(this.number, expected, kind(value));
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a value is, without the value: a trace that a stranger made is not repeated in an error. */
function kind(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}
