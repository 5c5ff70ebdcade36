/* `simulate --scenario FILE`: reads a story, tells it in a simulated world, and says what of it did not come as written. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { parse, YAMLParseError } from 'yaml';
import * as z from 'zod';
import { textOf } from '../../machines/trace/simulate/tracer.ts';
import { acts, scenarioOperations, tell } from '../../machines/trace/simulate/scenario.ts';
import type { Scenario, ScenarioAct } from '../../machines/trace/simulate/scenario.ts';
import { CliFailure } from './failure.ts';
import { counted, say, styled, visible } from './terminal.ts';
import type { Terminal } from './terminal.ts';

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** A time as people write it, `500ms`, `2s`, `3m`, `1h`, with a sign where a clock jumps back; in ms. */
const duration = z
  .string()
  .regex(/^-?\d+(\.\d+)?(ms|s|m|h)$/, 'a time such as 500ms, 2s, 3m or 1h')
  .transform((text) => Number.parseFloat(text) * (UNITS[text.replace(/[-\d.]/g, '')] ?? 1));

const states = z.union([z.string(), z.array(z.string())]).transform((one) => (typeof one === 'string' ? [one] : one));
const operation = z.enum(scenarioOperations);
// The keys of the table of acts are its names.
const act = z.enum(Object.keys(acts) as [ScenarioAct, ...ScenarioAct[]]);

const scenarioSchema = z.strictObject({
  tells: z.string().min(1),
  seed: z.union([z.string(), z.number()]).transform(String).default('1'),
  machines: z.int().min(1).max(100).default(1),
  'control-planes': z.int().min(1).max(16).default(1),
  settles: duration.default(120_000),
  steps: z.array(
    z.strictObject({
      at: duration,
      do: act,
      machine: z.int().min(1).exactOptional(),
      operation: operation.exactOptional(),
      operations: z.array(operation).exactOptional(),
      as: z.string().exactOptional(),
      command: z.string().exactOptional(),
      for: duration.exactOptional(),
      person: z.string().exactOptional(),
    }),
  ),
  expect: z.array(
    z.strictObject({
      command: z.string().exactOptional(),
      ends: states.exactOptional(),
      machine: z.int().min(1).exactOptional(),
      is: states.exactOptional(),
      daemon: states.exactOptional(),
      effects: z.int().min(0).exactOptional(),
    }),
  ),
});

/** Reads a story from the text of its file. Throws CliFailure: usage, with where and what was expected. */
export function readScenario(text: string): Scenario {
  try {
    const { 'control-planes': controlPlanes, ...rest } = scenarioSchema.parse(parse(text));
    return { ...rest, controlPlanes };
  } catch (cause) {
    throw new CliFailure('usage', `the scenario cannot be read: ${whyOf(cause)}`, { cause });
  }
}

function whyOf(error: unknown): string {
  if (error instanceof z.ZodError)
    return error.issues.map(({ path, message }) => `${path.join('.')}: ${visible(message)}`).join('; ');
  return error instanceof YAMLParseError ? visible(error.message.split('\n')[0] ?? '') : 'it is no YAML';
}

/** Tells the story of a file. Throws CliFailure: difference where it went otherwise. */
export function runScenario(
  terminal: Terminal,
  file: string,
  { json, trace }: { readonly json: boolean; readonly trace?: string },
): void {
  const scenario = readScenario(readText(file));
  const digest = createHash('sha256');
  const lines: string[] = [];
  const began = performance.now();
  const { violations, unmet, events } = tell(scenario, {
    digest: sha256,
    hear: (line) => {
      const text = textOf(line);
      digest.update(text);
      if (trace !== undefined) lines.push(text);
    },
  });
  const eventsPerMinute = Math.round((events / (performance.now() - began)) * 60_000);
  if (trace !== undefined) writeNew(trace, lines.join(''));
  const wrong = [...violations.map(({ invariant, says }) => `invariant ${invariant}: ${says}`), ...unmet];
  const { seed, tells } = scenario;
  if (json) {
    const traceDigest = digest.digest('hex');
    const line = { events, eventsPerMinute, violations: violations.length, unmet, seed, traceDigest };
    terminal.out.write(`${JSON.stringify(line)}\n`);
  } else {
    say(terminal, visible(tells));
    for (const one of wrong) say(terminal, styled(terminal, 'red', visible(one)));
    if (wrong.length === 0) say(terminal, `${styled(terminal, 'green', 'as written')}: ${counted(events, 'event')}`);
  }
  if (wrong.length > 0)
    throw new CliFailure('difference', `the story went otherwise in ${counted(wrong.length, 'point')}`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

function readText(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CliFailure('usage', 'the scenario cannot be read: there is no such file, or it may not be read', {
      cause,
    });
  }
}

function writeNew(file: string, text: string): void {
  try {
    fs.writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  } catch (cause) {
    throw new CliFailure('refused', 'the file is there already or cannot be made; name a new one', { cause });
  }
}
