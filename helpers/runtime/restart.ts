/** What the supervisor remembers of a row's endings; times in ms of one steady clock. */
export type Endings = { readonly inARow: number; readonly times: readonly number[] };

/** No ending yet. */
export const NO_ENDINGS: Endings = { inARow: 0, times: [] };

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 30_000;
/** A row that ran this long had started well, so its next wait is the first one again. */
const STEADY_MS = 1_000;
const WINDOW_MS = 60_000;
/** Endings within the window after which a row stays down. */
const ENDINGS_LIMIT = 20;

/** Whether and when a row starts again after an unwanted ending (design section 2 rule 6). */
export function afterEnding(
  before: Endings,
  ranMs: number,
  nowMs: number,
): { readonly endings: Endings; readonly recent: number; readonly waitMs: number | undefined } {
  const times = [...before.times.filter((time) => time > nowMs - WINDOW_MS), nowMs];
  const inARow = ranMs >= STEADY_MS ? 1 : before.inARow + 1;
  const isDown = times.length >= ENDINGS_LIMIT;
  const waitMs = isDown ? undefined : Math.min(FIRST_WAIT_MS * 2 ** (inARow - 1), LONGEST_WAIT_MS);
  return { endings: { inARow, times }, recent: times.length, waitMs };
}
