/*
 * Time by the control plane's clock, carried by this machine's boot time: setting the wall clock opens no window, a suspended
 * machine does not believe that no time passed.
 *
 * INVARIANT 1: `now` never goes back, not even below the highest time that the ledger has seen signed.
 * INVARIANT 2: after a gap of more than GAP_LIMIT_MS between boot time and running time the anchor is void until the next
 *   handshake: `isAnchored` is false and no step may start.
 */
import os from 'node:os';

/** A suspend longer than this forces a new session before the next step, in ms. */
export const GAP_LIMIT_MS = 5000;

/** Sources of time; replaced as a whole in a test. */
export interface TimeSources {
  /** ms since the Unix epoch as this machine believes. */
  wall(): number;
  /** ms that this process has been able to run: stands still in suspend. */
  running(): number;
  /** ms since boot, suspend included. */
  boot(): number;
}

/** The kernel's clocks. `os.uptime` counts suspend (CLOCK_BOOTTIME), `performance.now` does not (CLOCK_MONOTONIC). */
export const systemTime: TimeSources = {
  wall: () => Date.now(),
  running: () => performance.now(),
  boot: () => os.uptime() * 1000,
};

/** The one clock of a daemon. */
export class ControlClock {
  readonly #time: TimeSources;
  #anchor: { readonly at: number; readonly running: number; readonly boot: number } | undefined;
  #highest: number;

  /** `highest` is the highest time that the ledger holds, ms since the Unix epoch. */
  constructor(time: TimeSources, highest: number) {
    this.#time = time;
    this.#highest = highest;
  }

  /** Takes a time that the pinned key signed over a fresh nonce. */
  anchor(at: number): void {
    this.#anchor = { at, running: this.#time.running(), boot: this.#time.boot() };
  }

  /** Whether the anchor still holds: there was a handshake, and no suspend since. */
  get isAnchored(): boolean {
    if (!this.#anchor) return false;
    const slept = this.#time.boot() - this.#anchor.boot - (this.#time.running() - this.#anchor.running);
    return slept <= GAP_LIMIT_MS;
  }

  /**
   * ms since the Unix epoch by the control plane's clock, suspend included; before the first handshake by this machine's own,
   * which is believed for that moment and remembered nowhere: a wrong wall clock must not bind what comes after.
   */
  now(): number {
    if (!this.#anchor) return Math.max(this.#highest, Math.floor(this.#time.wall()));
    const { at, running, boot } = this.#anchor;
    const passed = Math.max(0, this.#time.running() - running, this.#time.boot() - boot);
    this.#highest = Math.max(this.#highest, Math.floor(at + passed));
    return this.#highest;
  }

  /** ms of running time, for silence and deadlines inside this process. */
  running(): number {
    return this.#time.running();
  }
}
