/*
 * Lines of the public trace format for everything that a simulated world does, and the count of events that decided something. Live
 * machines are recorded by the hook that the daemon uses, stored ones by the step that the control plane takes.
 */
import type { AnyEventObject, InspectionEvent } from 'xstate';
import { formatLine } from '../format.ts';
import type { TraceLine } from '../format.ts';
import { emptyRecording, recordEvent, recordInspection } from '../record.ts';
import type { Recorded, Recording } from '../record.ts';
import type { Digester } from '../redact.ts';

/** Takes each line as it happens: `at` is the time of the world in ms, which no line holds. */
export type Hear = (line: TraceLine, at: number) => void;

/** One machine of the control plane that takes an event. */
export interface StoredStep {
  readonly machine: string;
  readonly actor: string;
  readonly event: AnyEventObject;
}

/** How long a fault is the one under which things happen, in ms. */
const RECENT_MS = 10_000;

/** The trace of one world. */
export class Tracer {
  readonly #recordings = new Map<string, Recording>();
  readonly #now: () => number;
  readonly #digest: Digester;
  readonly #hear: Hear;
  #seq = 0;
  /** Events after which a state or a store was another one. */
  deciding = 0;
  /** Sentences of the recorder where a live actor was not where its machine says. */
  readonly disagreements: string[] = [];
  /** How often each event met each state under which fault, by `machine state event fault`; the fault is the last of ten seconds. */
  readonly met = new Map<string, number>();
  #fault = { kind: 'none', at: 0 };

  constructor(now: () => number, digest: Digester, hear: Hear) {
    this.#now = now;
    this.#digest = digest;
    this.#hear = hear;
  }

  /** The hook for `createActor` of one process; `system` names it, in front of the names of its actors. */
  inspector(system: string): (event: InspectionEvent) => void {
    this.#recordings.set(system, emptyRecording);
    return (event) => this.#take(system, (recording) => recordInspection(recording, event, this.#digest));
  }

  /** A process is gone, with its actors. */
  forget(system: string): void {
    this.#recordings.delete(system);
  }

  /** A stored machine took an event and the transaction stands; `xstate.init` with its input begins one. */
  stored(system: string, step: StoredStep): void {
    this.#take(system, (recording) => recordEvent(recording, step, this.#digest));
  }

  /** Something went wrong in the world. */
  wentWrong(kind: string): void {
    this.#fault = { kind, at: this.#now() };
  }

  /** A store changed without a machine: a grant, a binding, a record. */
  decided(): void {
    this.deciding += 1;
  }

  #take(system: string, record: (before: Recording) => Recorded): void {
    const before = this.#recordings.get(system) ?? emptyRecording;
    const { recording, line, disagreement } = record(before);
    this.#recordings.set(system, recording);
    if (disagreement !== undefined) this.disagreements.push(`${system}: ${disagreement}`);
    if (line === undefined) return;
    const own = { ...line, seq: this.#seq, actor: `${system}/${line.actor}` };
    this.#seq += 1;
    if (changed(before, recording, line)) this.deciding += 1;
    const state = line.before === null ? '' : JSON.stringify(line.before.value);
    const fault = this.#now() - this.#fault.at < RECENT_MS ? this.#fault.kind : 'none';
    const meeting = `${line.machine} ${state} ${eventOf(line.event.type)} ${fault}`;
    this.met.set(meeting, (this.met.get(meeting) ?? 0) + 1);
    this.#hear(own, this.#now());
  }
}

/** An event by its type, without the number of a command in it. */
function eventOf(type: string): string {
  return type.replace(/command-command-\d+/, 'command');
}

/** Bytes of a line as they count for the digest of a trace. */
export function textOf(line: TraceLine): string {
  return formatLine(line);
}

/** Whether a step left its machine otherwise than it was: in another state, with other data, or at its end. */
function changed(before: Recording, after: Recording, line: TraceLine): boolean {
  if (line.before === null || line.after.status !== line.before.status) return true;
  const held = before.actors.get(line.actor)?.snapshot;
  const now = after.actors.get(line.actor)?.snapshot;
  return now === undefined || held === undefined || held.value !== now.value || held.context !== now.context;
}
