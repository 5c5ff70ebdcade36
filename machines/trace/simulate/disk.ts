/*
 * What a machine keeps through a crash: its ledger as far as it was synced, the counter of its key, what it stated of itself, and where a
 * promotion stands. A copy of it is what a backup or a cloned disk holds.
 *
 * INVARIANT 1  A record counts when its sync is over, and not before; of what a crash met on its way some may have reached the disk.
 * INVARIANT 2  A disk that failed once takes nothing more until a person repaired it.
 */
import type { LedgerRecord } from '../../../daemon/ledger/records.ts';
import { LedgerMemory } from '../../../daemon/ledger/memory.ts';
import { bytesOf, hexOf } from './digests.ts';
import type { Setting } from './setting.ts';
import type { Revision } from './tables.ts';

/** A record with the chain's head after it. */
interface Entry {
  readonly record: LedgerRecord;
  readonly head: Uint8Array;
}

/** Everything durable of one machine. */
export interface Durable {
  readonly ledger: Entry[];
  /** Counter of the key: rises with each signature. */
  guard: number;
  /** The owner's file of this moment; undefined where it is invalid. */
  policy: Revision | undefined;
  stated: readonly Revision[];
  confirmedRevision: number;
  repaired: boolean;
  /** The ledger cannot be read until a person repaired it. */
  damaged: boolean;
  /** A promotion that began and did not end. */
  journal: { readonly promotion: string; readonly committed: boolean } | undefined;
  /** Approvals that served, and the highest sequence. */
  used: readonly string[];
  highSequence: number;
  /** Promotion whose changes stand in the person's tree. */
  tree: string;
  /** Drafts by run: how often the agent wrote, which is what its manifest is made of. */
  drafts: Readonly<Record<string, number>>;
}

/** A machine that was never started. */
export function emptyDisk(policy: Revision): Durable {
  return {
    ledger: [],
    guard: 0,
    policy,
    stated: [],
    confirmedRevision: 0,
    repaired: false,
    damaged: false,
    journal: undefined,
    used: [],
    highSequence: 0,
    tree: 'first',
    drafts: {},
  };
}

/** A copy as a backup or a cloned machine has it. */
export function copyOf(disk: Durable): Durable {
  return { ...disk, ledger: [...disk.ledger] };
}

const NO_HEAD = new Uint8Array(32);
/** How long a sync takes, in ms. */
const SYNC_MS = { least: 0, most: 3 };

interface Appending {
  readonly record: LedgerRecord;
  readonly done: () => void;
  readonly failed: () => void;
}

/** The open ledger of one process. */
export class Ledger {
  readonly memory = new LedgerMemory();
  readonly #setting: Setting;
  readonly #disk: Durable;
  #waiting: Appending[] = [];
  #syncing: readonly Appending[] = [];
  readonly #damaged: () => void;
  #told = false;
  #closed = false;

  constructor(setting: Setting, disk: Durable, damaged: () => void = () => undefined) {
    this.#setting = setting;
    this.#damaged = damaged;
    this.#disk = disk;
    for (const [index, { record, head }] of disk.ledger.entries()) this.memory.apply(record, index + 1, head);
  }

  /** Records that are durable, and the head after them. */
  get standing(): { readonly count: number; readonly head: Uint8Array } {
    const { ledger } = this.#disk;
    return { count: ledger.length, head: ledger.at(-1)?.head ?? NO_HEAD };
  }

  /** Makes a record durable; `failed` where the disk takes nothing. */
  append(record: LedgerRecord, done: () => void, failed: () => void): void {
    if (this.#disk.damaged) {
      this.#setting.timeline.after(0, () => this.#fail(failed));
      return;
    }
    this.#waiting.push({ record, done, failed });
    if (this.#syncing.length === 0) this.#sync();
  }

  /** The process ends, in the middle of whatever it was writing: a part of that may have reached the disk. */
  crash(): void {
    this.#closed = true;
    const reached = this.#setting.random.below(this.#syncing.length + 1);
    for (const { record } of this.#syncing.slice(0, reached)) this.#write(record);
  }

  #sync(): void {
    this.#syncing = this.#waiting.splice(0);
    if (this.#syncing.length === 0) return;
    const { timeline, random } = this.#setting;
    timeline.after(random.between(SYNC_MS.least, SYNC_MS.most), () => {
      if (this.#closed) return;
      const batch = this.#syncing;
      this.#syncing = [];
      for (const { record, done, failed } of batch) {
        if (this.#disk.damaged) this.#fail(failed);
        else {
          const entry = this.#write(record);
          this.memory.apply(record, this.#disk.ledger.length, entry.head);
          done();
        }
      }
      if (this.#syncing.length === 0) this.#sync();
    });
  }

  /** Whoever is refused by it: its daemon is told once that the ledger takes nothing more. */
  #fail(failed: () => void): void {
    if (!this.#told && !this.#closed) this.#damaged();
    this.#told = true;
    failed();
  }

  #write(record: LedgerRecord): Entry {
    const entry = { record, head: bytesOf(this.#setting.fresh('head')) };
    this.#disk.ledger.push(entry);
    return entry;
  }
}

/** A head as a proof states it: 64 hexadecimal digits. */
export function headText(head: Uint8Array): string {
  return hexOf(head).padEnd(64, '0');
}
