import type { CommandId } from '../../helpers/protocol/ids.ts';
import type { Progress } from '../wake.ts';

/** Least time between two that are told of one command, in ms: four a second. */
const APART_MS = 250;

interface Paced {
  readonly timer: NodeJS.Timeout;
  latest: Progress | undefined;
}

/**
 * Progress of commands at a pace that pages can read: the first at once, then at most four a second, the latest of those that came.
 *
 * THREAT: a machine sends progress without end, and each costs every open page two looks into the store. What a machine sends is
 * therefore only remembered, and the clock decides when it is told (test/server/events/pace.test.ts).
 */
export class ProgressPace {
  readonly #tell: (progress: Progress) => void;
  readonly #paced = new Map<CommandId, Paced>();

  constructor(tell: (progress: Progress) => void) {
    this.#tell = tell;
  }

  /** Takes what a machine sent. */
  take(progress: Progress): void {
    const paced = this.#paced.get(progress.command);
    if (paced) paced.latest = progress;
    else this.#pass(progress);
  }

  /** Forgets what waits. */
  stop(): void {
    for (const { timer } of this.#paced.values()) clearTimeout(timer);
    this.#paced.clear();
  }

  #pass(progress: Progress): void {
    const timer = setTimeout(() => this.#due(progress.command), APART_MS);
    this.#paced.set(progress.command, { timer, latest: undefined });
    this.#tell(progress);
  }

  #due(command: CommandId): void {
    const latest = this.#paced.get(command)?.latest;
    this.#paced.delete(command);
    if (latest) this.#pass(latest);
  }
}
