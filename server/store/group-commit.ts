import type { ControlledTransaction, Kysely } from 'kysely';
import { StoreFailed } from './store.ts';
import type { Writer } from './store.ts';
import type { Tables } from './tables.ts';

/** Most jobs that share one transaction; what waits beyond them goes into the next. */
const GROUP_LIMIT = 256;

interface Job {
  /** Runs inside the group; tells later, once the group is durable, how it went. */
  run(group: ControlledTransaction<Tables>): Promise<Settle>;
  reject(error: unknown): void;
}

/** Called once the group is durable. */
type Settle = () => void;

/**
 * Collects jobs for one loop turn and commits them together, one after the other, each in its own savepoint. Jobs that arrive
 * while a group still runs join it. A job is told its result after the flush, in the order of arrival.
 */
export class GroupCommit {
  readonly #database: Kysely<Tables>;
  #waiting: Job[] = [];
  #running: Promise<void> | undefined;

  constructor(database: Kysely<Tables>) {
    this.#database = database;
  }

  /** Queues one job. Rejects with what it threw, or StoreFailed. */
  write<Result>(work: (tx: Writer) => Promise<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({
        reject,
        run: async (group) => {
          const mark = await group.savepoint('job').execute();
          try {
            const result = await work(mark);
            await mark.releaseSavepoint('job').execute();
            return () => resolve(result);
          } catch (error) {
            await mark.rollbackToSavepoint('job').execute();
            await mark.releaseSavepoint('job').execute();
            return () => reject(error);
          }
        },
      });
      this.#running ??= this.#drain();
    });
  }

  /** Resolves when nothing waits or runs. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #drain(): Promise<void> {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    while (this.#waiting.length > 0) await this.#commitGroup();
    this.#running = undefined;
  }

  async #commitGroup(): Promise<void> {
    const taken: Job[] = [];
    const settled: Settle[] = [];
    try {
      const group = await this.#database.startTransaction().execute();
      try {
        for (let job = this.#waiting.shift(); job !== undefined; job = this.#next(taken.length)) {
          taken.push(job);
          settled.push(await job.run(group));
        }
        await group.commit().execute();
      } finally {
        if (!group.isCommitted && !group.isRolledBack) await group.rollback().execute();
      }
    } catch (cause) {
      const failure = new StoreFailed('the store could not make this durable; nothing was changed', { cause });
      for (const job of taken.length > 0 ? taken : this.#waiting.splice(0)) job.reject(failure);
      return;
    }
    for (const settle of settled) settle();
  }

  #next(taken: number): Job | undefined {
    return taken < GROUP_LIMIT ? this.#waiting.shift() : undefined;
  }
}
