/*
 * Reads both sides of a reviewed change, sealed by the machine to a key that exists in this view alone.
 *
 * THREAT: whoever keeps or carries the bytes (database, proxy, log) would learn file contents; they have no key. What a machine
 * did not state in the manifest under review is never shown: every part is hashed against it here. The server that serves this
 * page could serve another page: the text beside the view says so.
 */
import nacl from 'tweetnacl';

import type { SealedPiece } from '../answers.ts';
import type { Part } from '../calls.ts';
import { SealBroken, SIDE_LIMIT_BYTES } from './broken.ts';
import { fromBase64, sha256, toBase64 } from './bytes.ts';

/** Largest manifest that is opened, in bytes. */
const MANIFEST_LIMIT_BYTES = 16 * 1024 * 1024;

/** Opens sealed parts with the key of one view. */
export interface SealedReader {
  /** SHA-256 of the view's public key, 64 hexadecimal digits. */
  readonly fingerprint: string;
  /** Reads a whole part and hashes it. Rejects with SealBroken, or with what asking rejects with. */
  readonly read: (part: Part, expectedSha256: string) => Promise<Uint8Array<ArrayBuffer>>;
}

type Ask = (wanted: {
  readonly recipientKey: string;
  readonly part: Part;
  readonly offset: number;
}) => Promise<SealedPiece>;

/** Makes a key for one view and a reader over it; the private half never leaves the returned closure. */
export async function createReader(ask: Ask): Promise<SealedReader> {
  const key = nacl.box.keyPair();
  const recipientKey = toBase64(key.publicKey);
  const open = (piece: SealedPiece): Uint8Array => {
    const opened = nacl.box.open(
      fromBase64(piece.sealed),
      fromBase64(piece.nonce),
      fromBase64(piece.senderKey),
      key.secretKey,
    );
    if (opened === null) throw new SealBroken('not-for-this-key');
    return opened;
  };
  const readAll = async (part: Part, limit: number): Promise<Uint8Array<ArrayBuffer>> => {
    const first = await ask({ recipientKey, part, offset: 0 });
    if (first.totalBytes > limit) throw new SealBroken('too-large');
    const whole = new Uint8Array(first.totalBytes);
    let piece = first;
    let at = 0;
    for (;;) {
      const opened = open(piece);
      if (piece.totalBytes !== whole.length || at + opened.length > whole.length) throw new SealBroken('wrong-length');
      whole.set(opened, at);
      at += opened.length;
      if (piece.next === undefined) break;
      if (piece.next !== at || opened.length === 0) throw new SealBroken('wrong-length');
      piece = await ask({ recipientKey, part, offset: at });
    }
    if (at !== whole.length) throw new SealBroken('wrong-length');
    return whole;
  };
  return {
    fingerprint: await sha256(new Uint8Array(key.publicKey)),
    read: async (part, expected) => {
      const bytes = await readAll(part, part.of === 'manifest' ? MANIFEST_LIMIT_BYTES : SIDE_LIMIT_BYTES);
      if ((await sha256(bytes)) !== expected) throw new SealBroken('wrong-digest');
      return bytes;
    },
  };
}
