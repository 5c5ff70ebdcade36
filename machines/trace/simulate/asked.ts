/*
 * What a machine invokes in a simulated world: logic that looks to its parent like a promise, and that the world settles when the
 * modelled work is done. Nothing of it is asynchronous, so the order of everything is the timeline's.
 */
import type { NonReducibleUnknown, PromiseActorLogic } from 'xstate';

/** One invocation that waits for the world. */
export interface Ask<Output, Input> {
  readonly input: Input;
  /** False once it is settled or its state was left: what was done for it then is told to nobody. */
  isOpen(): boolean;
  resolve(output: Output): void;
  reject(): void;
}

/** What an actor of this logic is to itself. */
interface Self<Output> {
  getSnapshot(): { readonly status: string };
  send(event: { readonly type: string; readonly output?: Output }): void;
}

const DONE = 'world.done';
const BROKEN = 'world.broken';

/** Text of a path that stands in every modelled error: whatever shows it tells something of a host. */
export const HOST_MARKER = '/home/owner/secret';

/** Why a modelled actor rejected. */
class Rejected extends Error {
  override readonly name = 'Rejected';

  constructor() {
    super(HOST_MARKER);
  }
}

/** Logic of an invoked actor. `take` is called when it starts and must not settle it before it returns. */
export function asked<Output, Input extends NonReducibleUnknown>(
  take: (ask: Ask<Output, Input>) => void,
): PromiseActorLogic<Output, Input> {
  const logic: Pick<
    PromiseActorLogic<Output, Input>,
    'transition' | 'getInitialSnapshot' | 'getPersistedSnapshot' | 'start'
  > = {
    transition: (state, event) => {
      if (state.status !== 'active') return state;
      if (event.type === DONE) {
        // Only `resolve` below sends this event, with an output of this type.
        const { output } = event as unknown as { readonly output: Output };
        return { status: 'done', output, error: undefined, input: undefined };
      }
      if (event.type === BROKEN) return { status: 'error', output: undefined, error: new Rejected(), input: undefined };
      return event.type === 'xstate.stop'
        ? { status: 'stopped', output: undefined, error: undefined, input: undefined }
        : state;
    },
    getInitialSnapshot: (_, input) => ({ status: 'active', output: undefined, error: undefined, input }),
    getPersistedSnapshot: (snapshot) => snapshot,
    start: (state, { self }) => {
      // An actor of this logic takes these events, whatever xstate's type of a promise says.
      const me = self as unknown as Self<Output>;
      take({
        // The input stands in the snapshot from which it starts.
        input: state.input as Input,
        isOpen: () => me.getSnapshot().status === 'active',
        resolve: (output) => me.send({ type: DONE, output }),
        reject: () => me.send({ type: BROKEN }),
      });
    },
  };
  return logic;
}
