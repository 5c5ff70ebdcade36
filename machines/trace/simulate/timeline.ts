/*
 * Time of a simulated world, in ms from its start. Nothing waits: the next moment at which something is due is the present one.
 * What is due at one moment happens in the order in which it was planned.
 */

/** Something that is planned; it can be dropped. */
export interface Planned {
  readonly at: number;
  readonly order: number;
  readonly happen: () => void;
  dropped: boolean;
}

/** The one queue of everything that will happen. */
export class Timeline {
  readonly #heap: Planned[] = [];
  #order = 0;
  #now = 0;

  get now(): number {
    return this.#now;
  }

  /** Plans something for `delay` ms from now, at once where that is not more than 0. */
  after(delay: number, happen: () => void): Planned {
    const planned = { at: this.#now + Math.max(0, delay), order: this.#order, happen, dropped: false };
    this.#order += 1;
    this.#rise(planned);
    return planned;
  }

  /** What was planned does not happen. Safe for what has happened already. */
  drop(planned: Planned | undefined): void {
    if (planned) planned.dropped = true;
  }

  /** Lets the next planned thing happen, if it is due at or before `until`; false where there is none. */
  step(until: number): boolean {
    for (;;) {
      const [first] = this.#heap;
      if (first === undefined || first.at > until) {
        this.#now = Math.max(this.#now, until);
        return false;
      }
      this.#takeFirst();
      if (first.dropped) continue;
      this.#now = first.at;
      first.happen();
      return true;
    }
  }

  #rise(planned: Planned): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(planned);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(planned, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = planned;
  }

  #takeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const one = heap[left];
      const other = heap[left + 1];
      const least = one && other && isBefore(other, one) ? left + 1 : left;
      const child = heap[least];
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = least;
    }
    heap[at] = last;
  }
}

function isBefore(one: Planned, other: Planned): boolean {
  return one.at === other.at ? one.order < other.order : one.at < other.at;
}
