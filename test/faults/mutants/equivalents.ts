/* Mutants that no test can kill, by id, and why none can: what they leave out is shown by something else, or nothing hangs on it. */

const SLOT_FREE =
  'the number of a step is free in the stage folder until the step puts something there, and nobody else may enter it';
const AFTER = 'what was moved is compared again after the rename, and moved back where it is another';

/** Reasons by the id of the mutant. */
export const EQUIVALENT: Readonly<Record<string, string>> = {
  'apply.ts #prepare: `for (const folder of folders) journal.append(folder);` before `for (const planned of plan) {`':
    'records of steps and of folders are told apart by their kind, and no record counts before all are on the disk',
  'place.ts takeFile: isSame(status, before) is true': AFTER,
  'place.ts takeFolder: isSame(status, before) is true': AFTER,
  'place.ts takeFolder: isEmptyFolder(place.folder, place.name) is true': AFTER,
  'place.ts putNew: a rename without NOREPLACE (2)': SLOT_FREE,
  'place.ts swap: a rename without NOREPLACE': SLOT_FREE,
  'place.ts takeFolder: a rename without NOREPLACE': SLOT_FREE,
  'take-back.ts backDeleted: a rename without NOREPLACE (2)': SLOT_FREE,
  'take-back.ts backCreated: a rename without NOREPLACE': SLOT_FREE,
  'take-back.ts backCreated: isSame(target, step.after) is true': AFTER,
  'take-back.ts backCreated: isEmptyFolder(place.folder, place.name) is true': AFTER,
  'take-back.ts whileUntouched: isSame(status, after) is true': AFTER,
  'own-folder.ts replaceOwn: a rename without NOREPLACE':
    'it was just seen that the name is free, in a folder that one process alone writes to',
  'journal.ts #enter: a rename without NOREPLACE':
    'no journal is begun where one of any state stands, and one process alone writes to the folder',
  'journal.ts archiveJournal: a rename without NOREPLACE':
    'an approval serves once, so no promotion of this id can have gone to rest before',
};
