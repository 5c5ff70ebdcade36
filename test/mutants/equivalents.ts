/* Mutants that no test can kill, by id, and why none can: what they leave out is shown by something else, or nothing hangs on it. */

/** Reasons by the id of the mutant. */
export const EQUIVALENT: Readonly<Record<string, string>> = {
  'apply.ts #prepare: `for (const folder of folders) journal.append(folder);` before `for (const planned of plan) {`':
    'records of steps and of folders are told apart by their kind, and no record counts before all are on the disk',
};
