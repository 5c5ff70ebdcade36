/* Files of the `trace` commands: a trace is read whole, and what is made of it goes to a new file, never over another. */
import fs from 'node:fs';
import { parseTrace, TraceError } from '../../machines/trace/format.ts';
import type { TraceLine } from '../../machines/trace/format.ts';
import { CliFailure } from './failure.ts';
import { visible } from './terminal.ts';

/** Text of a trace and its lines. Throws CliFailure: usage for a file that cannot be read, difference for one that is no trace. */
export function readTraceText(file: string): { readonly text: string; readonly lines: TraceLine[] } {
  const text = readText(file);
  try {
    return { text, lines: parseTrace(text) };
  } catch (error) {
    if (error instanceof TraceError) throw new CliFailure('difference', visible(error.message), { cause: error });
    throw error;
  }
}

/** Text of a file; `what` it is stands in the refusal. Throws CliFailure: usage. */
export function readText(file: string, what = 'the trace'): string {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CliFailure('usage', `${what} cannot be read`, { cause });
  }
}

/** Opens a file that is not there yet, for its owner alone. Throws CliFailure: refused. */
export function openNew(file: string): number {
  try {
    return fs.openSync(file, 'wx', 0o600);
  } catch (cause) {
    throw new CliFailure('refused', 'the file is there already or cannot be made; name a new one', { cause });
  }
}

/** Writes a new file whole. Throws CliFailure: refused. */
export function writeNew(file: string, text: string): void {
  const out = openNew(file);
  try {
    fs.writeFileSync(out, text);
  } finally {
    fs.closeSync(out);
  }
}
