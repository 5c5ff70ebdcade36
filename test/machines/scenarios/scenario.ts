import type { AnyEventObject } from 'xstate';

/** One golden trace: file name, the sentence that it tells, and what happens. */
export type Golden = {
  readonly name: string;
  readonly tells: string;
  readonly input: unknown;
  readonly events: readonly AnyEventObject[];
};

/** An invoked actor ended with an output. */
export function done(actor: string, output: unknown): AnyEventObject {
  return { type: `xstate.done.actor.${actor}`, actorId: actor, output };
}

/** An invoked actor rejected; what it said never reaches a trace. */
export function broke(actor: string): AnyEventObject {
  return { type: `xstate.error.actor.${actor}`, actorId: actor, error: new Error('not for a trace') };
}

/** A named delay passed in a state, written with its path. */
export function after(delay: string, state: string): AnyEventObject {
  return { type: `xstate.after.${delay}.${state}` };
}
