import type { ExecutorId } from '../../helpers/protocol/ids.ts';
import type { CommandFrame } from '../protocol.ts';

/** A `work` question that is held open. */
export interface WorkQuestion {
  readonly epoch: number;
  /** Most commands that its answer may carry. */
  readonly capacity: number;
  /** Sends the answer; false when the connection ended meanwhile. */
  answer(commands: readonly CommandFrame[]): boolean;
  /** Holds it again after it was taken, or answers it with nothing where its time passed meanwhile. */
  putBack(): void;
}

/** The connection of one executor, as the rest of the control plane sees it. */
export interface Connection {
  readonly executor: ExecutorId;
  readonly epoch: number;
  /** Looks again at what the executor may do, and answers the held control question with it. */
  wake(): void;
  /** A newer connection proved itself, or this process stops. */
  end(reason: 'fenced' | 'stopping'): void;
}

/**
 * Connections and held questions of this process. The store says what is true; a question held here is only an opportunity to
 * answer, which the transaction of the answer checks against the store.
 */
export class Lanes {
  readonly #connections = new Map<ExecutorId, Connection>();
  readonly #work = new Map<ExecutorId, WorkQuestion>();

  /** Takes a proved connection; the one before it is fenced. */
  join(connection: Connection): void {
    const before = this.#connections.get(connection.executor);
    this.#connections.set(connection.executor, connection);
    this.#work.delete(connection.executor);
    before?.end('fenced');
  }

  /** Forgets a connection that ended. False where a newer one took its place already. */
  leave(connection: Connection): boolean {
    if (this.#connections.get(connection.executor) !== connection) return false;
    this.#connections.delete(connection.executor);
    this.#work.delete(connection.executor);
    return true;
  }

  /** The current connection of an executor in this process. */
  find(executor: ExecutorId): Connection | undefined {
    return this.#connections.get(executor);
  }

  /** Every connection. */
  get all(): readonly Connection[] {
    return [...this.#connections.values()];
  }

  /** Holds a work question of the current connection. */
  holdWork(executor: ExecutorId, question: WorkQuestion): void {
    if (this.#connections.get(executor)?.epoch === question.epoch) this.#work.set(executor, question);
  }

  /** Takes the held work question, so that nobody else answers it; its `putBack` gives it back. */
  takeWork(executor: ExecutorId): WorkQuestion | undefined {
    const question = this.#work.get(executor);
    this.#work.delete(executor);
    return question;
  }

  /** Takes exactly this question if it is still held: its hold ended. */
  releaseWork(executor: ExecutorId, question: WorkQuestion): boolean {
    return this.#work.get(executor) === question && this.#work.delete(executor);
  }
}
