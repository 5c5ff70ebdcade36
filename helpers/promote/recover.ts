/*
 * Settles what an earlier promotion left, before anything else is done with the root. It decides by the state of the journal
 * (journal.ts) and by the tree, and may itself be cut and begun again at any point.
 */
import { rootIdentity } from '../files/root.ts';
import { WalkRefused } from '../files/walk.ts';
import { CodecError } from '../protocol/codec.ts';
import { NativeError } from '../runtime/libc.ts';
import { statx } from '../runtime/native-files.ts';
import { goBack } from './go-back.ts';
import { goForward } from './go-forward.ts';
import { discardJournal, findJournal, journalName, readJournal } from './journal.ts';
import type { FoundJournal, JournalFile } from './journal.ts';
import { JournalDamaged } from './journal-records.ts';
import type { Begin } from './journal-records.ts';
import { dropUnfinishedMark } from './mark.ts';
import { asNative } from './stop.ts';
import type { Stopped } from './stop.ts';
import { UntrustedFile } from './own-folder.ts';
import { forgetResting, keptPaths, KEPT_LIMIT, RestingFolder, restingIds } from './resting-place.ts';
import { discardStage } from './stage-end.ts';
import type { Scene, Settled } from './stage-end.ts';
import { STAGE_PREFIX, namesIn, statusAt } from './tree.ts';
import type { PromoteReply } from './protocol.ts';

/** What a recovery found and did. */
export type Recovered = Omit<PromoteReply<'promote.recover'>, 'slot' | 'promoted'>;

/** Where and when a recovery happens; `bootId` is the kernel's, `now` in ms since the Unix epoch, `log` takes a sentence for the owner. */
export interface Moment {
  readonly log: (sentence: string) => void;
  readonly bootId: string;
  readonly now: number;
}

/** Errors that leave the journal for a person: it cannot be believed, or the disk refuses. */
export function needsPerson(error: unknown): boolean {
  const known = asNative(error);
  return [JournalDamaged, UntrustedFile, NativeError, WalkRefused, CodecError].some((kind) => known instanceof kind);
}

/** Why a promotion or recovery broke: call and errno, or what is wrong with a file of ours; never a path of the person. */
export function causeOf(what: 'promotion' | 'recovery' | 'cleaning', error: unknown): string {
  if (!(error instanceof Error)) return `${what} broke`;
  const behind = error.cause instanceof NativeError ? `: ${error.cause.message}` : '';
  return `${what} broke: ${error.name}: ${error.message}${behind}`;
}

/** Says why a promotion ended before its commit, where that lay in what the disk or the kernel answered or has not. */
export function tellStop({ cause, detail }: Stopped, log: (sentence: string) => void): void {
  if (cause !== undefined) log(causeOf('promotion', cause));
  else if (detail !== undefined) log(`promotion broke: ${detail}`);
}

/** Says that a promotion cannot be undone, where a full disk is the reason. */
export function tellNotKept({ notKept = 0 }: Settled, log: (sentence: string) => void): void {
  if (notKept > 0) log(`promoted; it cannot be undone, because the disk was full: ${notKept} old files are not kept`);
}

/** Settles the active journal, then what waited; what only a person can settle is told and left as it is. */
export function recover(scene: Scene, moment: Moment): Recovered {
  try {
    dropUnfinishedMark(scene.own);
    const active = settleActive(scene, moment);
    settleWaiting(scene, moment);
    settleAttention(scene, moment);
    const conflicts = restingIds(scene.own, 'attention').flatMap((id) => keptPaths(scene.own, 'attention', id));
    const attention = restingIds(scene.own, 'attention').length > 0;
    return { outcome: attention ? 'needs-attention' : active, conflicts: conflicts.slice(0, KEPT_LIMIT) };
  } catch (error) {
    if (!needsPerson(error)) throw error;
    moment.log(causeOf('recovery', error));
    return { outcome: 'needs-attention', conflicts: [] };
  }
}

function settleActive(scene: Scene, moment: Moment): 'nothing-to-do' | 'rolled-back' | 'cleaned' {
  const found = findJournal(scene.own);
  if (found === undefined) return 'nothing-to-do';
  const file: JournalFile = { folder: scene.own, name: journalName(found.state) };
  const begin = found.state === 'staging' ? found.begin : found.prepared.begin;
  if (begin !== undefined) {
    checkOrigin(scene.root, begin, moment.bootId);
    checkOriginal(file, begin);
  }
  return settle(scene, file, found, moment);
}

