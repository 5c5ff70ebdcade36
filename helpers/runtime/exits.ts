import { launchStepOf } from './launch-steps.ts';

/** Exit code of a process that met a protocol violation; helpers/protocol/errors.ts names the same number for the roles. */
export const EXIT_VIOLATION = 64;

/** What an ending means, in the order of their numbers on the wire. */
export const EXIT_MEANINGS = [
  'asked for',
  'protocol violation',
  'policy violation',
  'crash',
  'exit',
  'launch failed',
] as const;
/** One meaning of an ending. */
export type ExitMeaning = (typeof EXIT_MEANINGS)[number];

/** How a process ended: an exit code, or the signal that ended it. */
export type Exit =
  | { readonly by: 'code'; readonly code: number }
  | { readonly by: 'signal'; readonly signal: NodeJS.Signals };

/**
 * The meaning of an ending (design section 2 rule 6, S-013): SIGSYS is the kernel's answer to a call that the row's filter
 * punishes, any other signal a crash, code 64 a protocol violation, 0 asked for.
 */
export function meaningOf(exit: Exit): ExitMeaning {
  if (exit.by === 'signal') return exit.signal === 'SIGSYS' ? 'policy violation' : 'crash';
  if (exit.code === 0) return 'asked for';
  if (exit.code === EXIT_VIOLATION) return 'protocol violation';
  return launchStepOf(exit.code) === undefined ? 'exit' : 'launch failed';
}

/** Whether an ending stops the whole executor until a person runs `repair`. */
export function isViolation(meaning: ExitMeaning): boolean {
  return meaning === 'protocol violation' || meaning === 'policy violation';
}
