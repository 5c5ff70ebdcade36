/*
 * Types, actions and guards of the lifecycle, and the events that several of its states share. The invariants that they keep are stated
 * in machine.ts.
 */
import { assign, setup } from 'xstate';
import { declared } from '../meta.ts';
import type { StateMeta } from '../meta.ts';
import { unprovidedActions } from '../unprovided.ts';
import type {
  ExecutorActions,
  ExecutorContext,
  ExecutorEvent,
  ExecutorFault,
  ExecutorInput,
  RevocationReason,
} from './types.ts';

/** Types, actions and guards of the lifecycle; machine.ts adds the states. */
export const executor = setup({
  types: declared<{
    context: ExecutorContext;
    events: ExecutorEvent;
    input: ExecutorInput;
    meta: StateMeta;
  }>(),
  actions: {
    ...unprovidedActions<ExecutorActions>({
      fenceConnections: true,
      invalidateCredentials: true,
      invalidateHandles: true,
      stopLeasing: true,
      eraseSealedPayloads: true,
      refuse: true,
    }),
    raiseEpoch: assign(({ context }) => ({ epoch: context.epoch + 1 })),
    recordFingerprint: assign((_, fingerprint: string) => ({ fingerprint })),
    recordFault: assign((_, fault: ExecutorFault) => ({ fault })),
    clearFault: assign({ fault: null }),
    recordRevocation: assign(({ context }, reason: RevocationReason) => ({
      revokedBecause: context.revokedBecause ?? reason,
    })),
    stopAccepting: assign({ accepting: false }),
    acceptAgain: assign({ accepting: true }),
    takeOffList: assign({ listed: false }),
  },
  guards: {
    isUnconfirmed: ({ context }) => context.fingerprint === null,
    isEnded: ({ context }) => context.revokedBecause !== null,
    isByOwner: (_, by: 'administrator' | 'organization-owner') => by === 'organization-owner',
    isConfirmedKey: ({ context }, fingerprint: string) => context.fingerprint === fingerprint,
    isAccepting: ({ context }) => context.accepting,
    isPaused: ({ context }) => !context.accepting,
    isListed: ({ context }) => context.listed,
  },
});

/** Raise the epoch and fence whatever connection stood under the old one. */
export const advance = [
  'raiseEpoch',
  { type: 'fenceConnections', params: ({ context }: { context: ExecutorContext }) => ({ epoch: context.epoch }) },
] as const;

/** What people decide about access fences the daemon in every state that has a future (N-205). */
export const decisions = {
  'access.changed': { actions: advance },
  'descriptor.reviewed': { actions: advance },
} as const;

/** Ways to the end that every paired state has. */
export const endings = {
  'executor.disconnect': {
    target: 'revoked',
    actions: {
      type: 'recordRevocation',
      params: ({ event }: { event: Extract<ExecutorEvent, { type: 'executor.disconnect' }> }) =>
        event.by === 'organization-owner' ? 'ended-by-organization-owner' : 'disconnected',
    },
  },
  'executor.delete': {
    target: 'revoked',
    actions: [{ type: 'recordRevocation', params: 'deleted' }, 'takeOffList', 'eraseSealedPayloads'],
  },
  'executor.replaced': { target: 'revoked', actions: { type: 'recordRevocation', params: 'replaced' } },
} as const;

/** The machine's state is damaged or a copy: a person must repair it (D-11). */
export const damage = {
  'executor.damaged': {
    target: 'error',
    actions: {
      type: 'recordFault',
      params: ({ event }: { event: Extract<ExecutorEvent, { type: 'executor.damaged' }> }) => event.fault,
    },
  },
} as const;

/** A proof by the confirmed key is a new connection; any other key is refused (N-068). */
export const proof = <Target extends string>(target: Target) =>
  [
    {
      guard: {
        type: 'isConfirmedKey',
        params: ({ event }: { event: Extract<ExecutorEvent, { type: 'executor.proved' }> }) => event.fingerprint,
      },
      target,
      reenter: true,
    },
    { actions: { type: 'refuse', params: { code: 'FINGERPRINT_NOT_CONFIRMED' } } },
  ] as const;
