/*
 * What every long run has in common: rounds that depend on the seed and their number alone, so that any round can be told again;
 * a state that is saved after each; figures for docs/campaigns.md.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** Numbers of one round, drawn from the seed and the round's number. */
export class Draw {
  readonly #seed: string;
  #count = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    this.#count += 1;
    const bytes = createHash('sha256').update(`${this.#seed}:${this.#count}`).digest();
    return Number(bytes.readBigUInt64BE(0) % BigInt(limit));
  }

  /** One of these. */
  from<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError('nothing to draw from');
    return item;
  }

  bytes(length: number): Buffer {
    const parts: Buffer[] = [];
    for (let made = 0; made < length; made += 32) {
      this.#count += 1;
      parts.push(createHash('sha256').update(`${this.#seed}:${this.#count}`).digest());
    }
    return Buffer.concat(parts).subarray(0, length);
  }
}

/** A campaign that has begun. */
export interface Running {
  /** Runs one round; resolves with what it was, for the counts. Rejects where an invariant did not hold. */
  round(draw: Draw): Promise<string>;
  end(): Promise<void>;
}

/** A long run. */
export interface Campaign {
  readonly name: string;
  /** Rounds that make it whole. */
  readonly rounds: number;
  begin(): Promise<Running>;
  /** Whether the counts make it whole, however many rounds there were. */
  isWhole?(counts: ReadonlyMap<string, number>): boolean;
  /** Figures beside the counts, from what rounds returned. */
  figures?(counts: ReadonlyMap<string, number>): string;
}

/** How long, from which seed, and whether what an earlier run did counts. */
export interface Wish {
  readonly seed: string;
  readonly minutes: number;
  readonly rounds: number;
  readonly resume: boolean;
}

/** What a campaign has done so far. */
export interface Standing {
  readonly seed: string;
  readonly done: number;
  readonly seconds: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly failures: readonly { readonly round: number; readonly message: string }[];
}

/** Runs rounds until the wish is met, printing each failure with what tells it again. */
export async function run(campaign: Campaign, wish: Wish, folder: string): Promise<Standing> {
  fs.mkdirSync(folder, { recursive: true });
  const file = path.join(folder, `${campaign.name}.json`);
  let standing = wish.resume ? read(file, wish.seed) : fresh(wish.seed);
  const deadline = performance.now() + wish.minutes * 60_000;
  let running: Running | undefined;
  const isWhole = (): boolean => campaign.isWhole?.(new Map(Object.entries(standing.counts))) ?? false;
  try {
    while (standing.done < wish.rounds && !isWhole() && performance.now() < deadline) {
      running ??= await campaign.begin();
      const round = standing.done + 1;
      const began = performance.now();
      const outcome = await running
        .round(new Draw(`${wish.seed}:${campaign.name}:${round}`))
        .catch((error: unknown) => {
          return error instanceof Error ? error : new Error(String(error));
        });
      const seconds = standing.seconds + (performance.now() - began) / 1000;
      standing = { ...counted(standing, outcome, round), done: round, seconds };
      fs.writeFileSync(file, JSON.stringify(standing));
      if (outcome instanceof Error) {
        console.log(`round ${round} FAILED (--seed ${wish.seed}): ${outcome.message}`);
        // What failed may have left anything behind: the next round begins anew.
        await running.end().catch(() => undefined);
        running = undefined;
      } else if (round % 10 === 0 || round === wish.rounds) {
        console.log(`round ${round} of ${wish.rounds}, ${standing.failures.length} failures, ${Math.round(seconds)} s`);
      }
    }
  } finally {
    await running?.end();
  }
  return standing;
}

function fresh(seed: string): Standing {
  return { seed, done: 0, seconds: 0, counts: {}, failures: [] };
}

function read(file: string, seed: string): Standing {
  if (!fs.existsSync(file)) return fresh(seed);
  // Written by this file alone.
  const standing = JSON.parse(fs.readFileSync(file, 'utf8')) as Standing;
  return standing.seed === seed ? standing : fresh(seed);
}

function counted(standing: Standing, outcome: string | Error, round: number): Standing {
  if (outcome instanceof Error) {
    return { ...standing, failures: [...standing.failures, { round, message: outcome.message.slice(0, 400) }] };
  }
  return { ...standing, counts: { ...standing.counts, [outcome]: (standing.counts[outcome] ?? 0) + 1 } };
}
