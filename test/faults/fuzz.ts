import { performance } from 'node:perf_hooks';
import type { Draw } from '../campaigns/campaign.ts';
import type { Decoder } from './decoders.ts';

/** Longest that one input may take, in ms; what took longer is tried again before it is called slow. */
const SLOW_MS = 100;
/** Most that all inputs together may leave behind, in bytes. */
const KEPT_BYTES = 67_108_864;
const LARGEST = 4096;
/** Lengths and numbers at which decoders change their minds. */
const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x10_0000, 0x7fff_ffff, 0xffff_ffff];

/** What a decoder did that it must not; the input stands in it as hexadecimal digits. */
export class DecoderFault extends Error {
  override readonly name = 'DecoderFault';
}

/** Throws `count` inputs at a decoder. Throws DecoderFault for an error that it does not declare, a hang, or memory that it keeps. */
export function fire(decoder: Decoder, draw: Draw, count: number): void {
  const before = process.memoryUsage().rss;
  for (let shot = 0; shot < count; shot += 1) {
    const bytes = mutated(draw.from(decoder.samples), draw);
    const ms = timed(decoder, bytes);
    // A loaded machine is slow once; a decoder that hangs is slow each time.
    if (ms > SLOW_MS && Math.min(timed(decoder, bytes), timed(decoder, bytes), timed(decoder, bytes)) > SLOW_MS)
      throw new DecoderFault(`${decoder.name} took ${Math.round(ms)} ms for ${bytes.toString('hex')}`);
  }
  const kept = process.memoryUsage().rss - before;
  if (kept > KEPT_BYTES) throw new DecoderFault(`${decoder.name} kept ${kept} bytes after ${count} inputs`);
}

function timed(decoder: Decoder, bytes: Buffer): number {
  const began = performance.now();
  try {
    decoder.decode(Buffer.from(bytes));
  } catch (error) {
    const name = error instanceof Error ? error.name : 'no error';
    // Zod names its errors with a prefix in some builds.
    if (!decoder.refuses.some((known) => name === known || name === `$${known}`))
      throw new DecoderFault(
        `${decoder.name} threw ${name} (${String(error).slice(0, 120)}) for ${bytes.toString('hex')}`,
        { cause: error },
      );
  }
  return performance.now() - began;
}

/** One input: a sample with one to four changes, or nothing of it at all. */
export function mutated(sample: Buffer, draw: Draw): Buffer {
  if (draw.below(12) === 0) return draw.bytes(draw.below(LARGEST));
  let bytes: Buffer = Buffer.from(sample);
  for (let change = draw.below(4); change >= 0; change -= 1) bytes = changed(bytes, draw).subarray(0, LARGEST * 4);
  return bytes;
}

function changed(bytes: Buffer, draw: Draw): Buffer {
  const at = draw.below(bytes.length + 1);
  switch (draw.below(7)) {
    case 0:
      return bytes.subarray(0, at);
    case 1: {
      const flipped = Buffer.from(bytes);
      if (at < flipped.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << draw.below(8));
      return flipped;
    }
    case 2: {
      const edged = Buffer.concat([bytes, Buffer.alloc(4)]);
      edged.writeUInt32BE(draw.from(EDGES), Math.min(at, edged.length - 4));
      return edged;
    }
    case 3:
      return Buffer.concat([bytes.subarray(0, at), draw.bytes(1 + draw.below(24)), bytes.subarray(at)]);
    case 4: {
      const end = at + draw.below(bytes.length - at + 1);
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
    }
    case 5: {
      const end = at + draw.below(Math.min(64, bytes.length - at + 1));
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]);
    }
    default: {
      // The same few bytes over and over: nesting, and lengths of lengths.
      const piece = bytes.subarray(at, at + 1 + draw.below(6));
      return Buffer.concat([
        bytes.subarray(0, at),
        ...Array.from({ length: draw.below(600) }, () => piece),
        bytes.subarray(at),
      ]);
    }
  }
}
