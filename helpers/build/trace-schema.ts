/*
 * docs/trace.schema.json: one line of a trace as JSON Schema (2020-12), for readers in other languages. Written by `npm run docs`; a test
 * holds its verdicts against those of machines/trace/format.ts, which decides.
 */
import { LINE_LIMIT, TRACE_VERSION } from '../../machines/trace/format.ts';

const NAME = { type: 'string', minLength: 1 };

/** An object of exactly these fields. */
const closed = (description: string, properties: Readonly<Record<string, object>>): object => ({
  description,
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** Text of docs/trace.schema.json. */
export function render(): string {
  const line = closed(
    `One event of one actor: one line of JSON in UTF-8, ended by a line feed, at most ${LINE_LIMIT} UTF-16 units long.`,
    {
      trace: { description: 'Version of the format.', const: TRACE_VERSION },
      seq: {
        description: 'Counts the lines of a trace from 0.',
        type: 'integer',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
      },
      machine: { ...NAME, description: 'Id of the machine.' },
      version: { ...NAME, description: 'Version of the machine that recorded the line.' },
      actor: { ...NAME, description: 'Id of the actor.' },
      event: closed('What came; xstate.init begins an actor and carries its input.', {
        type: NAME,
        payload: { description: 'What may be shown of the event.', type: 'object' },
      }),
      before: { description: 'Null for xstate.init.', anyOf: [{ type: 'null' }, { $ref: '#/$defs/state' }] },
      after: { $ref: '#/$defs/state' },
      actions: { description: 'Names of the actions that the step asked for, in order.', type: 'array', items: NAME },
    },
  );
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:nessie-executor:trace:${TRACE_VERSION}`,
    title: `A line of a trace of nessie-executor, version ${TRACE_VERSION}`,
    ...line,
    $defs: {
      state: closed('State of a machine without its data.', {
        value: { $ref: '#/$defs/value' },
        status: { enum: ['active', 'done', 'error'] },
      }),
      value: {
        description: 'Name of a state, or its name with the state in it.',
        anyOf: [{ type: 'string' }, { type: 'object', additionalProperties: { $ref: '#/$defs/value' } }],
      },
    },
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}
