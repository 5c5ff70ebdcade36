import { fdatasync } from 'node:fs';
import { promisify } from 'node:util';
import { StoreFailed } from './store.ts';

const sync = promisify(fdatasync);

/**
 * Makes a written log durable off the event loop. Whatever is written while a flush runs shares the next one.
 *
 * A failed flush is final: the kernel may have dropped the pages and will call the next flush a success, so nothing is written any
 * more by this process. What was committed is seen by its readers and may be gone after a restart.
 */
export class Flush {
  readonly #descriptor: number;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #failure: StoreFailed | undefined;

  /** `descriptor` is the log's; it stays the caller's to close. */
  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** Throws StoreFailed after a flush has failed. */
  requireSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Resolves when everything written before this call is durable. Rejects with StoreFailed. */
  written(): Promise<void> {
    this.#next ??= this.#after(this.#running);
    return this.#next;
  }

  /** Resolves when no flush is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled([this.#running, this.#next]);
  }

  async #after(earlier: Promise<void>): Promise<void> {
    // What an earlier flush failed with is asked for below, and told to those who waited for it.
    await earlier.catch(() => undefined);
    this.requireSound();
    const running = this.#sync();
    this.#running = running;
    this.#next = undefined;
    await running;
  }

  async #sync(): Promise<void> {
    try {
      await sync(this.#descriptor);
    } catch (cause) {
      this.#failure = new StoreFailed(
        'the disk refused a flush, so nothing is written any more; see to the disk and start the server again',
        { cause },
      );
      throw this.#failure;
    }
  }
}
