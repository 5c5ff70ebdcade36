/*
 * The only chance in a simulated world: every number comes from the seed, so that the same seed tells the same story. A branch has a
 * stream of its own, so that what one actor draws never changes what another one draws.
 */

/** A stream of numbers that a text decides. */
export class Random {
  readonly #seed: string;
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  /** Small fast counter generator of 32 bits (sfc32), started from a digest of the seed. */
  constructor(seed: string) {
    this.#seed = seed;
    [this.#a, this.#b, this.#c] = [mixed(`${seed}/a`), mixed(`${seed}/b`), mixed(`${seed}/c`)];
    for (let round = 0; round < 12; round += 1) this.next();
  }

  /** A stream of its own for one actor or one purpose. */
  branch(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  /** A number from 0 to below 1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 4_294_967_296;
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A time between two, in whole ms. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** A waiting time of this mean, in whole ms: what comes by chance, comes after one of these. */
  around(mean: number): number {
    return Math.ceil(-Math.log(1 - this.next()) * mean);
  }

  /** One of these; undefined where there is none. */
  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(items.length)];
  }
}

/** 32 bits that each character of a text changes. */
export function mixed(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
