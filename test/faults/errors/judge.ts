/*
 * What must be true of a promotion or a recovery on a disk on which something goes wrong: what is answered, what the owner is
 * told, the tree at that moment, and the tree after the next recovery on a sound disk. Each function plays one case and rejects
 * where anything is otherwise.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { CommitUncertain } from '../../../helpers/promote/journal.ts';
import type { SyscallName } from '../../../helpers/runtime/syscall-numbers.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import { twelveChanges } from '../../fakes/twelve-entries.ts';
import type { Trouble } from './errnos.ts';
import { Ended, FaultyDisk } from './faulty-disk.ts';
import type { Fault } from './faulty-disk.ts';
import { Trial } from './trial.ts';
import type { Ending } from './trial.ts';

/** An apply on which nothing goes wrong: its calls, the place of the rename that commits, counted from 1, and the tree that it makes. */
export interface Clean {
  readonly calls: readonly SyscallName[];
  readonly commit: number;
  /** Places of all renames: of the mark, to `prepared`, of each step, of the commit, to the history. */
  readonly renames: readonly number[];
  readonly promoted: ReadonlyMap<string, unknown>;
}

/** Applies on a sound disk. */
export async function cleanApply(): Promise<Clean> {
  const trial = new Trial();
  try {
    const disk = new FaultyDisk();
    const ending = await trial.apply(disk);
    assert.ok(ending.outcome === 'answered' && ending.reply.outcome === 'promoted');
    const renames = disk.calls.flatMap((name, index) => (name === 'renameat2' ? [index + 1] : []));
    assert.ok(renames.length > 4 + Object.keys(twelveChanges).length, `${renames.length} renames`);
    return { calls: disk.calls, commit: renames.at(-2) ?? 0, renames, promoted: timeless(trial.scene.listing()) };
  } finally {
    trial.scene.remove();
  }
}

type Refused = Extract<Fault, { kind: 'refused' }>;

/** Plays an apply with refused calls and returns in a word how it ended. */
export function playApply(clean: Clean, fault: Refused): Promise<string> {
  return playing(async (trial) => {
    const disk = new FaultyDisk(fault);
    const ending = await trial.apply(disk);
    assert.equal(disk.calls[fault.at - 1], clean.calls[fault.at - 1], 'the call is another than in a clean apply');
    const word = wordOf(ending);
    judgeEnding(trial, clean, { fault, disk, ending });
    if (fault.lasts && word !== 'promoted') await judgeBroken(trial, fault);
    await judgeSound(trial, clean, ending);
    return word;
  });
}

/** Plays an apply in which a write takes nothing, or each write or read moves one byte. */
export function playShort(clean: Clean, fault: Exclude<Fault, { kind: 'refused' | 'ended' }>): Promise<string> {
  return playing(async (trial) => {
    const ending = await trial.apply(new FaultyDisk(fault));
    const word = wordOf(ending);
    if (fault.kind === 'takes-none') assert.match(trial.said.join('\n'), /pwrite64 failed: EIO/);
    judgeTree(trial, clean, word);
    await judgeSound(trial, clean, ending);
    return word;
  });
}

/** Ends an apply at a call, then recovers with refused calls, and returns in a word how that recovery ended. */
export function playRecovery(clean: Clean, endedAt: number, fault: Refused): Promise<string> {
  return playing(async (trial) => {
    const { side } = await endApply(trial, endedAt);
    const disk = new FaultyDisk(fault);
    const { outcome, conflicts } = await trial.recover(disk);
    assert.deepEqual(conflicts, [], 'a person is asked about a file');
    if (outcome === 'needs-attention')
      assert.ok(isNamed(trial, disk, fault.errno), `not named: ${trial.said.join('; ')}`);
    else judgeTree(trial, clean, side === 'new' ? 'promoted' : 'rolled-back');
    if (fault.lasts) await judgeBroken(trial, fault);
    await judgeNext(trial, clean, side);
    return outcome;
  });
}

/** Numbered calls of a recovery after an apply that ended at a call. */
export function callsOfRecovery(endedAt: number): Promise<readonly SyscallName[]> {
  const calls: SyscallName[] = [];
  return playing(async (trial) => {
    await endApply(trial, endedAt);
    const disk = new FaultyDisk();
    await trial.recover(disk);
    calls.push(...disk.calls);
    return '';
  }).then(() => calls);
}

async function playing(play: (trial: Trial) => Promise<string>): Promise<string> {
  const trial = new Trial();
  try {
    const word = await play(trial);
    assert.equal(trial.leaked, 0, `descriptors stay open: ${trial.said.join('; ')}`);
    const told = trial.said.join('\n');
    const named = [trial.scene.folder, ...Object.keys(twelveChanges).filter((name) => name.includes('/'))];
    assert.ok(!named.some((name) => told.includes(name)), `a path is told: ${told}`);
    return word;
  } finally {
    trial.scene.remove();
  }
}

async function endApply(trial: Trial, at: number): Promise<{ side: 'old' | 'new' }> {
  const ending = await trial.apply(new FaultyDisk({ kind: 'ended', at }));
  assert.ok(ending.outcome === 'ended' && ending.error instanceof Ended);
  trial.said.length = 0;
  const isCommitted = fs.existsSync(path.join(trial.scene.own, 'journal.committed'));
  const isArchived = fs.existsSync(path.join(trial.scene.own, 'history'));
  return { side: isCommitted || isArchived ? 'new' : 'old' };
}

