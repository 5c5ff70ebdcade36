import { decode } from '../../helpers/protocol/codec.ts';
import type { Plain } from '../../helpers/protocol/codec.ts';
import { failureSchema, findOperation } from '../../helpers/protocol/operations.ts';
import type { Outcome } from '../../helpers/protocol/statements.ts';

/** Result bytes of a machine, judged. */
export type JudgedResult =
  /** `code` is that of a failure. */
  | { readonly acceptable: true; readonly value: Plain; readonly code: string | null }
  | { readonly acceptable: false; readonly code: 'RESULT_TOO_LARGE' | 'RESULT_INVALID' };

/** Judges the result of an operation: its size, its one spelling, and the schema that its outcome demands. */
export function judgeResult(operation: string, outcome: Outcome, bytes: Uint8Array): JudgedResult {
  const known = findOperation(operation);
  if (!known || bytes.length > known.resultLimitBytes) return { acceptable: false, code: 'RESULT_TOO_LARGE' };
  try {
    const value = decode(bytes);
    if (outcome === 'succeeded') {
      known.result.parse(value);
      return { acceptable: true, value, code: null };
    }
    return { acceptable: true, value, code: failureSchema.parse(value).code };
  } catch {
    // CodecError or ZodError: what exactly is wrong with a machine's bytes is for the machine to find out.
    return { acceptable: false, code: 'RESULT_INVALID' };
  }
}
