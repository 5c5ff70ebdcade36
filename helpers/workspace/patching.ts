/* Edits of a file as bytes: each old text must stand exactly once, and no two edits may touch each other. */

/** One edit, as text that stands in the file as UTF-8. */
export interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

/** The edited bytes, or a sentence that names the edit and the place where it does not fit. */
export type Patched = { readonly bytes: Buffer } | { readonly conflict: string };

/**
 * Offsets at which bytes occur, at most `limit` of them, overlapping ones included.
 * THREAT: an agent sends text that makes an ordinary search compare each byte thousands of times; this one looks at each byte
 * of the file once (Knuth, Morris, Pratt 1977). test/helpers/workspace/patching.test.ts measures it.
 */
export function occurrences(content: Uint8Array, wanted: Uint8Array, limit: number): number[] {
  const borders = bordersOf(wanted);
  const found: number[] = [];
  let matched = 0;
  for (let at = 0; at < content.length && found.length < limit; at += 1) {
    while (matched > 0 && content[at] !== wanted[matched]) matched = borders[matched - 1] ?? 0;
    if (content[at] === wanted[matched]) matched += 1;
    if (matched < wanted.length) continue;
    found.push(at + 1 - wanted.length);
    matched = borders[matched - 1] ?? 0;
  }
  return found;
}

/** For each prefix, the length of the longest shorter one that it also ends with. */
function bordersOf(wanted: Uint8Array): Uint32Array {
  const borders = new Uint32Array(wanted.length);
  let length = 0;
  for (let at = 1; at < wanted.length; at += 1) {
    while (length > 0 && wanted[at] !== wanted[length]) length = borders[length - 1] ?? 0;
    if (wanted[at] === wanted[length]) length += 1;
    borders[at] = length;
  }
  return borders;
}

interface Placed {
  readonly number: number;
  readonly start: number;
  readonly end: number;
  readonly replacement: Buffer;
}

/** Applies edits to the bytes of a file. `between` is asked before each edit and may end the work by throwing. */
export function patchBytes(content: Buffer, edits: readonly Edit[], between: () => void): Patched {
  const placed: Placed[] = [];
  for (const [index, edit] of edits.entries()) {
    between();
    const place = placeEdit(content, edit, index + 1);
    if ('conflict' in place) return place;
    placed.push(place);
  }
  placed.sort((one, two) => one.start - two.start);
  const pieces: Buffer[] = [];
  let done = 0;
  for (const [index, { number, start, end, replacement }] of placed.entries()) {
    if (start < done) {
      const other = placed[index - 1]?.number ?? number;
      return {
        conflict: `edits ${other} and ${number} overlap at line ${lineOf(content, start)}; make one edit of them`,
      };
    }
    pieces.push(content.subarray(done, start), replacement);
    done = end;
  }
  return { bytes: Buffer.concat([...pieces, content.subarray(done)]) };
}

function placeEdit(content: Buffer, edit: Edit, number: number): Placed | { readonly conflict: string } {
  const wanted = Buffer.from(edit.oldText, 'utf8');
  const [start, second] = occurrences(content, wanted, 2);
  if (start === undefined)
    return { conflict: `the old text of edit ${number} is not in the file${lineEndHint(content, edit.oldText)}` };
  if (second !== undefined) {
    const lines = `${lineOf(content, start)} and ${lineOf(content, second)}`;
    return {
      conflict: `the old text of edit ${number} is in the file more than once, at lines ${lines}; give more of what stands around it`,
    };
  }
  return { number, start, end: start + wanted.length, replacement: Buffer.from(edit.newText, 'utf8') };
}

function lineEndHint(content: Buffer, text: string): string {
  const fileHasCrlf = content.includes('\r\n');
  const textHasCrlf = text.includes('\r\n');
  if (fileHasCrlf && !textHasCrlf && text.includes('\n')) return '; the file ends its lines with CR LF';
  return textHasCrlf && !fileHasCrlf ? '; the file ends its lines with LF alone' : '';
}

function lineOf(content: Buffer, offset: number): number {
  let line = 1;
  for (let at = content.indexOf(10); at !== -1 && at < offset; at = content.indexOf(10, at + 1)) line += 1;
  return line;
}
