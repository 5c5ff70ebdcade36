/*
 * Whose turn it is: commands of one run go one after another in the order of arrival, runs go side by side, and no more than
 * the owner's limit at once. Pure bookkeeping; who has a turn is told, nothing is started here.
 */
import type { CommandId, RunId } from '../helpers/protocol/ids.ts';

/** Queues of one daemon. */
export class Scheduler {
  readonly #queues = new Map<RunId, CommandId[]>();
  readonly #active = new Map<CommandId, RunId>();
  readonly #limit: () => number;
  readonly #turn: (command: CommandId) => void;

  /** `limit` is asked each time, because the owner may narrow it while commands run. */
  constructor(limit: () => number, turn: (command: CommandId) => void) {
    this.#limit = limit;
    this.#turn = turn;
  }

  /** Commands that hold a turn or wait for one. */
  get held(): number {
    let waiting = 0;
    for (const queue of this.#queues.values()) waiting += queue.length;
    return waiting + this.#active.size;
  }

  /** Queues a command; its turn may come before this returns. */
  enqueue(run: RunId, command: CommandId): void {
    const queue = this.#queues.get(run);
    if (queue) queue.push(command);
    else this.#queues.set(run, [command]);
    this.#advance();
  }

  /** A command closed, whether its turn had come or not. */
  release(run: RunId, command: CommandId): void {
    this.#active.delete(command);
    const rest = this.#queues.get(run)?.filter((queued) => queued !== command) ?? [];
    if (rest.length > 0) this.#queues.set(run, rest);
    else this.#queues.delete(run);
    this.#advance();
  }

  #advance(): void {
    const busy = new Set(this.#active.values());
    for (const [run, queue] of this.#queues) {
      if (this.#active.size >= this.#limit()) return;
      const next = busy.has(run) ? undefined : queue.shift();
      if (next === undefined) continue;
      if (queue.length === 0) this.#queues.delete(run);
      busy.add(run);
      this.#active.set(next, run);
      this.#turn(next);
    }
  }
}
