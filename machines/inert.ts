import { createEmptyActor } from 'xstate';
import type {
  AnyActorScope,
  AnyEventObject,
  AnyMachineSnapshot,
  AnyStateMachine,
  ExecutableActionObject,
} from 'xstate';

/** A snapshot and the actions that the step to it asks for; nothing was executed. */
export type InertStep = readonly [snapshot: AnyMachineSnapshot, actions: readonly ExecutableActionObject[]];

/**
 * What xstate's `initialTransition` does, without its price: theirs starts each step by making an actor of the machine without an
 * input, whose context throws; this one hands the machine an empty actor. test/machines/inert.test.ts holds both against each other
 * over every golden trace.
 */
export function inertStart(machine: AnyStateMachine, input: unknown): InertStep {
  const actions: ExecutableActionObject[] = [];
  return [machine.getInitialSnapshot(inertScope(actions), input), actions];
}

/** What xstate's `transition` does, without its price. */
export function inertStep(machine: AnyStateMachine, before: AnyMachineSnapshot, event: AnyEventObject): InertStep {
  const actions: ExecutableActionObject[] = [];
  return [machine.transition(before, event, inertScope(actions)), actions];
}

/** A scope in which nothing is started, sent, logged or emitted; actions are collected in order. */
function inertScope(actions: ExecutableActionObject[]): AnyActorScope {
  const self = createEmptyActor();
  return {
    self,
    system: self.system,
    id: '',
    sessionId: '',
    logger: () => undefined,
    defer: () => undefined,
    emit: () => undefined,
    stopChild: () => undefined,
    actionExecutor: (action) => {
      actions.push(action);
    },
  };
}
