/*
 * Names are bytes on a Linux file system; models, people and JSON need text. One reversible spelling, used everywhere:
 * valid UTF-8 stands for itself, a backslash is written `\\`, and a byte that is not part of valid UTF-8 is `\xNN`.
 */

/** A path that has no reading as bytes. */
export class PathTextError extends Error {
  override readonly name = 'PathTextError';
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function sequenceLength(first: number): number {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

function decodeAt(name: Uint8Array, at: number): string | undefined {
  const length = sequenceLength(name[at] ?? 0);
  if (length === 0 || at + length > name.length) return undefined;
  return decoded(name.subarray(at, at + length));
}

function decoded(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    // The bytes are not UTF-8, which is the answer.
    return undefined;
  }
}

/** Writes a name or path of bytes as text. */
export function toPathText(name: Uint8Array): string {
  const whole = decoded(name);
  if (whole !== undefined) return whole.replaceAll('\\', '\\\\');
  let text = '';
  for (let at = 0; at < name.length;) {
    const character = decodeAt(name, at);
    if (character === undefined) {
      text += `\\x${(name[at] ?? 0).toString(16).padStart(2, '0')}`;
      at += 1;
    } else {
      text += character === '\\' ? '\\\\' : character;
      at += Buffer.byteLength(character);
    }
  }
  return text;
}

/** Reads a path of text back into bytes. Throws PathTextError for a lone surrogate or an escape that no name writes. */
export function fromPathText(text: string): Buffer {
  if (/\p{Surrogate}/u.test(text)) throw new PathTextError('path has half a surrogate pair');
  if (!text.includes('\\')) return Buffer.from(text, 'utf8');
  const parts: Buffer[] = [];
  let at = 0;
  while (at < text.length) {
    const next = text.indexOf('\\', at);
    if (next === -1) break;
    parts.push(Buffer.from(text.slice(at, next), 'utf8'));
    const escape = /^\\(?:\\|x([0-9a-f]{2}))/.exec(text.slice(next));
    if (!escape) throw new PathTextError('path has a backslash; a backslash in a name is written \\\\');
    parts.push(escape[1] === undefined ? Buffer.from('\\') : Buffer.from(escape[1], 'hex'));
    at = next + escape[0].length;
  }
  parts.push(Buffer.from(text.slice(at), 'utf8'));
  const bytes = Buffer.concat(parts);
  if (toPathText(bytes) !== text) throw new PathTextError('path is not the one spelling of its bytes');
  return bytes;
}
