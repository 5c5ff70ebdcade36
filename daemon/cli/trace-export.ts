/* `trace export`: a trace in a form that other tools read. */
import { createHash } from 'node:crypto';
import type { TraceLine } from '../../machines/trace/format.ts';
import { toMermaid } from '../../machines/trace/mermaid.ts';
import { toOtel } from '../../machines/trace/otel.ts';
import { CliFailure } from './failure.ts';
import { counted, say, sayJson } from './terminal.ts';
import type { Terminal } from './terminal.ts';
import { readTraceText, writeNew } from './trace-files.ts';

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

/** Forms by the word that `--to` takes. */
const FORMS = {
  mermaid: toMermaid,
  otel: (lines: readonly TraceLine[]): string => `${JSON.stringify(toOtel(lines, sha256), null, 2)}\n`,
} as const;

/** A form that a trace can be exported to. */
export type Form = keyof typeof FORMS;

/** What a command writes, and where: a new file, or standard output for undefined. `isJson` tells the facts of a written file as JSON. */
export type ExportWish = { readonly to: Form; readonly output: string | undefined; readonly isJson: boolean };

/** Writes a trace in another form. Throws CliFailure. */
export function exportTrace(terminal: Terminal, file: string, { to, output, isJson }: ExportWish): void {
  if (isJson && output === undefined) {
    throw new CliFailure('usage', '--json tells about a written file: name one with --output');
  }
  const { lines } = readTraceText(file);
  if (lines.length === 0) throw new CliFailure('usage', 'the trace is empty: there is nothing to export');
  const text = FORMS[to](lines);
  if (output === undefined) return void terminal.out.write(text);
  writeNew(output, text);
  const actors = new Set(lines.map(({ machine, actor }) => JSON.stringify([machine, actor]))).size;
  if (isJson) return sayJson(terminal, { to, lines: lines.length, actors });
  say(terminal, `${counted(lines.length, 'line')} of ${counted(actors, 'actor')} written as ${to}`);
}
