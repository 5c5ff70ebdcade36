/*
 * Types, actors, actions and guards of a joining, and the branches with which several of its states meet an answer. The invariants
 * that they keep are stated in joining.ts.
 */
import { assign, emit, setup } from 'xstate';
import { declared } from '../meta.ts';
import type { Permit, StateMeta } from '../meta.ts';
import { unprovided, unprovidedActions } from '../unprovided.ts';
import type {
  AskStanding,
  DropRequest,
  JoiningActions,
  JoiningCode,
  JoiningContext,
  JoiningEmitted,
  JoiningEvent,
  JoiningInput,
  JoiningOutput,
  Offer,
  PersistRequest,
  PrepareRequest,
  PreparedRequest,
  SavePairing,
  SendConfirmation,
  SendEnding,
  SendRequest,
  Standing,
} from './types.ts';
import type { Refused } from '../values.ts';

/** Which requests each actor of a joining makes; a state that invokes one must permit them. */
export const joiningRequests = {
  prepareRequest: ['keystore.generate', 'keystore.sign'],
  persistRequest: ['state.write'],
  sendRequest: ['link.call'],
  askStanding: ['link.call', 'keystore.sign'],
  sendConfirmation: ['link.call', 'keystore.sign'],
  sendEnding: ['link.call', 'keystore.sign'],
  savePairing: ['state.write'],
  dropRequest: ['state.write', 'keystore.erase'],
} as const satisfies Record<string, readonly Permit[]>;

/** What a state reached only with it must have; its absence is a bug of the machine. */
export function known<Value>(value: Value | null): Value {
  if (value === null) throw new Error('a joining reached a state without what leads to it');
  return value;
}

type Answer = Standing | Refused;
const isStanding = (answer: Answer): answer is Standing => 'standing' in answer;

/** Types, actors, actions, guards and delays of a joining; joining.ts adds the states. */
export const joining = setup({
  types: declared<{
    context: JoiningContext;
    events: JoiningEvent;
    input: JoiningInput;
    output: JoiningOutput;
    emitted: JoiningEmitted;
    meta: StateMeta;
  }>(),
  actors: {
    prepareRequest: unprovided<PrepareRequest['output'], PrepareRequest['input']>('prepareRequest'),
    persistRequest: unprovided<PersistRequest['output'], PersistRequest['input']>('persistRequest'),
    sendRequest: unprovided<SendRequest['output'], SendRequest['input']>('sendRequest'),
    askStanding: unprovided<AskStanding['output'], AskStanding['input']>('askStanding'),
    sendConfirmation: unprovided<SendConfirmation['output'], SendConfirmation['input']>('sendConfirmation'),
    sendEnding: unprovided<SendEnding['output'], SendEnding['input']>('sendEnding'),
    savePairing: unprovided<SavePairing['output'], SavePairing['input']>('savePairing'),
    dropRequest: unprovided<DropRequest['output'], DropRequest['input']>('dropRequest'),
  },
  actions: {
    ...unprovidedActions<JoiningActions>({ refuse: true }),
    recordPrepared: assign((_, answer: PreparedRequest | Refused) => {
      return { prepared: 'refused' in answer ? null : answer };
    }),
    recordOffer: assign((_, answer: Offer | Refused) => ({ offer: 'refused' in answer ? null : answer, attempt: 0 })),
    recordClaim: assign(({ context }, answer: Answer) => {
      return { claim: isStanding(answer) && answer.standing === 'claimed' ? answer.claim : context.claim };
    }),
    recordPaired: assign((_, answer: Answer) => {
      const executorId = isStanding(answer) && answer.standing === 'confirmed' ? answer.executorId : null;
      return { executorId, ending: 'paired', code: null };
    }),
    recordEnding: assign((_, end: { ending: JoiningOutput['outcome']; code: string }) => end),
    recordWish: assign((_, wish: 'cancel' | 'reject') => {
      return { wish, ending: wish === 'cancel' ? 'cancelled' : 'refused', code: 'ENDED_HERE' };
    }),
    countAttempt: assign(({ context }) => ({ attempt: context.attempt + 1 })),
    showOffer: emit(({ context }) => {
      const { digits, commandKeyFingerprint } = known(context.offer);
      const { fingerprint } = known(context.prepared);
      return { type: 'joining.offered', digits, fingerprint, commandKeyFingerprint };
    }),
    showClaim: emit(({ context }) => ({ type: 'joining.claimed', claim: known(context.claim) })),
    showChangedClaim: emit(({ context }) => ({ type: 'joining.claim-changed', claim: known(context.claim) })),
    showRetry: emit(({ context }) => ({ type: 'joining.retrying', attempt: context.attempt })),
  },
  guards: {
    isPrepared: ({ context }) => context.prepared !== null,
    isRefused: (_, answer: object) => 'refused' in answer,
    isEnding: ({ context }, ending: JoiningOutput['outcome']) => context.ending === ending,
    isShownClaim: ({ context }, claimDigest: string) => context.claim?.claimDigest === claimDigest,
    isAt: (_, at: { is: Standing['standing']; answer: Answer }) =>
      isStanding(at.answer) && at.answer.standing === at.is,
    isSameClaim: ({ context }, answer: Answer) =>
      isStanding(answer) && answer.standing === 'claimed' && answer.claim.claimDigest === context.claim?.claimDigest,
    isPinnedKey: ({ context }, answer: Answer) =>
      isStanding(answer) &&
      answer.standing === 'confirmed' &&
      answer.commandKeyFingerprint === context.offer?.commandKeyFingerprint,
  },
  delays: {
    /** Named by the control plane (N-073). */
    expiry: ({ context }) => context.offer?.remainingMs ?? 0,
    poll: 3_000,
    /** Grows to half a minute; the composition root adds the jitter. */
    retry: ({ context }) => Math.min(30_000, 500 * 2 ** Math.min(context.attempt, 6)),
  },
});

