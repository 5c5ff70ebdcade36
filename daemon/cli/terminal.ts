/*
 * What goes to the owner's terminal.
 *
 * THREAT: an agent names a file, or writes a line, so that the terminal hides or rewrites what the owner is about to
 * approve. Every text that did not come from this program passes `visible` first: control characters, escape sequences and
 * marks that change the order of writing are shown as what they are (test/daemon/cli/terminal.test.ts).
 */
import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';
import { CliFailure } from './failure.ts';

/** Where a command writes and asks. */
export interface Terminal {
  readonly out: NodeJS.WriteStream;
  readonly error: NodeJS.WriteStream;
  readonly input: NodeJS.ReadStream;
  /** Whether colour is wanted on `out`. */
  readonly isColoured: boolean;
}

/** The terminal of this process; colour on a terminal alone, and not where NO_COLOR is set (no-color.org). */
export function ownTerminal(): Terminal {
  const { stdout: out, stderr: error, stdin: input } = process;
  const { NO_COLOR: noColour = '', TERM: kind } = process.env;
  return { out, error, input, isColoured: out.isTTY && noColour === '' && kind !== 'dumb' };
}

type Style = Parameters<typeof styleText>[0];

/** Writes one line to standard output. */
export function say(terminal: Terminal, line: string): void {
  terminal.out.write(`${line}\n`);
}

/** Colours text where colour is wanted. */
export function styled(terminal: Terminal, style: Style, text: string): string {
  return terminal.isColoured ? styleText(style, text) : text;
}

// Controls, marks of writing direction, invisible and filler characters, line and paragraph separators, halves of pairs.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** One line of foreign text with everything shown that a terminal would hide or obey. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => {
    if (character === '\t') return character;
    const code = character.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}

/** Writes facts as JSON, one value and a line end; bytes as hexadecimal digits, big integers as decimal ones. */
export function sayJson(terminal: Terminal, value: unknown): void {
  say(terminal, JSON.stringify(value, plain, 2));
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}

/** A fingerprint in groups of four, as people compare it. */
export function grouped(fingerprint: string): string {
  return fingerprint.match(/.{1,4}/g)?.join(' ') ?? '';
}

/** A count and its noun, as in `1 file` and `2 files`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Rows of text in columns as wide as their longest cell. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, cell.length)));
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Asks the person at the terminal to type exactly `wanted`; false for anything else. Rejects with CliFailure where nobody sits. */
export async function typed(terminal: Terminal, question: string, wanted: string): Promise<boolean> {
  if (!terminal.input.isTTY || !terminal.out.isTTY) {
    throw new CliFailure('refused', 'a person must answer this at a terminal; it is never taken from a pipe');
  }
  const lines = createInterface({ input: terminal.input, output: terminal.out });
  try {
    return (await lines.question(`${question} `)).trim() === wanted;
  } finally {
    lines.close();
  }
}

/** Runs work and, when it takes over a second and somebody watches, says so until it ends. */
export async function withProgress<Value>(terminal: Terminal, what: string, work: Promise<Value>): Promise<Value> {
  if (!terminal.error.isTTY) return work;
  const start = performance.now();
  let isShown = false;
  const timer = setInterval(() => {
    isShown = true;
    terminal.error.write(`\r${what} … ${Math.round((performance.now() - start) / 1000)} s`);
  }, 1000);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    if (isShown) terminal.error.write('\r\u001b[K');
  }
}
