/*
 * machines/trace/samples.ts: one of each event that the golden traces hold, with its payload, so that a walk by hand has events ready.
 * Written by `npm run docs`, compared by the check.
 */
import fs from 'node:fs';
import path from 'node:path';

import { traced } from '../../machines/registry.ts';
import { parseTrace } from '../../machines/trace/format.ts';

const TOP = path.resolve(import.meta.dirname, '../..');

/** Text of machines/trace/samples.ts. */
export function render(): string {
  const machines = Object.keys(traced).map((id) => {
    const events = [...samplesOf(id)].map(([type, payloads]) => {
      return `    ${JSON.stringify(type)}: [${[...payloads].join(', ')}],\n`;
    });
    return `  ${JSON.stringify(id)}: {\n${events.join('')}  },\n`;
  });
  return [
    '/* Generated from test/traces/ by `npm run docs`; a stale one fails the check. */',
    "import type { Json } from './format.ts';",
    '',
    '/** Payloads of every event of the golden traces, by machine and type; those of `xstate.init` hold an input. */',
    'export const SAMPLES: { readonly [machine: string]: { readonly [event: string]: readonly { readonly [field: string]: Json }[] } } = {',
    `${machines.join('')}};`,
    '',
  ].join('\n');
}

/** Payloads by type, each once, in the order of traces and lines; shorter traces first, so that the plain case comes first. */
function samplesOf(id: string): Map<string, Set<string>> {
  const folder = path.join(TOP, 'test/traces', id);
  const traces = fs
    .readdirSync(folder)
    .toSorted()
    .map((file) => parseTrace(fs.readFileSync(path.join(folder, file), 'utf8')));
  const found = new Map<string, Set<string>>();
  for (const { event } of traces.toSorted((one, other) => one.length - other.length).flat()) {
    const payloads = found.get(event.type) ?? new Set();
    found.set(event.type, payloads.add(JSON.stringify(event.payload)));
  }
  return found;
}
