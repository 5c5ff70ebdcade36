/*
 * Types, actors, actions and guards of a daemon, and the events that every state with a connection shares. The invariants that they
 * keep are stated in machine.ts.
 */
import { assign, emit, enqueueActions, sendTo, setup } from 'xstate';
import { executionMachine } from '../command/execution.ts';
import type { ExecutionEvent, ExecutionInput } from '../command/types.ts';
import { declared } from '../meta.ts';
import type { Permit, StateMeta } from '../meta.ts';
import { unprovided } from '../unprovided.ts';
import type {
  Connect,
  ConnectAnswer,
  DaemonContext,
  DaemonEmitted,
  DaemonEvent,
  DaemonFault,
  DaemonInput,
  DaemonOutput,
  OpenLedger,
  RecoverAnswer,
  RecoverPromotion,
  ReleaseLease,
  ReportFault,
  StopCause,
  StopGuests,
} from './types.ts';

/** Which requests each actor of a daemon makes itself; a state that invokes one must permit them. A command permits for itself. */
export const daemonRequests = {
  recoverPromotion: ['promote.recover'],
  openLedger: ['ledger.read', 'ledger.append'],
  connect: ['link.open', 'link.send', 'keystore.sign'],
  stopGuests: ['guests.stop'],
  reportFault: ['link.send', 'link.close', 'keystore.sign'],
  releaseLease: ['link.send', 'link.close', 'lock.release'],
  execution: [],
} as const satisfies Record<string, readonly Permit[]>;

const OVERTAKEN_LIMIT = 1024;

/** No valid control answer for this long, in ms: no step starts (design section 4). A timer of this length is the one that answers put off. */
export const CONTROL_SILENCE_MS = 3_000;

/** Id of the actor of a command. */
const actorOf = (commandId: string) => `command-${commandId}` as const;

const without = (ids: readonly string[], id: string): readonly string[] => ids.filter((one) => one !== id);

const base = setup({
  types: declared<{
    context: DaemonContext;
    events: DaemonEvent;
    input: DaemonInput;
    output: DaemonOutput;
    emitted: DaemonEmitted;
    meta: StateMeta;
    children: { [Id in `command-${string}`]: 'execution' };
  }>(),
  actors: {
    execution: executionMachine,
    recoverPromotion: unprovided<RecoverPromotion['output'], RecoverPromotion['input']>('recoverPromotion'),
    openLedger: unprovided<OpenLedger['output'], OpenLedger['input']>('openLedger'),
    connect: unprovided<Connect['output'], Connect['input']>('connect'),
    stopGuests: unprovided<StopGuests['output'], StopGuests['input']>('stopGuests'),
    reportFault: unprovided<ReportFault['output'], ReportFault['input']>('reportFault'),
    releaseLease: unprovided<ReleaseLease['output'], ReleaseLease['input']>('releaseLease'),
  },
  guards: {
    isAnswered: (_, at: { is: ConnectAnswer['answer']; answer: ConnectAnswer }) => at.answer.answer === at.is,
    isSettled: (_, recovered: RecoverAnswer) => recovered.answer === 'settled',
    isHeld: ({ context }, commandId: string) => context.held.includes(commandId),
    isDraining: (_, standing: string) => standing === 'draining',
    isCommand: ({ context }, actorId: string) => context.held.some((commandId) => actorOf(commandId) === actorId),
    isEmpty: ({ context }) => context.held.length === 0,
    isRevoked: ({ context }) => context.cause === 'revoked',
  },
  delays: {
    controlSilence: CONTROL_SILENCE_MS,
    /** And for this long on top of it: everything stops; 60 s together. */
    controlDeadline: 57_000,
    /** Grows to half a minute; the composition root adds the jitter (N-510). */
    backoff: ({ context }) => Math.min(30_000, 250 * 2 ** Math.min(context.attempt, 7)),
    /** How long held commands get to record their ends when the daemon stops. */
    settleBudget: 5_000,
    /** Teardown budget of N-224. */
    stopBudget: 10_000,
  },
});

