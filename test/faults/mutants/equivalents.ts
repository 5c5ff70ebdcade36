/* Mutants that no test can kill, by id, and why none can: what they leave out is shown by something else, or nothing hangs on it. */

const SLOT_FREE =
  'the number of a step is free in the stage folder until the step puts something there; only what its owner’s own hand puts there would be replaced, at no path of theirs';
const AFTER = 'what was moved is compared again after the rename, and moved back where it is another';

const TWICE =
  'of the two renames to a free name that are tried, one with the flag tells whether the file system knows it';

const ONE_MOUNT =
  'the walk to the folder crosses no mount, and on one mount the inode number alone tells folders apart';

/** Reasons by the id of the mutant. */
export const EQUIVALENT: Readonly<Record<string, string>> = {
  'apply.ts #prepare: `for (const folder of folders) journal.append(folder);` before `for (const planned of plan) {`':
    'records of steps and of folders are told apart by their kind, and no record counts before all are on the disk',
  'apply.ts #prepare: `if (isBulk) syncfs(stage);` before `for (const folder of folders) journal.append(folder);`':
    'a record is gathered for the journal, which is synced when the next state is entered and by no sync of the stage folder',
  'capabilities.ts keepsNames: a rename without NOREPLACE (2)': TWICE,
  'capabilities.ts keepsNames: a rename without NOREPLACE (3)': TWICE,
  'place.ts takeFile: isSame(status, before) is true': AFTER,
  'place.ts takeFolder: isSame(status, before) is true': AFTER,
  'place.ts takeFolder: isEmptyFolder(place.folder, place.name) is true': AFTER,
  'place.ts putNew: a rename without NOREPLACE (2)': SLOT_FREE,
  'place.ts swap: a rename without NOREPLACE': SLOT_FREE,
  'place.ts takeFolder: a rename without NOREPLACE': SLOT_FREE,
  'strays.ts gatherFrom: a rename without NOREPLACE': SLOT_FREE,
  'take-back.ts backDeleted: a rename without NOREPLACE (2)': SLOT_FREE,
  'take-back.ts backCreated: a rename without NOREPLACE': SLOT_FREE,
  'take-back.ts backCreated: isSame(target, step.after) is true': AFTER,
  'take-back.ts backCreated: isEmptyFolder(place.folder, place.name) is true': AFTER,
  'take-back.ts whileUntouched: isSame(status, after) is true': AFTER,
  'take-all-back.ts takeAllBack: `settleInside(steps, results);` before `for (const [index, step] of steps.toReversed().entries()) {`':
    'what is away then is looked for again at once, in a round that ends with the same question',
  'take-all-back.ts takeAllBack: `settleInside(steps, results);` before `for (const step of steps.toReversed())`':
    'the next round settles it; where the patience ends with the round that found a folder again, more is told to the person, not less',
  'stage-end.ts discardStage: `for (const name of namesIn(stage)) {` before `const isOurs = isStagingTime(statx(root, ITSELF).mtimeNs, statx(stage, ITSELF).mtimeNs, staging);`':
    'the time of the stage folder is asked only where no record says that it was made, and then nothing was put into it yet',
  'go-back.ts goBack: `const isOurs = isRootTimeOurs(tree, begin, newest, staging.rootMtimeNs);` before `fsync(stage);`':
    'a sync changes no time',
  'go-back.ts goBack: `const disposal = disposeAll(scene.own, tree, prepared, conflicts);` before `const isOurs = isRootTimeOurs(tree, begin, newest, staging.rootMtimeNs);`':
    'what is disposed of lies in the stage folder, whose names are no change of the root, and times of moved files were taken before',
  'go-forward.ts goForward: `const stage = openStage(scene.root, begin.stage, staging.stageIno);` before `if (begin.undoes !== null) markUndone(scene.own, begin.undoes, id);`':
    'the stage folder is opened and nothing in it is touched before the other promotion is marked',
  "recover.ts settle: `if (found.state === 'prepared') {` before `if (found.state === 'staging') {`":
    'a journal has one state, and each of the two returns',
  'recover.ts recover: `const active = settleActive(scene, moment);` before `dropUnfinishedMark(scene.own);`':
    'no recovery reads or writes the mark, and the next write of the mark drops what a cut one left',
  'resting-place.ts moveResting: a rename without NOREPLACE':
    'a promotion goes to rest once, so no folder of its id stands where it is moved to, and one process alone writes to the folder',
  'preflight.ts checkOld: `status.mountId === statx(folder, ITSELF).mountId` as `true`':
    'the file or folder is opened right after it by a walk that crosses no mount, which refuses it by the same code',
  'go-back.ts goBack: `const conflicts = takeAllBack(tree, prepared, onStep);` before `gatherStrays(stage, steps);`':
    'what lies in a new folder that is in the stage folder again counts as taken back with that folder, and is out of it before anything is disposed of either way',
  'tree.ts isStillAt: `found.dev === held.dev` as `true`': ONE_MOUNT,
  'tree.ts isStillAt: `found.mountId === held.mountId` as `true`': ONE_MOUNT,
  'own-folder.ts replaceOwn: a rename without NOREPLACE':
    'it was just seen that the name is free, in a folder that one process alone writes to',
  'journal.ts #enter: a rename without NOREPLACE':
    'no journal is begun where one of any state stands, and one process alone writes to the folder',
  'journal.ts archiveJournal: a rename without NOREPLACE':
    'an approval serves once, so no promotion of this id can have gone to rest before',
};
