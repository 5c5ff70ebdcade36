import { inertStart, inertStep } from './inert.ts';
import type {
  AnyMachineSnapshot,
  AnyStateMachine,
  ContextFrom,
  EventFromLogic,
  ExecutableActionObject,
  ExecutableActionsFrom,
  InputFrom,
  OutputFrom,
  SpecialExecutableAction,
  StateValue,
} from 'xstate';

/** A machine's state as JSON that a store keeps: everything that the next step needs, nothing that runs. */
export type Stored<Machine extends AnyStateMachine> = {
  readonly machine: string;
  readonly version: string;
  readonly value: StateValue;
  readonly status: 'active' | 'done';
  readonly context: ContextFrom<Machine>;
  readonly output: OutputFrom<Machine> | null;
};

/** An action that a step asks for, by name, with its parameters; whoever steps the machine executes it. */
export type NamedAction<Machine extends AnyStateMachine> =
  Exclude<ExecutableActionsFrom<Machine>, SpecialExecutableAction> extends infer Action
    ? Action extends { readonly type: infer Type; readonly params: infer Params }
      ? { readonly type: Type; readonly params: Params }
      : never
    : never;

/** The state after a step and what is to be done once it is stored. */
export type Stepped<Machine extends AnyStateMachine> = {
  readonly ok: true;
  readonly stored: Stored<Machine>;
  readonly actions: readonly NamedAction<Machine>[];
};

/** A step that was refused: nothing changed. `code` is STATE_TRANSITION_INVALID, SNAPSHOT_INVALID or the machine's own. */
export type StepRefusal = {
  readonly ok: false;
  readonly code: string;
  readonly machine: string;
  readonly state: StateValue;
  readonly event: string;
};

/** First state of a machine for `input`, ready to be stored. */
export function begin<Machine extends AnyStateMachine>(machine: Machine, input: InputFrom<Machine>): Stepped<Machine> {
  const [snapshot, actions] = inertStart(machine, input);
  return stepped(machine, snapshot, actions);
}

/**
 * Takes one event in a stored state. Refuses, changing nothing: an event that the state does not know or that comes after the end
 * (STATE_TRANSITION_INVALID), one that the machine refuses by its action `refuse` (that action's code), and a stored state of
 * another machine, another version or a state that does not exist (SNAPSHOT_INVALID).
 */
export function step<Machine extends AnyStateMachine>(
  machine: Machine,
  stored: Stored<Machine>,
  event: EventFromLogic<Machine>,
): Stepped<Machine> | StepRefusal {
  const refusal = (code: string): StepRefusal => {
    return { ok: false, code, machine: machine.id, state: stored.value, event: event.type };
  };
  const snapshot = restored(machine, stored);
  if (snapshot === undefined) return refusal('SNAPSHOT_INVALID');
  if (snapshot.status !== 'active' || !snapshot.can(event)) return refusal('STATE_TRANSITION_INVALID');
  const [next, actions] = inertStep(machine, snapshot, event);
  const code = refusedWith(actions);
  return code === undefined ? stepped(machine, next, actions) : refusal(code);
}

/** Snapshot of a stored state, or undefined where the store holds something that this machine never wrote. */
function restored(machine: AnyStateMachine, stored: Stored<AnyStateMachine>): AnyMachineSnapshot | undefined {
  if (stored.machine !== machine.id || stored.version !== machine.version) return undefined;
  try {
    const { value, context } = stored;
    const snapshot = machine.resolveState({ value, context });
    return snapshot.status === stored.status ? snapshot : undefined;
  } catch {
    // xstate throws for a state that the machine does not have: the store was altered or written by another version.
    return undefined;
  }
}

function stepped<Machine extends AnyStateMachine>(
  machine: Machine,
  snapshot: AnyMachineSnapshot,
  actions: readonly ExecutableActionObject[],
): Stepped<Machine> {
  if (snapshot.status !== 'active' && snapshot.status !== 'done') {
    throw new Error(`machine ${machine.id} broke in a step: a guard, an assignment or its input is at fault`);
  }
  const stored = {
    machine: machine.id,
    version: machine.version ?? '',
    value: snapshot.value,
    status: snapshot.status,
    context: snapshot.context,
    output: snapshot.output ?? null,
  };
  const named = actions.filter((action) => !action.type.startsWith('xstate.'));
  // The snapshot and its actions came from this very machine; xstate's pure functions are typed for any machine.
  return {
    ok: true,
    stored,
    actions: named.map(({ type, params }) => ({ type, params })),
  } as unknown as Stepped<Machine>;
}

/** Code of the action `refuse` among the actions of a step, or undefined where the machine refused nothing. */
export function refusedWith(actions: readonly ExecutableActionObject[]): string | undefined {
  const refusal = actions.find((action) => action.type === 'refuse');
  if (refusal === undefined) return undefined;
  const params: unknown = refusal.params;
  if (typeof params === 'object' && params !== null && 'code' in params && typeof params.code === 'string') {
    return params.code;
  }
  throw new Error('the action `refuse` needs a code');
}
