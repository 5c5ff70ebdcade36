import type { AnyEventObject, AnyMachineSnapshot, AnyStateMachine, ExecutableActionObject } from 'xstate';
import { inertStart, inertStep } from '../inert.ts';
import type { TraceState } from './format.ts';

/** What one event does to a machine, computed without an actor. */
export type Taken = {
  readonly snapshot: AnyMachineSnapshot;
  /** False for an event that the state does not know, or that comes after the end. */
  readonly taken: boolean;
  readonly actions: readonly string[];
};

/** Event with which xstate begins an actor. */
export const INIT = 'xstate.init';

/** First step of a machine for an input. */
export function takeInit(machine: AnyStateMachine, input: unknown): Taken {
  const [snapshot, actions] = inertStart(machine, input);
  return { snapshot, taken: true, actions: actions.map(nameOf) };
}

/** One further step. */
export function take(machine: AnyStateMachine, before: AnyMachineSnapshot, event: AnyEventObject): Taken {
  if (before.status !== 'active' || !before.can(event)) return { snapshot: before, taken: false, actions: [] };
  const [snapshot, actions] = inertStep(machine, before, event);
  return { snapshot, taken: true, actions: actions.map(nameOf) };
}

/** State of a snapshot as a trace shows it. */
export function stateOf(snapshot: AnyMachineSnapshot): TraceState {
  const { value, status } = snapshot;
  return { value: value ?? 'none', status: status === 'stopped' ? 'done' : status };
}

/** Name of an action; xstate's own are told by what they are about, such as `xstate.spawnChild(connect)`. */
export function nameOf(action: ExecutableActionObject): string {
  const about = aboutOf(action);
  return about === undefined ? action.type : `${action.type}(${about})`;
}

/** What xstate gives its own actions to be about, of which each has a part. */
type OwnParams = {
  readonly id?: unknown;
  readonly sendId?: unknown;
  readonly event?: { readonly type?: unknown };
  readonly to?: { readonly id: string };
  readonly targetId?: string;
};

function aboutOf({ type, params }: ExecutableActionObject): string | undefined {
  if (!type.startsWith('xstate.') || typeof params !== 'object' || params === null) return undefined;
  // xstate's own actions are a closed set in the pinned version; each read below is of a field that it sets there.
  const own = params as OwnParams;
  const event = typeof own.event?.type === 'string' ? own.event.type : undefined;
  if (type === 'xstate.sendTo') return `${own.targetId ?? own.to?.id ?? ''}, ${event ?? ''}`;
  if (event !== undefined) return event;
  const id = own.id ?? own.sendId;
  return typeof id === 'string' ? id : undefined;
}
