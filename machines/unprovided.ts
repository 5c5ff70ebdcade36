import { fromPromise } from 'xstate';
import type { PromiseActorLogic } from 'xstate';

/** A machine asked for an actor or an action that its composition root has not provided: a bug, never a state of the world. */
export class Unprovided extends Error {
  /** Name under which the machine refers to what is missing. */
  readonly missing: string;

  constructor(missing: string) {
    super(`${missing} is not provided: give it with machine.provide before the actor starts`);
    this.name = 'Unprovided';
    this.missing = missing;
  }
}

/** Stub actor logic that rejects with its own name, so that a machine can be declared, stepped and drawn without its edge. */
export function unprovided<Output, Input>(name: string): PromiseActorLogic<Output, Input> {
  return fromPromise<Output, Input>(() => Promise.reject(new Unprovided(name)));
}

/** Stub actions by name, one for each key of `Actions`. */
export type UnprovidedActions<Actions> = {
  readonly [Name in keyof Actions]: (args: unknown, params: Actions[Name]) => void;
};

/**
 * Actions that throw their own name when executed; stepping a machine with `transition` never executes one.
 * `names` lists every key of `Actions`, which maps each action to its parameters.
 */
export function unprovidedActions<Actions>(names: Record<keyof Actions & string, true>): UnprovidedActions<Actions> {
  const actions = Object.keys(names).map((name) => {
    const throwing = (): never => {
      throw new Unprovided(name);
    };
    return [name, throwing];
  });
  // The compiler forgets the keys of an object on the way through its entries; `names` is exhaustive by its type.
  return Object.fromEntries(actions) as UnprovidedActions<Actions>;
}
