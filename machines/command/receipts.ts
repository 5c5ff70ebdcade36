/*
 * How receipts move a command of the control plane: its guards, and the transitions that several states of machine.ts share.
 * The invariants that they keep are stated there.
 */
import { assign, setup } from 'xstate';
import { declared } from '../meta.ts';
import type { StateMeta } from '../meta.ts';
import { unprovidedActions } from '../unprovided.ts';
import type { Gate, KnownOutcome } from '../values.ts';
import type {
  Canceller,
  CommandActions,
  CommandContext,
  CommandEvent,
  CommandInput,
  CommandOutput,
  Link,
  UnknownReason,
} from './types.ts';

type Of<Type extends CommandEvent['type']> = { event: Extract<CommandEvent, { type: Type }> };

/** Types, actions and guards of the command machine; machine.ts adds the states. */
export const command = setup({
  types: declared<{
    context: CommandContext;
    events: CommandEvent;
    input: CommandInput;
    output: CommandOutput;
    meta: StateMeta;
  }>(),
  actions: {
    ...unprovidedActions<CommandActions>({
      askMachineToCancel: true,
      countersign: true,
      refuseResult: true,
      tellWaiter: true,
      refuse: true,
    }),
    recordLease: assign((_, lease: { epoch: number; envelopeDigest: string; receiptDigest: string }) => ({
      epoch: lease.epoch,
      envelopeDigest: lease.envelopeDigest,
      leasedDigest: lease.receiptDigest,
      headDigest: lease.receiptDigest,
    })),
    recordAccepted: assign((_, digest: string) => ({ acceptedDigest: digest, headDigest: digest })),
    recordLink: assign((_, digest: string) => ({ headDigest: digest })),
    recordCode: assign((_, end: { code: string | null; gate: Gate | null }) => end),
    recordCanceller: assign((_, by: Canceller) => ({ cancelledBy: by })),
    recordUnknown: assign((_, because: UnknownReason) => ({ unknownBecause: because })),
  },
  guards: {
    isForeign: ({ context }, link: { epoch: number }) => context.epoch !== link.epoch,
    isNextLink: ({ context }, link: Link) => context.epoch === link.epoch && context.headDigest === link.previousDigest,
    isNextLinkEnding: ({ context }, end: Link & { is: KnownOutcome; outcome: KnownOutcome }) =>
      end.is === end.outcome && context.epoch === end.epoch && context.headDigest === end.previousDigest,
    isOwnChain: (
      { context },
      late: { is: KnownOutcome; outcome: KnownOutcome; leasedDigest: string; acceptedDigest: string | null },
    ) =>
      late.is === late.outcome &&
      context.leasedDigest === late.leasedDigest &&
      (context.acceptedDigest === null || context.acceptedDigest === late.acceptedDigest),
  },
});

/** First branch of whatever a connection brings: one that did not lease the command is refused (R57, R58). */
export const foreign = {
  guard: { type: 'isForeign', params: ({ event }: { event: { epoch: number } }) => ({ epoch: event.epoch }) },
  actions: { type: 'refuse', params: { code: 'CONNECTION_FENCED' } },
} as const;
/** Last branch of whatever carries a receipt: it is not the next link. */
export const broken = { actions: { type: 'refuse', params: { code: 'RECEIPT_CHAIN_BROKEN' } } } as const;
/** Guard: the receipt names the last statement of the chain as the one before it. */
export const nextLink = {
  type: 'isNextLink',
  params: ({ event }: { event: Link }) => ({ epoch: event.epoch, previousDigest: event.previousDigest }),
} as const;

/** An `accepted` receipt that leads to `target` if it is the next link of this connection's chain. */
export const accepted = <Target extends string>(target: Target) =>
  [
    foreign,
    {
      guard: nextLink,
      target,
      actions: { type: 'recordAccepted', params: ({ event }: Of<'receipt.accepted'>) => event.receiptDigest },
    },
    broken,
  ] as const;