/** An event that carries an answer. */
export type Answered = { event: { output: Answer } };

const at = <Is extends Standing['standing']>(is: Is) =>
  ({ type: 'isAt', params: ({ event }: Answered) => ({ is, answer: event.output }) }) as const;

const over = <Ending extends 'refused' | 'cancelled' | 'expired' | 'failed'>(ending: Ending, code: JoiningCode) =>
  ({ type: 'recordEnding', params: { ending, code } }) as const;

/** Answers that end the asking in either flow: both sides confirmed with the key that was shown, or somebody ended it. */
export const settled = [
  {
    guard: { type: 'isPinnedKey', params: ({ event }: Answered) => event.output },
    target: '#joining.saving',
    actions: { type: 'recordPaired', params: ({ event }: Answered) => event.output },
  },
  { guard: at('confirmed'), target: '#joining.clearing', actions: over('refused', 'COMMAND_KEY_CHANGED') },
  { guard: at('refused'), target: '#joining.clearing', actions: over('refused', 'PAIRING_REFUSED') },
  { guard: at('cancelled'), target: '#joining.clearing', actions: over('cancelled', 'PAIRING_CANCELLED') },
  { guard: at('expired'), target: '#joining.clearing', actions: over('expired', 'PAIRING_EXPIRED') },
] as const;

/** A claim to be shown for the first time. */
export const claimed = {
  guard: at('claimed'),
  target: 'reviewing',
  actions: [{ type: 'recordClaim', params: ({ event }: Answered) => event.output }, 'showClaim'],
} as const;

/** A claim that is not the one that the person confirmed: shown anew. */
export const changedClaim = {
  guard: at('claimed'),
  target: 'reviewing',
  actions: [{ type: 'recordClaim', params: ({ event }: Answered) => event.output }, 'showChangedClaim'],
} as const;

/** The control plane refused by a code of its own. */
export const refusedBy = {
  guard: { type: 'isRefused', params: ({ event }: { event: { output: object } }) => event.output },
  target: '#joining.clearing',
  actions: {
    type: 'recordEnding',
    params: ({ event }: { event: { output: object } }) => {
      const code = 'code' in event.output && typeof event.output.code === 'string' ? event.output.code : 'REFUSED';
      return { ending: 'refused', code } as const;
    },
  },
} as const;

/** A final state; outcome, executor and code stand in the context. */
export const ended = (holds: string) => ({ type: 'final', meta: { holds, permits: [] } }) as const;
