import type { Plain } from '../../helpers/protocol/codec.ts';
import type { CommandId } from '../../helpers/protocol/ids.ts';
import type { Gate, Outcome } from '../../machines/values.ts';
import type { QuestionBody } from '../protocol.ts';

/** How a command ended, for whoever waits for it. */
export interface CommandEnd {
  readonly outcome: Outcome;
  /** Side that refused it, null where nobody did. */
  readonly gate: Gate | null;
  readonly code: string | null;
  /** Decoded result, checked against the operation's schema; undefined where there is none. */
  readonly result: Plain | undefined;
}

/** Progress of a long command as its machine told it. */
export type Progress = Omit<QuestionBody<'progress'>, 'command'>;

function ignore(): void {
  // Whoever waits for the end alone.
}

interface Waiter {
  readonly ended: (end: CommandEnd) => void;
  readonly progress: (progress: Progress) => void;
}

/** Who waits in this process for the end of which command. What happened is in the store; this only wakes. */
export class Outcomes {
  readonly #waiting = new Map<CommandId, Set<Waiter>>();
  readonly #reached = new Map<CommandId, number>();

  /**
   * Waits for the end of a command: undefined when `withinMs` passed or the signal came first. Listen before the command is
   * dispatched: an end that nobody waits for is not told again.
   */
  async wait(
    command: CommandId,
    how: { readonly withinMs: number; readonly signal?: AbortSignal; progress?: (progress: Progress) => void },
  ): Promise<CommandEnd | undefined> {
    const { withinMs, signal, progress = ignore } = how;
    if (signal?.aborted) return undefined;
    return new Promise((resolve) => {
      const finish = (end: CommandEnd | undefined): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', aborted);
        this.#remove(command, waiter);
        resolve(end);
      };
      const aborted = (): void => finish(undefined);
      const timer = setTimeout(aborted, withinMs);
      const waiter: Waiter = { ended: finish, progress };
      signal?.addEventListener('abort', aborted, { once: true });
      const waiters = this.#waiting.get(command) ?? new Set();
      this.#waiting.set(command, waiters.add(waiter));
    });
  }

  /** Wakes whoever waits for this command. */
  tell(command: CommandId, end: CommandEnd): void {
    for (const waiter of this.#waiting.get(command) ?? []) waiter.ended(end);
  }

  /** Hands on progress whose number is higher than the last; the rest is dropped (R70). */
  tellProgress(command: CommandId, progress: Progress): void {
    const waiters = this.#waiting.get(command);
    if (!waiters || progress.number <= (this.#reached.get(command) ?? -1)) return;
    this.#reached.set(command, progress.number);
    for (const waiter of waiters) waiter.progress(progress);
  }

  /** Number of waiters in this process. */
  get size(): number {
    let size = 0;
    for (const waiters of this.#waiting.values()) size += waiters.size;
    return size;
  }

  #remove(command: CommandId, waiter: Waiter): void {
    const waiters = this.#waiting.get(command);
    waiters?.delete(waiter);
    if (waiters?.size === 0) {
      this.#waiting.delete(command);
      this.#reached.delete(command);
    }
  }
}
