import { structuredPatch } from 'diff';

/** One line of a difference with its numbers on either side. */
export interface Line {
  readonly mark: '+' | '-' | ' ';
  readonly before: number | undefined;
  readonly after: number | undefined;
  readonly text: string;
  /** The file ends here without a line break. */
  readonly open: boolean;
}
/** Lines that stand together, with where they begin. */
export type Hunk = readonly Line[];

/** What can be shown of two contents. */
export type Compared =
  | { readonly shown: 'hunks'; readonly hunks: readonly Hunk[] }
  | { readonly shown: 'nothing'; readonly reason: 'binary' | 'too-different' };

/** Longest time that lines are compared, in ms: hostile files may not freeze the page. */
const COMPARE_MS = 1500;

/** Text of bytes, or undefined where they are not UTF-8 text. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // Not UTF-8, which is the answer.
    return undefined;
  }
}

/** Compares two contents line by line; `undefined` is a file that is not there. */
export function compare(before: Uint8Array | undefined, after: Uint8Array | undefined): Compared {
  const old = textOf(before ?? new Uint8Array());
  const next = textOf(after ?? new Uint8Array());
  if (old === undefined || next === undefined) return { shown: 'nothing', reason: 'binary' };
  const patch = structuredPatch('', '', old, next, undefined, undefined, { context: 3, timeout: COMPARE_MS });
  if (patch === undefined) return { shown: 'nothing', reason: 'too-different' };
  return { shown: 'hunks', hunks: patch.hunks.map(hunkOf) };
}

function hunkOf(hunk: {
  readonly oldStart: number;
  readonly newStart: number;
  readonly lines: readonly string[];
}): Hunk {
  let before = hunk.oldStart;
  let after = hunk.newStart;
  const lines: Line[] = [];
  for (const [index, line] of hunk.lines.entries()) {
    const mark = line[0];
    if (mark !== '+' && mark !== '-' && mark !== ' ') continue;
    lines.push({
      mark,
      before: mark === '+' ? undefined : before,
      after: mark === '-' ? undefined : after,
      text: line.slice(1),
      open: hunk.lines[index + 1]?.startsWith('\\') ?? false,
    });
    if (mark !== '+') before += 1;
    if (mark !== '-') after += 1;
  }
  return lines;
}
