/*
 * Frames on a byte stream between two processes of the product.
 *
 *   +----------------------+---------------------+
 *   | length, uint32 BE    | payload, msgpack    |
 *   +----------------------+---------------------+
 *
 * The length counts the payload alone. A length of zero or above the limit is a protocol violation: nothing is
 * allocated for it. The reader never holds more than one limit of bytes.
 */

/** Largest payload of a frame between helpers, in bytes: 256 KiB of content and its envelope, with room. */
export const FRAME_LIMIT_BYTES = 1_048_576;

const HEADER_BYTES = 4;

/** A peer announced a frame that the limit forbids. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** Puts the length in front of one payload. Throws FrameError for an empty or oversized payload. */
export function encodeFrame(payload: Uint8Array, limitBytes: number = FRAME_LIMIT_BYTES): Buffer {
  if (payload.length === 0 || payload.length > limitBytes) {
    throw new FrameError(`frame of ${payload.length} bytes, allowed are 1 to ${limitBytes}`);
  }
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUInt32BE(payload.length, 0);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Cuts a byte stream into payloads. */
export class FrameReader {
  readonly #limitBytes: number;
  #chunks: Buffer[] = [];
  #heldBytes = 0;

  constructor(limitBytes: number = FRAME_LIMIT_BYTES) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes of an unfinished frame that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Takes the next bytes and returns the payloads that they complete. Throws FrameError on a forbidden length. */
  push(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#heldBytes += chunk.length;
    const payloads: Buffer[] = [];
    for (let payload = this.#take(); payload !== undefined; payload = this.#take()) payloads.push(payload);
    return payloads;
  }

  #take(): Buffer | undefined {
    if (this.#heldBytes < HEADER_BYTES) return undefined;
    const length = this.#peekLength();
    if (length === 0 || length > this.#limitBytes) {
      throw new FrameError(`frame of ${length} bytes announced, allowed are 1 to ${this.#limitBytes}`);
    }
    if (this.#heldBytes < HEADER_BYTES + length) return undefined;
    const held = this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks);
    const rest = held.subarray(HEADER_BYTES + length);
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#heldBytes = rest.length;
    return held.subarray(HEADER_BYTES, HEADER_BYTES + length);
  }

  #peekLength(): number {
    const first = this.#chunks[0];
    if (first && first.length >= HEADER_BYTES) return first.readUInt32BE(0);
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined.readUInt32BE(0);
  }
}
