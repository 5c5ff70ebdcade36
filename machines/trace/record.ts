import type { AnyActorRef, AnyEventObject, AnyMachineSnapshot, InspectionEvent } from 'xstate';
import { traced } from '../registry.ts';
import { TRACE_VERSION } from './format.ts';
import type { TraceLine } from './format.ts';
import { redact } from './redact.ts';
import type { Digester } from './redact.ts';
import { INIT, stateOf, take, takeInit } from './take.ts';

/** What a recording knows so far; a plain value, a new one for each event. */
export type Recording = {
  readonly nextSeq: number;
  readonly actors: ReadonlyMap<string, RecordedActor>;
};

type RecordedActor = {
  readonly machine: string;
  readonly snapshot: AnyMachineSnapshot;
  /** States that were computed and not yet seen in the live actor, oldest first. */
  readonly expected: readonly string[];
};

/** A recording before its first event. */
export const emptyRecording: Recording = { nextSeq: 0, actors: new Map() };

/** The recording after one inspection: with a line, or with a sentence where the live actor is not where the machine says. */
export type Recorded = {
  readonly recording: Recording;
  readonly line?: TraceLine;
  readonly disagreement?: string;
};

/**
 * Turns one inspection of a live system into at most one line. The hook is `@xstate.event`, which runs before any action: the step is
 * computed purely from the state that the recording holds, since an actor that is still busy takes its events later.
 * `@xstate.snapshot` afterwards only asserts. Actors whose machine is not in the registry leave no line.
 */
export function recordInspection(recording: Recording, inspection: InspectionEvent, digest: Digester): Recorded {
  const machine = machineOf(inspection.actorRef);
  if (machine === undefined) return { recording };
  // `machineOf` found a state machine behind this reference, so it is an actor with an id.
  const actor = (inspection.actorRef as AnyActorRef).id;
  if (inspection.type === '@xstate.event')
    return extend(recording, { machine, actor, event: inspection.event }, digest);
  if (inspection.type !== '@xstate.snapshot') return { recording };
  // The snapshot of a state machine is a machine snapshot.
  return assertSnapshot(recording, actor, inspection.snapshot as AnyMachineSnapshot);
}

/** One event of one actor. */
export type ActorEvent = { readonly machine: string; readonly actor: string; readonly event: AnyEventObject };

/** Records one event that nobody inspects: a step of the control plane, or of a scenario. An actor is forgotten at its end. */
export function recordEvent(recording: Recording, happened: ActorEvent, digest: Digester): Recorded {
  const recorded = extend(recording, happened, digest);
  if (recorded.line === undefined || recorded.line.after.status === 'active') return recorded;
  return { ...recorded, recording: forget(recorded.recording, happened.actor) };
}

function extend(recording: Recording, { machine, actor, event }: ActorEvent, digest: Digester): Recorded {
  const row = traced[machine];
  if (row === undefined) return { recording };
  const held = recording.actors.get(actor);
  if (held === undefined && event.type !== INIT) return { recording };
  const before = event.type === INIT || held === undefined ? null : held.snapshot;
  const step = before === null ? takeInit(row.machine, event['input']) : take(row.machine, before, event);
  const line: TraceLine = {
    trace: TRACE_VERSION,
    seq: recording.nextSeq,
    machine,
    version: row.machine.version ?? '',
    actor,
    event: { type: event.type, payload: redact(row.payload, event, digest) },
    before: before === null ? null : stateOf(before),
    after: stateOf(step.snapshot),
    actions: step.actions,
  };
  const expected = [...(before === null ? [] : (held?.expected ?? [])), JSON.stringify(line.after)];
  const actors = new Map(recording.actors).set(actor, { machine, snapshot: step.snapshot, expected });
  return { recording: { nextSeq: recording.nextSeq + 1, actors }, line };
}

function assertSnapshot(recording: Recording, actor: string, live: AnyMachineSnapshot): Recorded {
  const held = recording.actors.get(actor);
  const [expected, ...rest] = held?.expected ?? [];
  if (held === undefined || expected === undefined) return { recording };
  const followed = new Map(recording.actors).set(actor, { ...held, expected: rest });
  // An actor at its end takes nothing more; a recording that kept it would grow with every command.
  const next = live.status === 'active' ? { ...recording, actors: followed } : forget(recording, actor);
  const seen = JSON.stringify(stateOf(live));
  if (seen === expected) return { recording: next };
  return { recording: next, disagreement: `${actor} is in ${seen} where its machine says ${expected}` };
}

function forget(recording: Recording, actor: string): Recording {
  const actors = new Map(recording.actors);
  actors.delete(actor);
  return { ...recording, actors };
}

/** Id of the registered machine behind an actor reference, if there is one. */
function machineOf(reference: object): string | undefined {
  const logic: unknown = Reflect.get(reference, 'logic');
  const id: unknown = typeof logic === 'object' && logic !== null ? Reflect.get(logic, 'id') : undefined;
  return typeof id === 'string' && Object.hasOwn(traced, id) ? id : undefined;
}
