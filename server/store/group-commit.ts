import type { ControlledTransaction, Kysely } from 'kysely';
import type { Flush } from './flush.ts';
import { StoreFailed } from './store.ts';
import type { Writer } from './store.ts';
import type { Tables } from './tables.ts';

/** Most jobs that share one transaction; what waits beyond them goes into the next. */
const GROUP_LIMIT = 256;

interface Job {
  /** Runs first in a group, which is the job's own to take back. */
  runFirst(group: ControlledTransaction<Tables>): Promise<Settle>;
  /** Runs in a group that holds others' work already; tells later, once the group is durable, how it went. */
  runWithin(group: ControlledTransaction<Tables>): Promise<Settle>;
  reject(error: unknown): void;
}

/** Called once the group is durable. */
type Settle = () => void;

/** The first job of a group failed: nothing of the group stands, and nobody else was in it. */
class FirstFailed extends Error {
  override readonly name = 'FirstFailed';
}

/**
 * Collects jobs for one loop turn and commits them together, one after the other. Jobs that arrive while a group still runs join it. The
 * first needs no savepoint, since taking the whole group back takes back nothing else; each later one has its own. A job is told its
 * result after the flush, in the order of arrival; the next group runs meanwhile.
 */
export class GroupCommit {
  readonly #database: Kysely<Tables>;
  readonly #flush: Flush;
  #waiting: Job[] = [];
  #running: Promise<void> | undefined;

  constructor(database: Kysely<Tables>, flush: Flush) {
    this.#database = database;
    this.#flush = flush;
  }

  /** Queues one job. Rejects with what it threw, or StoreFailed. */
  write<Result>(work: (tx: Writer) => Promise<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiting.push({
        reject,
        runFirst: async (group) => {
          try {
            const result = await work(group);
            return () => resolve(result);
          } catch (error) {
            await group.rollback().execute();
            reject(error);
            throw new FirstFailed();
          }
        },
        runWithin: async (group) => {
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

  /** Resolves when nothing waits, runs or is being flushed. */
  async idle(): Promise<void> {
    await this.#running;
    await this.#flush.idle();
  }

  async #drain(): Promise<void> {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    for (let first = this.#waiting.shift(); first !== undefined; first = this.#waiting.shift()) {
      await this.#commitGroup(first);
    }
    this.#running = undefined;
  }

  async #commitGroup(first: Job): Promise<void> {
    const taken: Job[] = [first];
    const settled: Settle[] = [];
    try {
      this.#flush.requireSound();
      const group = await this.#database.startTransaction().execute();
      try {
        settled.push(await first.runFirst(group));
        for (let job = this.#next(taken.length); job !== undefined; job = this.#next(taken.length)) {
          taken.push(job);
          settled.push(await job.runWithin(group));
        }
        await group.commit().execute();
      } finally {
        if (!group.isCommitted && !group.isRolledBack) await group.rollback().execute();
      }
    } catch (cause) {
      if (cause instanceof FirstFailed) return;
      const failure = new StoreFailed('the store could not make this durable; nothing was changed', { cause });
      for (const job of taken) job.reject(failure);
      return;
    }
    this.#flush.written().then(
      () => {
        for (const settle of settled) settle();
      },
      (failure: unknown) => {
        for (const job of taken) job.reject(failure);
      },
    );
  }

  #next(taken: number): Job | undefined {
    return taken < GROUP_LIMIT ? this.#waiting.shift() : undefined;
  }
}