function settle(scene: Scene, file: JournalFile, found: FoundJournal, moment: Moment): 'rolled-back' | 'cleaned' {
  if (found.state === 'staging') {
    if (found.begin !== undefined) discardStage(scene.root, file, found.begin, found.staging);
    else if (hasStage(scene.root)) throw new JournalDamaged('a stage folder without its record');
    discardJournal(file);
    return 'rolled-back';
  }
  if (found.state === 'prepared') {
    goBack(scene, file, found.prepared);
    return 'rolled-back';
  }
  tellNotKept(goForward(scene, file, found.prepared, moment.now), moment.log);
  return 'cleaned';
}

/**
 * THREAT: a state folder that was copied from another machine, or whose root was replaced, would have its journal played
 * against files that it never described (S-164). The root's identity is recomputed; within one boot its device must agree too.
 */
function checkOrigin(root: number, begin: Begin, bootId: string): void {
  const status = statx(root, Buffer.alloc(0));
  const isRoot = rootIdentity(root).toString('hex') === begin.rootIdentity && status.ino.toString() === begin.rootIno;
  const isDevice = begin.bootId !== bootId || status.dev.toString() === begin.rootDev;
  if (!isRoot || !isDevice) throw new JournalDamaged('a journal of another root');
}

/**
 * THREAT: a copy of the state folder from yesterday, put back by a backup or by hand, holds a journal of a promotion that has ended
 * since (S-164). Its file is another one than the one that was begun; nobody copies a file in its own place.
 */
function checkOriginal({ folder, name }: JournalFile, { journalIno }: Begin): void {
  const ino = statusAt(folder, Buffer.from(name))?.ino.toString();
  if (journalIno !== undefined && journalIno !== ino) throw new JournalDamaged('a copy of a journal');
}

function hasStage(root: number): boolean {
  return namesIn(root).some((name) => name.toString('latin1').startsWith(STAGE_PREFIX));
}

/** Old files that were open for writing when a promotion was committed: those that are quiet now go to the history. */
function settleWaiting(scene: Scene, moment: Moment): void {
  for (const id of restingIds(scene.own, 'waiting')) {
    const isGone = withRested(scene, 'waiting', id, moment, (file, found) => {
      if (found.state === 'committed') goForward(scene, file, found.prepared, moment.now);
    });
    if (isGone) forgetResting(scene.own, 'waiting', id);
  }
}

/** A way back whose stage folder had to stay, since somebody wrote to a file in it: it is ended once that is over. */
function settleAttention(scene: Scene, moment: Moment): void {
  for (const id of restingIds(scene.own, 'attention')) {
    const isGone = withRested(scene, 'attention', id, moment, (file, found) => {
      if (found.state !== 'prepared' || !isStaged(scene.root, found.prepared.begin)) return;
      goBack(scene, file, found.prepared);
    });
    if (isGone) forgetResting(scene.own, 'attention', id);
  }
}

/** Whether the stage folder of a promotion still stands. */
export function isStaged(root: number, begin: Begin): boolean {
  return statusAt(root, Buffer.from(begin.stage)) !== undefined;
}

/** Gives a journal at rest to `settle`; true when it is not there any more. */
function withRested(
  scene: Scene,
  place: 'waiting' | 'attention',
  id: string,
  moment: Moment,
  settle: (file: JournalFile, found: Exclude<FoundJournal, { state: 'staging' }>) => void,
): boolean {
  const folder = new RestingFolder(scene.own, place, id);
  try {
    if (!folder.has('journal')) return true;
    const found = readJournal(folder.open(), 'journal', place === 'waiting' ? 'committed' : 'prepared');
    if (found.state === 'staging') return false;
    const file: JournalFile = { folder: folder.open(), name: 'journal' };
    checkOrigin(scene.root, found.prepared.begin, moment.bootId);
    checkOriginal(file, found.prepared.begin);
    settle(file, found);
    return !folder.has('journal');
  } finally {
    folder.close();
  }
}
