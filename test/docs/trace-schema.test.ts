import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import * as z from 'zod';

import { parseLine, TraceError } from '../../machines/trace/format.ts';
import { traceOf } from '../kit/trace-of.ts';
import { goldens } from '../machines/scenarios/index.ts';

const file = join(resolve(import.meta.dirname, '../..'), 'docs/trace.schema.json');
// The library checks that it is a schema, and refuses one that it cannot follow whole.
const schema = z.fromJSONSchema(JSON.parse(readFileSync(file, 'utf8')) as Parameters<typeof z.fromJSONSchema>[0]);

function isLine(text: string): boolean {
  try {
    parseLine(text, 1);
    return true;
  } catch (error) {
    if (error instanceof TraceError) return false;
    throw error;
  }
}

/** A value with one place of it put in another's: every field of it and of what is in it, each with each of these. */
const STRANGE: readonly unknown[] = [
  null,
  0,
  -1,
  1,
  2,
  0.5,
  2 ** 53,
  '',
  'x',
  true,
  [],
  ['x'],
  [''],
  {},
  { x: 'y' },
  { x: 1 },
];

function* altered(value: unknown): Generator {
  yield* STRANGE;
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const one of STRANGE) yield [...(value as unknown[]), one];
    return;
  }
  yield { ...value, other: 1 };
  for (const [key, inner] of Object.entries(value)) {
    yield Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
    for (const one of altered(inner)) yield { ...value, [key]: one };
  }
}

describe('the schema of a trace', () => {
  it('takes every line of every golden trace', () => {
    for (const [id, scenarios] of Object.entries(goldens)) {
      for (const { name, input, events } of scenarios) {
        for (const line of traceOf({ machine: id, actor: id, input, events }).trim().split('\n')) {
          assert.ok(schema.safeParse(JSON.parse(line)).success, `${id} ${name}`);
        }
      }
    }
  });

  it('says the same as the reader of the product of a line with any one place lost, added or put as something else', () => {
    const [first = '', second = ''] = traceOf({
      machine: 'daemon',
      actor: 'a',
      input: { executorId: 'exec-1' },
      events: [{ type: 'daemon.stop' }],
    }).split('\n');
    let [taken, refused] = [0, 0];
    for (const text of [first, second]) {
      for (const value of altered(JSON.parse(text))) {
        const line = JSON.stringify(value);
        const isTaken = isLine(line);
        assert.equal(schema.safeParse(value).success, isTaken, line);
        if (isTaken) taken += 1;
        else refused += 1;
      }
    }
    assert.ok(taken > 50 && refused > 200, `${taken} taken, ${refused} refused`);
  });
});
