/*
 * When an operation must end: a deadline, and a wish that may arrive at any time. It is asked between pieces of work, in the
 * main thread and in the pool alike, so nothing is cut off in the middle of a write.
 */
import { setImmediate } from 'node:timers/promises';

import { OperationFailed } from './failures.ts';

/** A piece of work that is longer keeps a stop waiting, ms. */
const BREATH_MS = 8;

/** What crosses to a thread of the pool: shared memory of one flag, and ms of the monotonic clock that all threads share. */
export interface EndingMark {
  readonly flag: SharedArrayBuffer;
  readonly untilMs: number;
}

/** Milliseconds of the clock that no one sets. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}

/** The end of one operation. */
export class Ending {
  readonly mark: EndingMark;
  readonly #flag: Int32Array;
  #breathedMs = monotonicMs();

  constructor(mark: EndingMark) {
    this.mark = mark;
    this.#flag = new Int32Array(mark.flag);
  }

  /** An ending that many ms from now. */
  static within(ms: number): Ending {
    return new Ending({ flag: new SharedArrayBuffer(4), untilMs: monotonicMs() + ms });
  }

  /** Ends the operation at its next piece. */
  cancel(): void {
    Atomics.store(this.#flag, 0, 1);
  }

  /** Milliseconds that are left; negative when the time is over. */
  get remainingMs(): number {
    return this.mark.untilMs - monotonicMs();
  }

  /** Throws OperationFailed CANCELLED or EXPIRED when it is time. */
  check(): void {
    if (Atomics.load(this.#flag, 0) !== 0) throw new OperationFailed('CANCELLED', 'the operation was cancelled');
    if (this.remainingMs <= 0)
      throw new OperationFailed('EXPIRED', 'the operation took longer than it may; ask for less at a time');
  }

  /** Lets other work of this thread run when it has waited long enough, then checks. */
  async breathe(): Promise<void> {
    if (monotonicMs() - this.#breathedMs > BREATH_MS) {
      await setImmediate();
      this.#breathedMs = monotonicMs();
    }
    this.check();
  }
}
