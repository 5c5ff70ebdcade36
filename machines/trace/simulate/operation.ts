/*
 * The work of a helper in a simulated world: it takes a time, has its effect at one moment of it, and ends as it truly was. A promotion
 * keeps a journal on the disk, as helpers/promote does, so that whatever dies in the middle leaves the old tree or the approved one.
 */
import type { Outcome } from '../../values.ts';
import type { Daemon } from './daemon.ts';
import { digestOf } from './digests.ts';
import { PROMOTE, writes } from './facts.ts';
import type { Approval, Frame } from './messages.ts';

/** How an operation ended; `unknown` where nobody can know. */
export interface Finished {
  readonly outcome: Outcome | 'unknown';
  readonly code: string | null;
  readonly manifestDigest: string | undefined;
  /** False where the control plane must refuse what it says. */
  readonly acceptable: boolean;
}

type Stopping = 'cancelled' | 'expired';

/** Time that an operation takes, in ms: most are short, some take long. */
const TAKES_MS = { least: 1, most: 120, long: 18_000, oftenLong: 0.05 };
/** How long a helper takes to notice that it is to stop, in ms. */
const NOTICE_MS = { least: 1, most: 40 };
/** How often a result is one that the control plane must refuse. */
const UNACCEPTABLE = 0.003;
/** How often a helper is wrong about the manifest that it applied. */
const WRONG = 0.03;
/** Longest and usual time of a promotion until its commit, in ms. */
const STAGES_MS = { least: 20, usual: 3000, most: 100_000, oftenLong: 0.1 };
/** From the commit of a promotion to its clean end, in ms. */
const CLEAN_MS = 5;

/** Manifest of what a run's draft would change. */
export function manifestOf(run: string, writes: number): string {
  return digestOf(`manifest ${run} ${writes}`);
}

/** An ending that states nothing beside its outcome. */
export function without(outcome: Finished['outcome'], code: string | null): Finished {
  return { outcome, code, manifestDigest: undefined, acceptable: true };
}

/** One operation that was begun, once. */
export class Operation {
  readonly #daemon: Daemon;
  readonly #frame: Frame;
  readonly #hears: ((finished: Finished) => void)[] = [];
  #stopping: Stopping | undefined;
  #effective = false;
  #finished: Finished | undefined;

  constructor(daemon: Daemon, frame: Frame) {
    this.#daemon = daemon;
    this.#frame = frame;
    daemon.setting.watch.begins(daemon, frame);
    if (frame.operation === PROMOTE) this.#promote();
    else this.#work();
  }

  #work(): void {
    const { random } = this.#daemon.setting;
    const told = this.#daemon.setting.durations.get(this.#frame.operation);
    const drawn = random.chance(TAKES_MS.oftenLong)
      ? random.between(TAKES_MS.most, TAKES_MS.long)
      : random.between(TAKES_MS.least, TAKES_MS.most);
    const takes = told ?? drawn;
    if (this.#frame.operation === 'file.write') this.#daemon.later(random.between(0, takes), () => this.#write());
    const acceptable = !random.chance(UNACCEPTABLE);
    this.#daemon.later(takes, () =>
      this.#end({ outcome: 'succeeded', code: null, manifestDigest: this.#manifest(), acceptable }),
    );
  }

  /** Whether it writes to the person's tree. */
  get promotes(): boolean {
    return this.#frame.operation === PROMOTE;
  }

  /** Tells how it ended, now or when it does. */
  onEnd(hear: (finished: Finished) => void): void {
    if (this.#finished) hear(this.#finished);
    else this.#hears.push(hear);
  }

  /** Asks it to stop; what is done already stays done. */
  stop(as: Stopping): void {
    if (this.#finished || this.#stopping) return;
    this.#stopping = as;
    const { random, watch } = this.#daemon.setting;
    watch.stopped(this.#frame.command);
    this.#daemon.later(random.between(NOTICE_MS.least, NOTICE_MS.most), () => {
      if (this.#effective) return;
      this.#rollBack();
      this.#end(without(as, as === 'cancelled' ? 'CANCELLED' : 'EXPIRED'));
    });
  }

  /** The helper died: of what it wrote nobody knows, of the rest nothing is lost. */
  breakOff(): void {
    this.#end(writes(this.#frame.operation) ? without('unknown', null) : without('failed', 'WORKSPACE_UNAVAILABLE'));
  }

  #end(finished: Finished): void {
    if (this.#finished) return;
    this.#finished = finished;
    this.#daemon.setting.watch.ended(this.#frame, finished);
    for (const hear of this.#hears.splice(0)) hear(finished);
  }

  #manifest(): string | undefined {
    const { operation, run } = this.#frame;
    return operation === 'workspace.review' ? manifestOf(run, this.#drafts()[run] ?? 0) : undefined;
  }

  #drafts() {
    return this.#daemon.computer.disk.drafts;
  }

  #write(): void {
    if (this.#finished) return;
    this.#effective = true;
    const { disk } = this.#daemon.computer;
    const { run } = this.#frame;
    disk.drafts = { ...disk.drafts, [run]: (disk.drafts[run] ?? 0) + 1 };
    this.#daemon.setting.watch.effect(this.#frame, 'draft');
  }

  /** What `promote` checks against its own folder before it touches anything, then stage, commit, clean. */
  #promote(): void {
    const { approval } = this.#frame;
    const { disk } = this.#daemon.computer;
    const { random } = this.#daemon.setting;
    const refusal = approval ? this.#refusalOf(approval) : 'PROMOTION_APPROVAL_MISSING';
    if (!approval || refusal) {
      return this.#daemon.later(1, () => this.#end(without('failed', refusal ?? null)));
    }
    disk.used = [...disk.used, approval.promotion];
    disk.highSequence = approval.sequence;
    disk.journal = { promotion: approval.promotion, committed: false };
    const most = random.chance(STAGES_MS.oftenLong) ? STAGES_MS.most : STAGES_MS.usual;
    const told = this.#daemon.setting.durations.get(PROMOTE);
    this.#daemon.later(told ?? random.between(STAGES_MS.least, most), () => this.#commit(approval));
  }

  #refusalOf(approval: Approval): string | undefined {
    const { disk } = this.#daemon.computer;
    const { run } = this.#frame;
    if (disk.journal) return 'PROMOTION_BUSY';
    if (disk.used.includes(approval.promotion) || approval.sequence <= disk.highSequence) return 'PROMOTION_USED';
    if (approval.expiresAt <= this.#daemon.computer.clockNow()) return 'PROMOTION_EXPIRED';
    return approval.manifestDigest === manifestOf(run, disk.drafts[run] ?? 0) ? undefined : 'PROMOTION_REVIEW_STALE';
  }

  #commit(approval: Approval): void {
    const { disk } = this.#daemon.computer;
    if (this.#finished || !disk.journal) return;
    this.#effective = true;
    disk.journal = { ...disk.journal, committed: true };
    disk.tree = approval.promotion;
    this.#daemon.setting.watch.effect(this.#frame, 'tree');
    this.#daemon.later(CLEAN_MS, () => {
      disk.journal = undefined;
      const wrong = this.#daemon.setting.random.chance(WRONG);
      this.#end({ ...without('succeeded', null), manifestDigest: wrong ? 'another' : approval.manifestDigest });
    });
  }

  #rollBack(): void {
    if (this.#frame.operation === PROMOTE) this.#daemon.computer.disk.journal = undefined;
  }
}