/** Parameters of each action of a daemon by its name. */
type DaemonActions = {
  resumeHeld: readonly ExecutionInput[];
  take: ExecutionInput;
  letGo: string;
  tellAll: ExecutionEvent;
  cancelHeld: string;
  giveTurn: string;
  giveTurns: undefined;
  keepTurn: string;
  keepCancel: string;
  recordConnection: ConnectAnswer;
  countAttempt: undefined;
  clearAttempts: undefined;
  recordFault: DaemonFault;
  clearFault: undefined;
  recordCause: StopCause;
  showConnection: undefined;
  showRetry: undefined;
  showFault: DaemonFault;
  showOverdue: undefined;
  repeatReceipts: string;
  refuseWork: string;
  dropLate: undefined;
};

/** Types, actors, actions, guards and delays of a daemon; machine.ts adds the states. */
export const daemon = base.extend<DaemonActions>({
  actions: {
    resumeHeld: enqueueActions(({ context, enqueue }, open: readonly ExecutionInput[]) => {
      const forgotten = open.filter(({ commandId }) => !context.held.includes(commandId));
      for (const input of forgotten) enqueue.spawnChild('execution', { id: actorOf(input.commandId), input });
      enqueue.assign({ held: [...context.held, ...forgotten.map(({ commandId }) => commandId)] });
    }),
    take: enqueueActions(({ context, enqueue }, execution: ExecutionInput) => {
      const { commandId } = execution;
      const input = { ...execution, cancelled: execution.cancelled || context.overtaken.includes(commandId) };
      enqueue.spawnChild('execution', { id: actorOf(commandId), input });
      enqueue.assign({ held: [...context.held, commandId], overtaken: without(context.overtaken, commandId) });
    }),
    letGo: enqueueActions(({ context, enqueue }, actorId: string) => {
      const isOther = (commandId: string): boolean => actorOf(commandId) !== actorId;
      enqueue.stopChild(actorId);
      enqueue.assign({ held: context.held.filter(isOther), turns: context.turns.filter(isOther) });
    }),
    tellAll: enqueueActions(({ context, enqueue }, event: ExecutionEvent) => {
      for (const commandId of context.held) enqueue.sendTo(actorOf(commandId), event);
    }),
    cancelHeld: sendTo((_, commandId: string) => actorOf(commandId), { type: 'execution.cancel' }),
    giveTurn: sendTo((_, commandId: string) => actorOf(commandId), { type: 'execution.start' }),
    giveTurns: enqueueActions(({ context, enqueue }) => {
      for (const commandId of context.turns) enqueue.sendTo(actorOf(commandId), { type: 'execution.start' });
      enqueue.assign({ turns: [] });
    }),
    keepTurn: assign(({ context }, commandId: string) => {
      return { turns: [...without(context.turns, commandId), commandId] };
    }),
    keepCancel: assign(({ context }, commandId: string) => {
      return { overtaken: [...without(context.overtaken, commandId), commandId].slice(-OVERTAKEN_LIMIT) };
    }),
    recordConnection: assign(({ context }, answer: ConnectAnswer) => {
      return { epoch: answer.answer === 'connected' ? answer.epoch : context.epoch, attempt: 0 };
    }),
    countAttempt: assign(({ context }) => ({ attempt: context.attempt + 1 })),
    clearAttempts: assign({ attempt: 0 }),
    recordFault: assign((_, fault: DaemonFault) => ({ fault })),
    clearFault: assign({ fault: null }),
    recordCause: assign((_, cause: StopCause) => ({ cause })),
    showConnection: emit(({ context }) => ({ type: 'daemon.connected', epoch: context.epoch })),
    showRetry: emit(({ context }) => ({ type: 'daemon.retrying', attempt: context.attempt })),
    showFault: emit((_, fault: DaemonFault) => ({ type: 'daemon.faulted', fault })),
    showOverdue: emit({ type: 'daemon.stop-overdue' }),
    repeatReceipts: emit((_, commandId: string) => ({ type: 'daemon.work-repeated', commandId })),
    refuseWork: emit((_, commandId: string) => ({ type: 'daemon.work-refused', commandId, code: 'EXECUTOR_DRAINING' })),
    /** What came late: the connection or the command that it is about is over. */
    dropLate: () => undefined,
  },
});

type Of<Type extends DaemonEvent['type']> = { event: Extract<DaemonEvent, { type: Type }> };

