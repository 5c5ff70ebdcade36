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

/** Stub action that throws its own name when it is executed; stepping a machine with `transition` never executes it. */
export function unprovidedAction<Params>(name: string): (args: unknown, params: Params) => void {
  return () => {
    throw new Unprovided(name);
  };
}
