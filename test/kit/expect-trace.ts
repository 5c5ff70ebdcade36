import { AssertionError } from 'node:assert';

import { explain } from '../../machines/trace/diff.ts';
import { parseTrace } from '../../machines/trace/format.ts';
import { replay } from '../../machines/trace/replay.ts';

/**
 * Asserts that this version's machines reproduce every state and action of a trace, and, where a golden one is given, that both are
 * the same. Throws AssertionError with one sentence for each difference.
 */
export function expectTrace(actual: string, golden?: string): void {
  const outcome = replay(actual);
  if (!outcome.ok) {
    const found = outcome.differences.map(({ line, actor, why }) =>
      line === 0 ? why : `line ${line}, ${actor}: ${why}`,
    );
    throw new AssertionError({ message: found.join('\n'), stackStartFn: expectTrace });
  }
  if (golden === undefined || golden === actual) return;
  const found = explain(parseTrace(golden), parseTrace(actual));
  throw new AssertionError({ message: found.join('\n'), actual, expected: golden, stackStartFn: expectTrace });
}