/** A `started` receipt that leads to `target` if it is the next link. */
export const started = <Target extends string>(target: Target) =>
  [
    foreign,
    {
      guard: nextLink,
      target,
      actions: { type: 'recordLink', params: ({ event }: Of<'receipt.started'>) => event.receiptDigest },
    },
    broken,
  ] as const;

/** What every proven ending records and asks for. */
const proven = [
  { type: 'recordLink', params: ({ event }: Of<EndingType>) => event.ending.receiptDigest },
  {
    type: 'recordCode',
    params: ({ event }: Of<EndingType>) => {
      return { code: event.ending.code, gate: event.ending.outcome === 'refused' ? 'machine' : null } as const;
    },
  },
  {
    type: 'countersign',
    params: ({ event }: Of<EndingType>) => ({ receiptDigest: event.ending.receiptDigest }),
  },
] as const;
type EndingType = 'receipt.not-started' | 'result.received' | 'receipt.late';

/** An ending within the connection, if it is the next link and says `outcome`. */
const ending = <Is extends KnownOutcome>(is: Is) =>
  ({
    guard: {
      type: 'isNextLinkEnding',
      params: ({ event }: Of<'receipt.not-started' | 'result.received'>) => {
        return { is, outcome: event.ending.outcome, epoch: event.epoch, previousDigest: event.previousDigest };
      },
    },
    target: `#command.${is}`,
    actions: proven,
  }) as const;

/** A late ending, if its chain is this command's own and says `outcome`. */
export const late = <Is extends KnownOutcome>(is: Is) =>
  ({
    guard: {
      type: 'isOwnChain',
      params: ({ event }: Of<'receipt.late'>) => {
        const { leasedDigest, acceptedDigest } = event;
        return { is, outcome: event.ending.outcome, leasedDigest, acceptedDigest };
      },
    },
    target: `#command.${is}`,
    actions: proven,
  }) as const;

/** Branches of `receipt.not-started`: the machine says how it ended without a start. */
export const notStarted = [foreign, ending('refused'), ending('cancelled'), ending('expired'), broken] as const;
/** Branches of `result.received`: the machine says how it ended after the start. */
export const result = [
  foreign,
  ending('succeeded'),
  ending('failed'),
  ending('cancelled'),
  ending('expired'),
  broken,
] as const;
/** Branches of `result.unacceptable`: the machine is told to replace its result, once (N-119). */
export const unacceptable = [
  foreign,
  {
    guard: nextLink,
    target: '#command.replacing',
    actions: [
      { type: 'recordLink', params: ({ event }: Of<'result.unacceptable'>) => event.receiptDigest },
      { type: 'recordCode', params: ({ event }: Of<'result.unacceptable'>) => ({ code: event.code, gate: null }) },
      { type: 'refuseResult', params: ({ event }: Of<'result.unacceptable'>) => ({ code: event.code }) },
    ],
  },
  broken,
] as const;

/** What makes a leased command unknown: its connection ends, or its lifetime does. */
export const losses = {
  'connection.lost': [
    foreign,
    { target: '#command.unknown', actions: { type: 'recordUnknown', params: 'connection-lost' } },
  ],
  'command.expired': { target: '#command.unknown', actions: { type: 'recordUnknown', params: 'lifetime-passed' } },
} as const;

/** A wish to end a leased command: kept, and put to the machine. */
export const cancel = <Target extends string>(target: Target) =>
  ({
    target,
    actions: [{ type: 'recordCanceller', params: ({ event }: Of<'command.cancel'>) => event.by }, 'askMachineToCancel'],
  }) as const;

/** A final state: whoever waits is told, once. */
export const ended = <Is extends KnownOutcome>(outcome: Is, holds: string) =>
  ({
    type: 'final',
    meta: { holds, permits: [] },
    entry: { type: 'tellWaiter', params: { outcome } },
    output: outcome,
  }) as const;
