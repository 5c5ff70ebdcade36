/*
 * What all drafts of a machine may take together. Each draft has its own limits; without these one agent with many runs could
 * still fill the owner's disk.
 */
import { fstatfs } from '../runtime/native-folders.ts';
import { OperationFailed } from './failures.ts';

/** How many drafts there may be, their bytes on the disk, what must stay free there (bytes, or a share if that is less), and the changed paths that drafts which nobody uses hold in memory. */
export interface MachineLimits {
  readonly drafts: number;
  readonly bytes: number;
  readonly reserveBytes: number;
  readonly reserveShare: number;
  readonly idlePaths: number;
}

/** The limits of every machine. */
export const MACHINE_LIMITS: MachineLimits = {
  drafts: 256,
  bytes: 1_073_741_824,
  reserveBytes: 268_435_456,
  reserveShare: 0.02,
  // some 30 MiB
  idlePaths: 60_000,
};

const limit = (what: string): OperationFailed =>
  new OperationFailed('DRAFT_LIMIT', `${what}; the owner can promote or discard drafts on the machine`);

/** Sizes of all drafts below the open drafts folder, by slot. */
export class DraftBudget {
  readonly #drafts: number;
  readonly #limits: MachineLimits;
  readonly #sizes = new Map<number, number>();
  #total = 0;

  constructor(drafts: number, limits: MachineLimits) {
    this.#drafts = drafts;
    this.#limits = limits;
  }

  /** Notes what a draft takes now, bytes. */
  note(slot: number, bytes: number): void {
    this.#total += bytes - (this.#sizes.get(slot) ?? 0);
    this.#sizes.set(slot, bytes);
  }

  /** Notes that a draft is gone. */
  forget(slot: number): void {
    this.#total -= this.#sizes.get(slot) ?? 0;
    this.#sizes.delete(slot);
  }

  /** Throws OperationFailed DRAFT_LIMIT unless one more draft fits. */
  assertDraft(): void {
    const count = this.#sizes.size + 1;
    const { drafts } = this.#limits;
    if (count > drafts) throw limit(`the machine would hold ${count} drafts, allowed are ${drafts}`);
    this.assertBytes(0);
  }

  /** Throws OperationFailed DRAFT_LIMIT unless so many more bytes fit; what makes drafts smaller always fits. */
  assertBytes(added: number): void {
    if (added < 0) return;
    const { bytes, reserveBytes, reserveShare } = this.#limits;
    const total = this.#total + added;
    if (total > bytes) throw limit(`all drafts together would take ${total} bytes, allowed are ${bytes}`);
    const { availableBytes, totalBytes } = fstatfs(this.#drafts);
    const reserve = Math.min(reserveBytes, Math.floor(Number(totalBytes) * reserveShare));
    const left = Number(availableBytes) - added;
    if (left < reserve)
      throw limit(`${left} bytes would be free on the disk that holds drafts, kept free are ${reserve}`);
  }
}
