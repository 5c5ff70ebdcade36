import * as z from 'zod';
import { decode, encode } from '../protocol/codec.ts';
import { counterSchema } from '../protocol/ids.ts';
import { StoreUnsafe } from './folder.ts';
import type { StoreFolder } from './folder.ts';

/** How many guards one write to the disk permits. */
export const GUARD_BLOCK = 1024;

const recordSchema = z.strictObject({ version: z.literal(1), reserved: counterSchema });

/**
 * The counter of a store. Guards below `reserved` on disk may have been used: a start goes on from there, so that none
 * repeats after a crash. The counter goes on across a rotation, because both keys sign one rotation statement.
 */
export class Guards {
  readonly #folder: StoreFolder;
  #next: number;
  #reserved: number;

  /** Reads the record; a store that never signed has none. Throws StoreUnsafe for a damaged one. */
  constructor(folder: StoreFolder) {
    this.#folder = folder;
    const bytes = folder.read('guards');
    this.#reserved = bytes === undefined ? 0 : readRecord(bytes);
    this.#next = this.#reserved;
  }

  /** The first of `count` guards that nobody was given before. Throws StoreUnwritable, and then none was given. */
  take(count: number): number {
    if (this.#next + count > this.#reserved) this.#reserve();
    const first = this.#next;
    this.#next += count;
    return first;
  }

  /** Reserves the next block where half of this one is used, so that the write is not in a request. Throws StoreUnwritable. */
  reserveAhead(): void {
    if (this.#reserved - this.#next < GUARD_BLOCK / 2) this.#reserve();
  }

  #reserve(): void {
    const reserved = this.#reserved + GUARD_BLOCK;
    if (!Number.isSafeInteger(reserved)) throw new StoreUnsafe('every guard was used');
    this.#folder.replace('guards', encode({ version: 1, reserved }));
    this.#reserved = reserved;
  }
}

function readRecord(bytes: Uint8Array): number {
  try {
    return recordSchema.parse(decode(bytes)).reserved;
  } catch (cause) {
    throw new StoreUnsafe('record of guards is damaged', { cause });
  }
}
