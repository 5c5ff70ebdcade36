import { EventEmitter } from 'node:events';
import type { CommandId, ExecutorId, PairingId, PersonId, RunId } from '../helpers/protocol/ids.ts';

/** Something changed; what it is now is read from the store by whoever may see it. */
export type Change =
  | { readonly of: 'executor'; readonly id: ExecutorId }
  | { readonly of: 'run'; readonly id: RunId }
  | { readonly of: 'pairing'; readonly id: PairingId; readonly person: PersonId }
  | { readonly of: 'account'; readonly id: PersonId }
  | { readonly of: 'progress'; readonly id: CommandId; readonly progress: Progress };

/** How far a long command is: shown to the person of its run, bounded, changes nothing (N-512). */
export interface Progress {
  readonly run: RunId;
  readonly command: CommandId;
  readonly operation: string;
  readonly done: number;
  readonly total: number;
  readonly phase: string;
}

/** Tells waiting questions and pages of this process that something changed, always after its commit. */
export interface Wake {
  /** Standing, grants, access, policy or descriptor of an executor changed: its held questions are answered at once. */
  executor(id: ExecutorId): void;
  run(id: RunId): void;
  pairing(id: PairingId, person: PersonId): void;
  account(id: PersonId): void;
  progress(progress: Progress): void;
  /** Hears every change until the returned function is called. A listener must not throw. */
  listen(listener: (change: Change) => void): () => void;
}

/** A bus inside one process. */
export function createWake(): Wake {
  const bus = new EventEmitter();
  bus.setMaxListeners(0);
  const tell = (change: Change): void => {
    bus.emit('change', change);
  };
  return {
    executor: (id) => tell({ of: 'executor', id }),
    run: (id) => tell({ of: 'run', id }),
    pairing: (id, person) => tell({ of: 'pairing', id, person }),
    account: (id) => tell({ of: 'account', id }),
    progress: (progress) => tell({ of: 'progress', id: progress.command, progress }),
    listen: (listener) => {
      bus.on('change', listener);
      return () => bus.off('change', listener);
    },
  };
}
