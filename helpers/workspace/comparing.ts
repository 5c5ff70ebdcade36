/* The difference of two texts for a person's terminal, bounded in size and time. */
import { createTwoFilesPatch } from 'diff';

/** What a terminal shows of one changed file. */
export type Compared =
  | { readonly shown: 'text'; readonly text: string; readonly truncated: boolean }
  | { readonly shown: 'nothing'; readonly reason: 'binary' | 'too-large' };

/** Two sides as bytes; a side that does not exist is empty. */
export interface CompareTask {
  readonly path: string;
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

/** Bytes, so that the text fits into one frame in any script. */
const TEXT_LIMIT_BYTES = 600_000;
/** Two texts with nothing in common take time that grows with the product of their lengths. */
const COMPARE_MS = 5_000;

/** Unified difference with three lines around each change. */
export function compareTexts({ path, before, after }: CompareTask): Compared {
  const [one, two] = [textOf(before), textOf(after)];
  if (one === undefined || two === undefined) return { shown: 'nothing', reason: 'binary' };
  const text = createTwoFilesPatch(path, path, one, two, 'before', 'after', { context: 3, timeout: COMPARE_MS });
  if (text === undefined) return { shown: 'nothing', reason: 'too-large' };
  const whole = Buffer.from(text);
  if (whole.length <= TEXT_LIMIT_BYTES) return { shown: 'text', text, truncated: false };
  // a new line is never part of another character (RFC 3629)
  const end = Math.max(0, whole.lastIndexOf(NEW_LINE, TEXT_LIMIT_BYTES));
  return { shown: 'text', text: whole.toString('utf8', 0, end), truncated: true };
}

const NEW_LINE = 10;

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return strict.decode(bytes);
  } catch {
    // bytes that are not UTF-8 are no text, which is the answer
    return undefined;
  }
}
