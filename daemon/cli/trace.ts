/*
 * `trace`: records what the machines of a running daemon do, shows it, replays it through the machines of this program, and
 * explains how two traces differ.
 */
import fs from 'node:fs';
import { setTimeout as later } from 'node:timers/promises';
import { explain } from '../../machines/trace/diff.ts';
import { replay } from '../../machines/trace/replay.ts';
import { CliFailure } from './failure.ts';
import { askOver, connectOwner } from './owner-client.ts';
import type { Places } from './places.ts';
import { columns, counted, say, sayJson, styled, visible } from './terminal.ts';
import type { Terminal } from './terminal.ts';
import { openNew, readText, readTraceText } from './trace-files.ts';

const PAGE = 2000;
const FOLLOW_MS = 500;

/** Writes lines of the daemon's trace to a new file or to standard output; with `isFollowing` until it is ended. */
export async function recordTrace(
  terminal: Terminal,
  places: Places,
  file: string | undefined,
  isFollowing: boolean,
): Promise<void> {
  const out = file === undefined ? undefined : openNew(file);
  const client = await connectOwner(places.stateDir);
  let count = 0;
  try {
    for (let after = 0; ;) {
      const { lines, next } = await askOver(client, 'daemon.trace', { after, limit: PAGE });
      const text = lines.map((line) => `${line}\n`).join('');
      if (out === undefined) terminal.out.write(text);
      else fs.writeSync(out, text);
      count += lines.length;
      after = next;
      if (lines.length === PAGE) continue;
      if (!isFollowing) break;
      await later(FOLLOW_MS);
    }
  } finally {
    client.close();
    if (out !== undefined) fs.closeSync(out);
  }
  if (file !== undefined) say(terminal, `${counted(count, 'line')} recorded`);
}

/** Prints a trace for people, one line an event. */
export function showTrace(terminal: Terminal, file: string, isJson: boolean): void {
  const lines = readTraceText(file).lines;
  if (isJson) return sayJson(terminal, lines);
  const rows = lines.map(({ seq, machine, actor, event, before, after, actions }) => [
    String(seq),
    visible(actor === machine ? machine : `${machine} ${actor}`),
    visible(event.type),
    `${before === null ? '(start)' : stateName(before.value)} -> ${stateName(after.value)}`,
    visible(actions.join(' ')),
  ]);
  for (const line of columns(rows)) say(terminal, line);
}

const stateName = (value: unknown): string => visible(typeof value === 'string' ? value : JSON.stringify(value));

/** Runs a trace through the machines of this program. Throws CliFailure: difference with the first line that differs. */
export function replayTrace(terminal: Terminal, file: string, isJson: boolean): void {
  const result = replay(readText(file));
  if (isJson) sayJson(terminal, result);
  if (!result.ok) {
    if (!isJson)
      for (const { line, actor, why } of result.differences)
        say(terminal, `line ${line} ${visible(actor)}: ${visible(why)}`);
    throw new CliFailure(
      'difference',
      `${counted(result.differences.length, 'actor')} ${result.differences.length === 1 ? 'does' : 'do'} otherwise than the trace says`,
    );
  }
  if (!isJson)
    say(
      terminal,
      `${styled(terminal, 'green', 'replayed')}: ${counted(result.lines, 'line')} of ${counted(result.actors, 'actor')}, every state reproduced`,
    );
}

/** Explains how the second trace differs from the first. Throws CliFailure: difference where it does. */
export function diffTraces(terminal: Terminal, first: string, second: string, isJson: boolean): void {
  const sentences = explain(readTraceText(first).lines, readTraceText(second).lines);
  if (isJson) sayJson(terminal, { differences: sentences });
  else for (const one of sentences) say(terminal, visible(one));
  if (sentences.length > 0) throw new CliFailure('difference', counted(sentences.length, 'difference'));
  if (!isJson) say(terminal, 'The traces are equal.');
}
