/* Mutants that no test can kill, by id, and why none can: what they leave out is shown by something else, or nothing hangs on it. */

/** Reasons by the id of the mutant. */
export const EQUIVALENT: Readonly<Record<string, string>> = {};
