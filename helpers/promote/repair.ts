/* What a person decided about a journal that recovery could not settle. */
import { randomBytes } from 'node:crypto';
import { goBack } from './go-back.ts';
import { findJournal, journalName, readJournal, states } from './journal.ts';
import type { JournalFile, JournalState } from './journal.ts';
import { hasOwn } from './own-folder.ts';
import type { PromoteBody, PromoteReply } from './protocol.ts';
import { keptPaths, KEPT_LIMIT, moveResting, rest, RestingFolder, restingIds } from './resting-place.ts';
import { isStaged } from './recover.ts';
import type { Scene } from './stage-end.ts';

/**
 * `restore` tries the way back once more where the journal is whole and lets go what a person has seen; `set-aside` moves a
 * journal out of the way and leaves the tree, stage folder included, exactly as it is. Throws what recovery would, so that a
 * damaged journal is never half-replayed (journal.ts INVARIANT 6).
 */
export function repair(scene: Scene, choice: PromoteBody<'promote.repair'>['choice']): PromoteReply<'promote.repair'> {
  const seen = restingIds(scene.own, 'attention').filter((id) => isEnded(scene, id));
  const kept = seen.flatMap((id) => keptPaths(scene.own, 'attention', id));
  const active = choice === 'restore' ? restoreActive(scene) : setAsideActive(scene.own);
  for (const id of seen) moveResting(scene.own, 'attention', 'settled', id);
  const isNothing = active === undefined && seen.length === 0;
  const outcome = isNothing ? 'nothing-to-do' : choice === 'restore' ? 'restored' : 'set-aside';
  return { outcome, kept: [...kept, ...(active ?? [])].slice(0, KEPT_LIMIT) };
}

/** A person may let go what has nothing left in the tree; the rest stays until its stage folder can go. */
function isEnded(scene: Scene, id: string): boolean {
  const folder = new RestingFolder(scene.own, 'attention', id);
  try {
    const found = readJournal(folder.open(), 'journal', 'prepared');
    return found.state === 'staging' || !isStaged(scene.root, found.prepared.begin);
  } finally {
    folder.close();
  }
}

function restoreActive(scene: Scene): readonly string[] | undefined {
  const found = findJournal(scene.own);
  if (found?.state !== 'prepared') return undefined;
  return goBack(scene, fileOf(scene.own, found.state), found.prepared).kept;
}

function setAsideActive(own: number): readonly string[] | undefined {
  const left = states.filter((state) => hasOwn(own, journalName(state)));
  for (const state of left) rest(own, fileOf(own, state), 'settled', `${state}-${randomBytes(8).toString('hex')}`, []);
  return left.length === 0 ? undefined : [];
}

function fileOf(own: number, state: JournalState): JournalFile {
  return { folder: own, name: journalName(state) };
}
