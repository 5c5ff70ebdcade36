/*
 * A machine walked by hand at a terminal: numbers choose an event, `u` takes the last one back, `s FILE` saves the walk as a trace, `q`
 * ends. From a file of events instead of a person it tells where they lead as JSON.
 */
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import type { AnyEventObject } from 'xstate';
import { choicesOf, placeOf, takeStep, traceOfWalk, undoStep, walkOf } from '../../machines/trace/walk.ts';
import type { Choice, Walk } from '../../machines/trace/walk.ts';
import { briefly, stateWords, tell } from '../../machines/trace/tell.ts';
import { CliFailure } from './failure.ts';
import { columns, counted, say, sayJson, styled, visible } from './terminal.ts';
import type { Terminal } from './terminal.ts';
import { readText, writeNew } from './trace-files.ts';

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

/** What a walk is given: a file of events, one JSON object a line, to begin with; a new file for its trace; facts as JSON. */
export type StepWish = {
  readonly events: string | undefined;
  readonly save: string | undefined;
  readonly isJson: boolean;
};

/** Walks one machine. Throws CliFailure: usage for a machine that is not there, difference for an event that cannot be taken. */
export async function stepCommand(
  terminal: Terminal,
  machine: string,
  { events, save, isJson }: StepWish,
): Promise<void> {
  let walk = begun(machine);
  for (const [index, event] of (events === undefined ? [] : readEvents(events)).entries()) {
    const taken = takeStep(walk, event, sha256);
    if (!taken.ok) throw new CliFailure('difference', `event ${index + 1}: ${visible(taken.why)}`);
    walk = taken.walk;
  }
  if (isJson) {
    const { value, status, states } = placeOf(walk);
    sayJson(terminal, {
      machine,
      value,
      status,
      states,
      choices: choicesOf(walk),
      lines: walk.steps.map(({ line }) => line),
    });
  } else {
    walk = await asked(terminal, walk);
  }
  if (save !== undefined) writeNew(save, traceOfWalk(walk));
}

function begun(machine: string): Walk {
  try {
    return walkOf(machine);
  } catch (error) {
    if (error instanceof RangeError) throw new CliFailure('usage', error.message);
    throw error;
  }
}

/** Events of a file. Throws CliFailure: usage, by the number of the line and never by what stands there. */
function readEvents(file: string): AnyEventObject[] {
  const lines = readText(file, 'the events').split('\n');
  return lines.flatMap((line, index) => {
    if (line.trim() === '') return [];
    let event: unknown;
    try {
      event = JSON.parse(line);
    } catch {
      // The position that JSON.parse names would repeat bytes of the line.
      event = undefined;
    }
    if (typeof event !== 'object' || event === null || !('type' in event) || typeof event.type !== 'string') {
      throw new CliFailure('usage', `line ${index + 1} of the events is no JSON object with a type`);
    }
    return [{ ...event, type: event.type }];
  });
}

/** Asks until the person ends it; answers the walk as it is then. */
async function asked(terminal: Terminal, begin: Walk): Promise<Walk> {
  const lines = createInterface({ input: terminal.input, output: terminal.out, terminal: terminal.out.isTTY });
  let walk = begin;
  let choices = show(terminal, walk);
  lines.setPrompt('> ');
  lines.prompt();
  for await (const line of lines) {
    const word = line.trim();
    if (word === 'q') break;
    const next = answered(terminal, walk, choices, word);
    if (next !== undefined) {
      walk = next;
      choices = show(terminal, walk);
    }
    lines.prompt();
  }
  lines.close();
  return walk;
}

/** What one answer makes of a walk; undefined where it stays as it was. */
function answered(terminal: Terminal, walk: Walk, choices: readonly Choice[], word: string): Walk | undefined {
  if (word === 'u') return undoStep(walk);
  const [, file] = /^s\s+(.+)$/.exec(word) ?? [];
  if (file !== undefined) {
    saved(terminal, walk, file);
    return undefined;
  }
  const choice = /^\d+$/.test(word) ? choices[Number(word) - 1] : undefined;
  if (choice === undefined) {
    say(terminal, 'Say a number of the list, u to take the last step back, s FILE to save, or q to end.');
    return undefined;
  }
  const taken = takeStep(walk, choice.event, sha256);
  if (!taken.ok) throw new Error(`a choice was offered that cannot be taken: ${taken.why}`);
  const line = taken.walk.steps.at(-1)?.line;
  if (line !== undefined) say(terminal, visible(tell(line)));
  return taken.walk;
}

function saved(terminal: Terminal, walk: Walk, file: string): void {
  try {
    writeNew(file, traceOfWalk(walk));
    say(terminal, `${counted(walk.steps.length, 'line')} saved; nessie-executor trace replay runs them again`);
  } catch (error) {
    // A name that is taken is no reason to lose the walk.
    if (!(error instanceof CliFailure)) throw error;
    say(terminal, error.message);
  }
}

/** Shows where a walk is and what could come; answers the choices in the order of their numbers. */
function show(terminal: Terminal, walk: Walk): readonly Choice[] {
  const { value, status, states } = placeOf(walk);
  say(terminal, '');
  if (value === null) say(terminal, `${walk.machine} has not begun. It can begin with:`);
  for (const { name, holds, permits } of states) {
    say(terminal, `${styled(terminal, 'bold', name)}: ${holds}`);
    say(terminal, `  may be asked for: ${permits.length === 0 ? 'nothing' : permits.join(', ')}`);
  }
  const choices = choicesOf(walk);
  if (status !== 'active' && value !== null) say(terminal, `${stateWords(value)} is the end.`);
  else if (value !== null) say(terminal, choices.length === 0 ? 'Nothing could come now.' : 'What could come now:');
  const rows = choices.map(({ said, payload, leads, outcome }, index) => [
    String(index + 1).padStart(3),
    `${said}${briefly('output' in payload ? payload['output'] : 'input' in payload ? payload['input'] : payload)}`,
    outcome === 'moves' || outcome === 'begins' ? `-> ${leads}` : outcome === 'ends' ? `-> ${leads}, the end` : outcome,
  ]);
  for (const line of columns(rows)) say(terminal, visible(line));
  return choices;
}
