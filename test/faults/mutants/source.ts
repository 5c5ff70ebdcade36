/*
 * A source file of the project as text in which something can be found again when lines move: functions by name, calls by their
 * closing parenthesis, statements by the indentation that the formatter gives them.
 */
import fs from 'node:fs';
import path from 'node:path';

/** Root of the project. */
export const TOP = path.resolve(import.meta.dirname, '..', '..', '..');

const sources = new Map<string, string>();

/** A source file by its path from the root of the project, as it was when it was first asked for: a long run works on one state of it. */
export function readSource(file: string): string {
  const source = sources.get(file) ?? fs.readFileSync(path.join(TOP, file), 'utf8');
  sources.set(file, source);
  return source;
}

/** Name of the function or method around an offset, or the empty text. */
export function functionAt(source: string, offset: number): string {
  const lines = source.slice(0, offset).split('\n');
  const top = lines.findLastIndex((line) => /^(?:export )?(?:async )?(?:function|class|const) /.test(line));
  const [, kind, name] = /(function|class|const) (\w+)/.exec(lines[top] ?? '') ?? [];
  if (kind !== 'class') return name ?? '';
  const method = lines.slice(top).findLast((line) => /^ {2}(?:static |async |get )*#?\w+(?:<\w+>)?\(/.test(line));
  return /(#?\w+)(?:<\w+>)?\(/.exec(method ?? '')?.[1] ?? name ?? '';
}

/** End of a call that begins at an offset, behind its closing parenthesis. */
export function endOfCall(source: string, start: number): number {
  let depth = 0;
  for (let at = source.indexOf('(', start); at < source.length; at += 1) {
    if (source[at] === '(') depth += 1;
    if (source[at] === ')') depth -= 1;
    if (depth === 0) return at + 1;
  }
  throw new Error(`a call without an end: ${source.slice(start, start + 40)}`);
}

/** One statement: its text without the line feed at its end, comments above it included. */
export interface Statement {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const OPENS_BLOCK = /(?:\)(?::[^{}]*)?|=>|try|else|finally|catch(?: \([^)]*\))?) \{$/;

/** Statements that stand directly after one another, block by block. */
export function blocksOf(source: string): Statement[][] {
  const lines = source.split('\n');
  const starts: number[] = [];
  let offset = 0;
  for (const line of lines) {
    starts.push(offset);
    offset += line.length + 1;
  }
  return lines.flatMap((line, opener) => {
    if (!OPENS_BLOCK.test(line)) return [];
    const closing = `${/^ */.exec(line)?.[0] ?? ''}}`;
    const length = lines.slice(opener + 1).findIndex((later) => later.startsWith(closing));
    return length < 1 ? [] : [statementsOf(lines, starts, opener + 1, opener + 1 + length)];
  });
}

function statementsOf(lines: readonly string[], starts: readonly number[], from: number, to: number): Statement[] {
  const indent = /^ */.exec(lines[from] ?? '')?.[0].length ?? 0;
  const begins: number[] = [];
  let isComment = false;
  for (let number = from; number < to; number += 1) {
    const line = lines[number] ?? '';
    const isStart = /^ *(?!else\b)[^\s})\]]/.test(line) && /^ */.exec(line)?.[0].length === indent;
    if (isStart && !isComment) begins.push(number);
    isComment = isStart && line.trimStart().startsWith('//');
  }
  return begins.map((first, index) => {
    const last = (begins[index + 1] ?? to) - 1;
    const start = starts[first] ?? 0;
    const end = (starts[last] ?? 0) + (lines[last]?.length ?? 0);
    return { start, end, text: lines.slice(first, last + 1).join('\n') };
  });
}
