/* file.read and file.search. */
import { readSync } from 'node:fs';

import { joinNames, parsePath, pathTextOf, WalkRefused, type PathNames } from '../files/walk.ts';
import type { OperationArguments, OperationSuccess } from '../protocol/operations.ts';
import { reading, withFile, type Call } from './call.ts';
import { nothingThere } from './failures.ts';

/** Encoded content beyond this is sent as base64, which has no escapes; bytes. */
const ENCODED_LIMIT_BYTES = 360_000;

/** Bounds of one search: bytes read and ms. */
export const SEARCH_LIMITS = { bytes: 536_870_912, ms: 15_000 } as const;

/** Reads bytes of a file from an offset. */
export function readFile(
  call: Call,
  { path, offset, maxBytes }: OperationArguments<'file.read'>,
): Promise<OperationSuccess<'file.read'>> {
  const names = parsePath(path);
  return reading(call, (view) =>
    withFile(call, view, names, ({ descriptor, bytes: totalBytes }, sha256) => {
      const wanted = Math.max(0, Math.min(maxBytes, totalBytes - offset));
      const memory = Buffer.alloc(wanted);
      const count = wanted === 0 ? 0 : readSync(descriptor, memory, 0, wanted, offset);
      const piece = encodePiece(memory.subarray(0, count), offset + count >= totalBytes);
      const truncated = offset + piece.byteCount < totalBytes;
      return { success: true as const, path: pathTextOf(names), offset, totalBytes, sha256, truncated, ...piece };
    }),
  );
}

/** Content as an answer carries it. */
export interface Piece {
  readonly byteCount: number;
  readonly encoding: 'utf8' | 'base64';
  readonly content: string;
}

/**
 * Text where the bytes are text, else base64. A character that the piece cuts at its end is left for the next piece, so a
 * text file reads as text at any size of piece.
 */
export function encodePiece(bytes: Buffer, atEnd: boolean): Piece {
  const whole = atEnd ? bytes : bytes.subarray(0, bytes.length - cutBytes(bytes));
  const text = whole.length > 0 || bytes.length === 0 ? textOf(whole) : undefined;
  if (text !== undefined) return { byteCount: whole.length, encoding: 'utf8', content: text };
  return { byteCount: bytes.length, encoding: 'base64', content: bytes.toString('base64') };
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    const text = strict.decode(bytes);
    return Buffer.byteLength(JSON.stringify(text)) <= ENCODED_LIMIT_BYTES ? text : undefined;
  } catch {
    // bytes that are not UTF-8 are no text, which is the answer
    return undefined;
  }
}

/** Bytes at the end that begin a UTF-8 sequence (RFC 3629) without completing it; at most 3. */
function cutBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    return length > back ? back : 0;
  }
  return 0;
}

/** Searches names or contents below a folder, in the pool. */
export function searchFiles(
  call: Call,
  args: OperationArguments<'file.search'>,
): Promise<OperationSuccess<'file.search'>> {
  const names = parsePath(args.path);
  const { store, root, pool } = call.services;
  return reading(call, async (view) => {
    const place = view.place(names);
    if (place.of === 'nothing') throw nothingThere();
    if (place.kind === 'link') throw new WalkRefused('link');
    return store.lend(call.run, (draft) =>
      pool.run('search', {
        root,
        overlay: draft && { folder: draft.folder, entries: draft.entries },
        ignore: call.rules.patterns,
        arguments: args,
        start: startOf(names),
        ending: call.ending.mark,
        limits: SEARCH_LIMITS,
      }),
    );
  });
}

/** The start of a search as it crosses to the pool; empty for the root. */
function startOf(names: PathNames): Uint8Array {
  return names.length === 0 ? new Uint8Array() : Uint8Array.from(joinNames(names));
}
