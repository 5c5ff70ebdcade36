/*
 * Meets the contracts of machines/daemon with this machine's peers. What happens next is decided by the machine; each actor
 * here does one thing once.
 */
import { fromPromise } from 'xstate';
import { daemonMachine } from '../machines/daemon/machine.ts';
import type {
  Connect,
  OpenLedger,
  RecoverPromotion,
  ReleaseLease,
  ReportFault,
  StopGuests,
} from '../machines/daemon/types.ts';
import type { Executions } from './executions.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Promotions } from './promotions.ts';
import type { Sessions } from './session.ts';

/** What the daemon's machine asks for. */
export interface DaemonParts {
  readonly promotions: Promotions;
  readonly sessions: Sessions;
  readonly executions: Executions;
  /** Reads the ledger anew. Rejects with LedgerDamaged. */
  readonly openLedger: () => Promise<Ledger>;
  /** Asked before each handshake: what the machine states of itself must be on disk before it is stated. */
  readonly prepare: () => Promise<void>;
  /** A session stands: the lanes begin. */
  readonly connected: () => void;
  readonly closeLedger: () => Promise<void>;
  /** A recovery that could not be made now, for the log. */
  readonly postponed: (error: unknown) => void;
  /** A handshake that did not come about, for the log. */
  readonly unconnected: (error: unknown) => void;
}

/** The daemon's machine with everything that it asks for. */
export function provideDaemon(parts: DaemonParts): typeof daemonMachine {
  return daemonMachine.provide({
    // The machine says how waits grow; that no two machines wait alike is chance, which is impure and belongs here (N-510).
    delays: {
      backoff: ({ context }) => Math.min(30_000, 250 * 2 ** Math.min(context.attempt, 7)) * (0.75 + Math.random() / 2),
    },
    actors: {
      execution: parts.executions.machine(),
      recoverPromotion: fromPromise<RecoverPromotion['output'], RecoverPromotion['input']>(() =>
        recoverPromotion(parts),
      ),
      openLedger: fromPromise<OpenLedger['output'], OpenLedger['input']>(async () => {
        await parts.openLedger();
        return { open: parts.executions.recall() };
      }),
      connect: fromPromise<Connect['output'], Connect['input']>(() =>
        connect(parts).catch((error: unknown) => {
          parts.unconnected(error);
          throw error;
        }),
      ),
      // There is no guest on this platform yet: none runs, so none has to be stopped.
      stopGuests: fromPromise<StopGuests['output'], StopGuests['input']>(() => Promise.resolve({ stopped: 0 })),
      reportFault: fromPromise<ReportFault['output'], ReportFault['input']>(() => {
        const told = parts.sessions.channel !== undefined;
        parts.sessions.close('the machine is in its error state');
        return Promise.resolve({ told });
      }),
      releaseLease: fromPromise<ReleaseLease['output'], ReleaseLease['input']>(async () => {
        parts.sessions.close('the daemon stops');
        await parts.closeLedger();
        return { released: true };
      }),
    },
  });
}

async function recoverPromotion({ promotions, postponed }: DaemonParts): Promise<RecoverPromotion['output']> {
  try {
    const { outcome } = await promotions.recover();
    return { answer: outcome === 'needs-attention' ? 'needs-person' : 'settled' };
  } catch (error) {
    postponed(error);
    throw error;
  }
}

async function connect(parts: DaemonParts): Promise<Connect['output']> {
  await parts.prepare();
  const session = await parts.sessions.connect();
  switch (session.verdict) {
    case 'revoked':
      return { answer: 'revoked' };
    case 'ledger-behind':
    case 'ledger-forked':
      return { answer: 'state-copied' };
    case 'in-error':
      return { answer: 'in-error' };
    case 'online':
    case 'descriptor-needed':
      parts.connected();
      return { answer: 'connected', epoch: session.epoch };
  }
}
