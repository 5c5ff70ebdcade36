/* Looks at every disk that a crash may leave, at each that differs once, and finds those from which a recovery goes wrong. */
import { crashes } from './model.ts';
import type { Disk, Inode, Operation } from './model.ts';
import { allowedSides } from './recording.ts';
import type { Recording, Side } from './recording.ts';
import type { Ending, Rehearsal } from './rehearsal.ts';

/** How much was looked at: crashes that were thought of, and what recoveries made of disks that were not looked at before. */
export interface Looked {
  readonly crashes: number;
  readonly endings: readonly Ending[];
  /** What went wrong, with the disk that it went wrong from. */
  readonly violations: readonly string[];
}

/** What is to be looked at: a disk, what happens on it, and the trees that may stand after a crash before an operation. */
interface Subject {
  readonly start: Disk;
  readonly operations: readonly Operation[];
  readonly allowed: (before: number) => readonly Side[];
}

/** No object has this number. */
const NOTHING: Inode = -1;

/** Every crash of one recording, and of the recoveries after it. A recovery from one disk is made once. */
export class Exploration {
  readonly #rehearsal: Rehearsal;
  readonly #recording: Recording;
  readonly #endings = new Map<string, Ending>();

  constructor(rehearsal: Rehearsal, recording: Recording) {
    this.#rehearsal = rehearsal;
    this.#recording = recording;
  }

  /** Disks from which a recovery was made. */
  get disks(): number {
    return this.#endings.size;
  }

  /** Crashes in the recording. */
  recorded(): Looked {
    return this.#look(this.#subject());
  }

  /** What goes wrong first where some syncs of the recording keep nothing, or undefined. */
  withoutSyncs(indexes: readonly number[]): string | undefined {
    const subject = this.#subject();
    const operations = subject.operations.map((operation, index) =>
      operation.kind === 'sync' && indexes.includes(index) ? { ...operation, on: NOTHING } : operation,
    );
    return this.#look({ ...subject, operations }, 1).violations[0];
  }

  /** Crashes in recoveries, in the recoveries after those, and so on, until no disk is left that was not looked at. */
  recoveries(endings: readonly Ending[]): Looked[] {
    const levels: Looked[] = [];
    for (let now = endings; now.length > 0;) {
      const looked = now.map((ending) => this.#recovery(ending));
      now = looked.flatMap((one) => one.endings);
      const count = looked.reduce((sum, one) => sum + one.crashes, 0);
      levels.push({ crashes: count, endings: now, violations: looked.flatMap(({ violations }) => violations) });
    }
    return levels;
  }

  #subject(): Subject {
    const { start, operations } = this.#recording;
    return { start, operations, allowed: (before) => allowedSides(this.#recording, before) };
  }

  /** Crashes in a recovery: whatever was done of it, the next one ends with the same tree. */
  #recovery({ start, operations, side }: Ending): Looked {
    return this.#look({ start, operations, allowed: () => (side === undefined ? [] : [side]) });
  }

  #look({ start, operations, allowed }: Subject, enough = Infinity): Looked {
    const endings: Ending[] = [];
    const violations: string[] = [];
    let count = 0;
    for (const { disk, before } of crashes(start, operations)) {
      count += 1;
      const key = this.#rehearsal.keyOf(disk);
      const known = this.#endings.get(key);
      const ending = known ?? this.#rehearsal.recover(disk, this.#recording);
      this.#endings.set(key, ending);
      if (known === undefined) endings.push(ending);
      const fault = faultOf(ending, allowed(before));
      if (fault !== undefined) violations.push(`${fault}\nafter a crash before operation ${before}, from\n${key}`);
      if (violations.length >= enough) break;
    }
    return { crashes: count, endings, violations };
  }
}

/** What is wrong with an ending where only some trees may stand. */
export function faultOf({ side, fault }: Ending, allowed: readonly Side[]): string | undefined {
  if (fault !== undefined || side === undefined) return fault ?? 'no tree';
  return allowed.includes(side) ? undefined : `tree ${side} stands, where only ${allowed.join(' or ')} may`;
}
