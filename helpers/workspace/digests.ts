/* Digests of whole files, kept while the file is untouched: a ranged read must not hash fifty megabytes each time. */
import { digestDescriptor } from '../files/digest.ts';
import { stampOf } from '../files/draft.ts';
import type { Ending } from './ending.ts';
import type { Pool } from './pool.ts';
import { isUnchanged, type Opened } from './view.ts';

/** A file up to this size is hashed at once; a larger one leaves the main loop. */
export const INLINE_LIMIT_BYTES = 1_048_576;
/** As many as a draft has paths: the next look at its review hashes none again. */
const KEPT_LIMIT = 20_000;
/** The kernel's clock of files ticks: two changes within one tick have the same time. A younger file is hashed each time. */
const SETTLED_MS = 2_000;

/** The digests that this process knows. */
export class Digests {
  readonly #pool: Pool;
  readonly #known = new Map<string, string>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** SHA-256 of an open file, 64 hexadecimal digits. Throws OperationFailed CANCELLED or EXPIRED. */
  async of(opened: Opened, ending: Ending): Promise<string> {
    const key = `${opened.status.dev}.${stampOf(opened.status)}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { sha256 } =
      opened.bytes <= INLINE_LIMIT_BYTES
        ? digestDescriptor(opened.descriptor)
        : await this.#pool.run('digest', { descriptor: opened.descriptor, ending: ending.mark });
    const ageMs = Date.now() - Number(opened.status.ctimeNs / 1_000_000n);
    if (ageMs > SETTLED_MS && isUnchanged(opened)) this.#keep(key, sha256);
    return sha256;
  }

  #keep(key: string, sha256: string): void {
    const oldest = this.#known.keys().next();
    if (this.#known.size >= KEPT_LIMIT && !oldest.done) this.#known.delete(oldest.value);
    this.#known.set(key, sha256);
  }
}
