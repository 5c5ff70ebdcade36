/* What every part of a simulated world has in common. */
import type { Signatures } from './ledger-facts.ts';
import type { Random } from './random.ts';
import type { Rules } from './rules.ts';
import type { Timeline } from './timeline.ts';
import type { Tracer } from './tracer.ts';
import type { Watch } from './watch.ts';

/** How the network of a world treats one message: probabilities. */
export interface Weather {
  readonly lost: number;
  readonly repeated: number;
  readonly reordered: number;
  readonly slow: number;
}

/** Shared by all parts of one world. */
export interface Setting {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly rules: Rules;
  readonly tracer: Tracer;
  readonly watch: Watch;
  readonly signatures: Signatures;
  readonly weather: Weather;
  /** ms until which no call of a pairing is answered, where a story says so. */
  silentUntil: number;
  /** How long an operation takes, in ms, where a story says so. */
  readonly durations: Map<string, number>;
  /** ms since the Unix epoch at which the world began. */
  readonly epochMs: number;
  /** A name that nothing else in this world has. */
  readonly fresh: (prefix: string) => string;
}