function wordOf(ending: Ending): string {
  if (ending.outcome !== 'answered') return ending.outcome;
  const { reply } = ending;
  return 'code' in reply && reply.code === 'PROMOTION_RECOVERY_REQUIRED' ? 'left' : reply.outcome;
}

interface Played {
  readonly fault: Refused;
  readonly disk: FaultyDisk;
  readonly ending: Ending;
}

function judgeEnding(trial: Trial, clean: Clean, { fault, disk, ending }: Played): void {
  const word = wordOf(ending);
  // A walk that was raced once is walked again; nothing else is asked twice, EINTR included.
  const isRetried = fault.errno === 'EAGAIN' && !fault.lasts;
  if (fault.at < clean.commit) assert.equal(word === 'promoted', isRetried, `${word} in spite of the error`);
  else assert.ok(word === 'promoted' || fault.at === clean.commit || word === 'ended', word);
  if (word === 'ended') assert.ok(ending.outcome === 'ended' && ending.error instanceof CommitUncertain);
  if (word === 'left') assert.ok(fault.lasts, 'a recovery is asked for after an error that went away');
  judgeTree(trial, clean, word);
  // A disk that is full costs the history, not the promotion.
  const isFull = word === 'promoted' && (fault.errno === 'ENOSPC' || fault.errno === 'EDQUOT');
  if (isRetried || isFull) return;
  const sentence = ending.outcome === 'not-taken' ? ending.refused.message : '';
  assert.ok(isNamed(trial, disk, fault.errno, sentence), `not named: ${trial.said.join('; ')}`);
}

/** Whether somebody is told what the disk refused first; of a full disk, which may only cost the history first, what it refused at all. */
function isNamed({ said }: Trial, { refused }: FaultyDisk, errno: Trouble, sentence = ''): boolean {
  const isFull = errno === 'ENOSPC' || errno === 'EDQUOT';
  const calls = isFull ? refused : refused.slice(0, 1);
  return calls.some((call) => [...said, sentence].some((told) => told.includes(`${call} failed: ${errno}`)));
}

/** The tree at the moment of the answer: whole, but for the stage folder that a committed promotion could not remove. */
function judgeTree({ scene, before }: Trial, { promoted }: Clean, word: string): void {
  if (word === 'left' || word === 'ended') return;
  if (word !== 'promoted') return assert.deepEqual(scene.listing(), before, 'not the old tree');
  const now = [...timeless(scene.listing())].filter(([name]) => !name.startsWith('.nessie-stage-'));
  assert.deepEqual(new Map(now), promoted, 'not the new tree');
}

/** Most calls that may be made of a recovery before it gives up: it does not go round. */
const CALLS = 2000;

/** While the disk stays broken every recovery ends by itself and asks for a person or settles all, and nothing is lost by it. */
async function judgeBroken(trial: Trial, fault: Refused): Promise<void> {
  for (let again = 0; again < 2; again += 1) {
    const disk = new FaultyDisk({ ...fault, at: 1, lasts: true });
    const { outcome } = await trial.recover(disk);
    assert.ok(disk.calls.length < CALLS, `${disk.calls.length} calls`);
    if (outcome === 'needs-attention') assert.ok(isNamed(trial, disk, fault.errno), trial.said.join('; '));
    else assert.deepEqual(journalsOf(trial), [], `${outcome} with a journal`);
    judgeContents(trial);
  }
}

function journalsOf({ scene }: Trial): string[] {
  return fs.readdirSync(scene.own).filter((name) => name.startsWith('journal.'));
}

/** Every old content is still somewhere, under whatever name; the new ones are in the draft. */
function judgeContents({ scene, before }: Trial): void {
  const kept = new Set<string>();
  for (const top of [scene.root, scene.own]) {
    for (const entry of fs.readdirSync(top, { recursive: true, withFileTypes: true, encoding: 'latin1' })) {
      if (!entry.isFile()) continue;
      const file = Buffer.from(path.join(entry.parentPath, entry.name), 'latin1');
      kept.add(createHash('sha256').update(fs.readFileSync(file)).digest('hex'));
    }
  }
  const lost = [...before].filter(([, { kind, content }]) => kind === 'file' && !kept.has(content));
  assert.deepEqual(lost, [], 'an old content is lost');
}

async function judgeSound(trial: Trial, clean: Clean, ending: Ending): Promise<void> {
  const word = wordOf(ending);
  const isCommitted = fs.existsSync(path.join(trial.scene.own, 'journal.committed'));
  await judgeNext(trial, clean, word === 'promoted' || (word === 'ended' && isCommitted) ? 'new' : 'old');
}

/** The next recovery on a sound disk settles all of it, and the one after that finds nothing. */
async function judgeNext(trial: Trial, clean: Clean, side: 'old' | 'new'): Promise<void> {
  const { outcome, conflicts } = await trial.recover();
  assert.ok(outcome !== 'needs-attention' && conflicts.length === 0, `${outcome}: ${trial.said.join('; ')}`);
  if (side === 'old') assert.deepEqual(trial.scene.listing(), trial.before, 'not the old tree in the end');
  else assert.deepEqual(timeless(trial.scene.listing()), clean.promoted, 'not the new tree in the end');
  assert.equal((await trial.recover()).outcome, 'nothing-to-do');
  const own = fs.readdirSync(trial.scene.own, { recursive: true, encoding: 'utf8' });
  const left = own.filter((name) => /^journal\.|\.next$|^(?:waiting|attention|settled|kept)\//.test(name));
  assert.deepEqual(left, [], 'left in the own folder');
}