const commandOf = ({ event }: { event: { commandId: string } }): string => event.commandId;
const isHeld = { type: 'isHeld', params: commandOf } as const;

/** Everything that was delivered by a connection hears that it is over; what has not started does not start any more. */
export const fence = { type: 'tellAll', params: { type: 'execution.fenced' } } as const;

/** Everything that runs is asked to stop, since nobody can take anything back any more. */
export const stopAll = { type: 'tellAll', params: { type: 'execution.stop', reason: 'control-lost' } } as const;

/** A cancel goes to its command, or waits for it. */
export const cancels = [
  { guard: isHeld, actions: { type: 'cancelHeld', params: commandOf } },
  { actions: { type: 'keepCancel', params: commandOf } },
] as const;

/** Into `error`, with its reason. */
export const faulted = (fault: DaemonFault) =>
  ({
    target: '#daemon.error',
    actions: [
      { type: 'recordFault', params: fault },
      { type: 'showFault', params: fault },
    ],
  }) as const;

const letGo = {
  type: 'letGo',
  params: ({ event }: { event: { actorId: string } }) => event.actorId,
} as const;

/** A command closed: it is held no longer. */
export const closed = [
  {
    guard: { type: 'isCommand', params: ({ event }: { event: { actorId: string } }) => event.actorId },
    actions: letGo,
  },
  { actions: 'dropLate' },
] as const;

/** A command threw, which no state of the world makes it do: nothing that it says is believed any more. */
export const broken = {
  target: '#daemon.error',
  actions: [
    letGo,
    { type: 'recordFault', params: 'EXECUTION_BROKEN' },
    { type: 'showFault', params: 'EXECUTION_BROKEN' },
  ],
} as const;

/** Ways out of every state with a connection. */
export const connectionEnds = {
  'control.fenced': { target: '#daemon.fenced' },
  'connection.lost': { target: '#daemon.connecting', actions: fence },
} as const;

/** Delivered work becomes a command, once; the same envelope again asks for its receipts again. */
export const takesWork = [
  {
    guard: { type: 'isHeld', params: ({ event }: Of<'work.received'>) => event.execution.commandId },
    actions: { type: 'repeatReceipts', params: ({ event }: Of<'work.received'>) => event.execution.commandId },
  },
  { actions: { type: 'take', params: ({ event }: Of<'work.received'>) => event.execution } },
] as const;

/** While draining only what is held goes on (N-204). */
export const refusesWork = [
  takesWork[0],
  { actions: { type: 'refuseWork', params: ({ event }: Of<'work.received'>) => event.execution.commandId } },
] as const;

/** The control plane answered within the last three seconds: steps may start. */
export const heard = daemon.createStateConfig({
  meta: {
    holds: 'A valid control answer came within the last three seconds; a command that has its turn may start.',
    permits: ['link.send', 'keystore.sign'],
  },
  after: { controlSilence: { target: 'unheard' } },
  on: {
    'work.turn': [{ guard: isHeld, actions: { type: 'giveTurn', params: commandOf } }, { actions: 'dropLate' }],
    'control.answered': [
      {
        guard: { type: 'isDraining', params: ({ event }) => event.standing },
        target: '#daemon.draining.heard',
        reenter: true,
      },
      { target: 'heard', reenter: true },
    ],
  },
});

/** The control plane is silent: nothing starts, and after a minute nothing runs. */
export const unheard = daemon.createStateConfig({
  meta: {
    holds: 'No valid control answer came for three seconds; what runs goes on and nothing starts.',
    permits: ['link.send', 'keystore.sign'],
  },
  after: { controlDeadline: { target: '#daemon.fenced', actions: stopAll } },
  on: {
    'work.turn': [{ guard: isHeld, actions: { type: 'keepTurn', params: commandOf } }, { actions: 'dropLate' }],
    'connection.lost': { target: '#daemon.fenced', actions: stopAll },
    'control.answered': [
      {
        guard: { type: 'isDraining', params: ({ event }) => event.standing },
        target: '#daemon.draining.heard',
        actions: 'giveTurns',
      },
      { target: 'heard', actions: 'giveTurns' },
    ],
  },
});
