import { createHash } from 'node:crypto';

import type { AnyEventObject } from 'xstate';

import { formatLine } from '../../machines/trace/format.ts';
import { emptyRecording, recordEvent } from '../../machines/trace/record.ts';

/** One actor of a machine and what happens to it, in logical time. */
export type Scenario = {
  /** Id of a machine, such as `command`. */
  readonly machine: string;
  readonly actor: string;
  readonly input: unknown;
  readonly events: readonly AnyEventObject[];
};

/** Trace of a scenario: one line for its beginning and one for each event. Throws for an event that the state cannot take. */
export function traceOf({ machine, actor, input, events }: Scenario): string {
  let recording = emptyRecording;
  const lines: string[] = [];
  for (const event of [{ type: 'xstate.init', input }, ...events]) {
    const state = recording.actors.get(actor)?.snapshot;
    if (event.type !== 'xstate.init' && state?.can(event) !== true) {
      const where = state === undefined ? 'after its end' : `in ${JSON.stringify(state.value)}`;
      throw new Error(`${event.type} cannot be taken by ${machine} ${where}`);
    }
    const recorded = recordEvent(recording, { machine, actor, event }, sha256);
    if (recorded.line === undefined) throw new Error(`${machine} is no machine of this product`);
    recording = recorded.recording;
    lines.push(formatLine(recorded.line));
  }
  return lines.join('');
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
