/*
 * Keys that seal payloads at rest: one file of the data folder, owner-only, with the current key and those that older
 * ciphertext still needs.
 *
 * INVARIANT 1  A key is durable before the first payload is sealed with it.
 * INVARIANT 2  A file that others can read, that is a link or that is not exactly what this module writes is refused, never
 *              replaced: replacing it would make every kept payload unreadable.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';

const FILE = 'payload-keys.json';

const ringSchema = z.strictObject({
  version: z.literal(1),
  current: z.string(),
  keys: z
    .array(z.strictObject({ id: z.string().regex(/^key_[0-9a-f]{16}$/), key: z.base64().length(44), madeAt: z.int() }))
    .min(1)
    .max(64),
});
type Ring = z.infer<typeof ringSchema>;

/** The key ring cannot be used as it is; says what was expected and what to do. */
export class KeyRingRefused extends Error {
  override readonly name = 'KeyRingRefused';
}

/** AES-256 keys by their id. */
export class KeyRing {
  readonly #folder: string;
  #ring: Ring;

  private constructor(folder: string, ring: Ring) {
    this.#folder = folder;
    this.#ring = ring;
  }

  /** Opens the ring of a data folder, or makes the first key there. Throws KeyRingRefused. */
  static async open(folder: string, now: number): Promise<KeyRing> {
    const found = await readRing(join(folder, FILE));
    if (found) return new KeyRing(folder, found);
    const first = newKey(now);
    const ring = new KeyRing(folder, { version: 1, current: first.id, keys: [first] });
    await ring.#save();
    return ring;
  }

  /** Id of the key that seals now. */
  get current(): string {
    return this.#ring.current;
  }

  /** Ids of every key that can still open something. */
  get ids(): readonly string[] {
    return this.#ring.keys.map(({ id }) => id);
  }

  /** The 32 bytes of a key, or undefined once it was destroyed. */
  key(id: string): Buffer | undefined {
    const found = this.#ring.keys.find((key) => key.id === id);
    return found && Buffer.from(found.key, 'base64');
  }

  /** Reads the file again: another process may have rotated. Throws KeyRingRefused, and the ring stays as it was. */
  async refresh(): Promise<void> {
    const found = await readRing(join(this.#folder, FILE));
    if (!found) throw new KeyRingRefused(`${FILE} is gone; restore it from a backup of this data folder`);
    this.#ring = found;
  }

  /** Makes a new current key; older ones stay for what they sealed. Returns its id. */
  async rotate(now: number): Promise<string> {
    await this.refresh();
    const next = newKey(now);
    await this.#replace({ ...this.#ring, current: next.id, keys: [...this.#ring.keys, next] });
    return next.id;
  }

  /** Destroys every key that is neither current nor in `used`. Returns the destroyed ids. */
  async prune(used: ReadonlySet<string>): Promise<readonly string[]> {
    await this.refresh();
    const kept = this.#ring.keys.filter(({ id }) => id === this.#ring.current || used.has(id));
    const gone = this.ids.filter((id) => !kept.some((key) => key.id === id));
    if (gone.length > 0) await this.#replace({ ...this.#ring, keys: kept });
    return gone;
  }

  async #replace(ring: Ring): Promise<void> {
    const before = this.#ring;
    this.#ring = ring;
    try {
      await this.#save();
    } catch (cause) {
      this.#ring = before;
      throw cause;
    }
  }

  async #save(): Promise<void> {
    const next = join(this.#folder, `${FILE}.${randomBytes(8).toString('hex')}`);
    const file = await open(
      next,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
    try {
      await file.writeFile(`${JSON.stringify(this.#ring)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(next, join(this.#folder, FILE));
    const folder = await open(this.#folder, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

function newKey(now: number): Ring['keys'][number] {
  return { id: `key_${randomBytes(8).toString('hex')}`, key: randomBytes(32).toString('base64'), madeAt: now };
}

async function readRing(path: string): Promise<Ring | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined;
    if (cause.code === 'ELOOP') throw new KeyRingRefused(`${FILE} is a symbolic link; put the file itself there`);
    throw cause;
  });
  if (!file) return undefined;
  try {
    const facts = await file.stat();
    if ((facts.mode & 0o077) !== 0) {
      const mode = (facts.mode & 0o777).toString(8);
      throw new KeyRingRefused(`${FILE} has mode ${mode}, expected 600; run chmod 600 on it and find out who read it`);
    }
    return parseRing(await file.readFile('utf8'));
  } finally {
    await file.close();
  }
}

function parseRing(text: string): Ring {
  try {
    const ring = ringSchema.parse(JSON.parse(text));
    if (ring.keys.some(({ id }) => id === ring.current)) return ring;
  } catch {
    // Whatever is wrong with the text, the answer names the remedy and never a part of the text.
  }
  throw new KeyRingRefused(`${FILE} is not a key ring; restore it from a backup of this data folder`);
}
