/*
 * Digests and ids of a simulated world. They stand for SHA-256 and for signatures: equal where their text is equal, else different,
 * and short. Nothing here is safe against anybody; nobody here forges.
 */
import { mixed } from './random.ts';

/** Eight bytes that a text decides. */
export function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, mixed(text));
  view.setUint32(4, mixed(`#${text}`));
  return bytes;
}

/** The same as sixteen hexadecimal digits. */
export function digestOf(text: string): string {
  return mixed(text).toString(16).padStart(8, '0') + mixed(`#${text}`).toString(16).padStart(8, '0');
}

/** Bytes as hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

/** Hexadecimal digits as bytes. */
export function unhex(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length / 2 }, (_, at) => Number.parseInt(text.slice(2 * at, 2 * at + 2), 16));
}
