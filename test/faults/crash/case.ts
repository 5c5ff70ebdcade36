/*
 * One case of the crash matrix: an apply is killed, where there is a second kill the recovery of what that left is killed too,
 * then the promote that ships recovers, and everything is compared. Which tree must stand is no choice of the recovery: the
 * journal's name at the moment of the kill says it (helpers/promote/journal.ts).
 */
import assert from 'node:assert/strict';

import { everyKind } from '../../fakes/every-kind.ts';
import type { Depth, EveryKind } from '../../fakes/every-kind.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import type { Listed, Listing } from '../../fakes/promotion-scene.ts';
import { PROMOTION } from './bench.ts';
import type { Bench } from './bench.ts';
import { killFrom, nameOf } from './order.ts';
import type { Kill } from './order.ts';
import { keyOf, ownLines, standingOf, stateOf } from './state.ts';
import type { Standing } from './state.ts';

/** Where to kill: in the apply, and then perhaps in the recovery. */
export interface Case {
  readonly depth: Depth;
  readonly apply: Kill;
  readonly recovery: Kill | undefined;
}

/** Spelling of a case, as `--only` takes it. */
export function nameOfCase({ depth, apply, recovery }: Case): string {
  const kills = [apply, ...(recovery === undefined ? [] : [recovery])].map(nameOf).join(',');
  return depth === 'top' ? kills : `${depth}:${kills}`;
}

/** Reads a case from its spelling, or undefined for anything else. */
export function caseFrom(text: string): Case | undefined {
  const [, below, first = '', second] = /^(below:)?([^,]*)(?:,([^,]*))?$/.exec(text) ?? [];
  const [apply, recovery] = [killFrom(first), second === undefined ? undefined : killFrom(second)];
  if (apply === undefined || (second !== undefined && recovery === undefined)) return undefined;
  return { depth: below === undefined ? 'top' : 'below', apply, recovery };
}

/** What an apply that nobody kills issues and leaves. */
export interface Clean {
  readonly calls: readonly string[];
  readonly promoted: ReadonlyMap<string, Omit<Listed, 'mtimeNs'>>;
  readonly own: readonly string[];
}

/** Runs an apply that nobody kills. */
export async function cleanRun(bench: Bench, depth: Depth): Promise<Clean> {
  const { scene } = everyKind(depth);
  try {
    const calls = await bench.number(scene, 'apply');
    return { calls, promoted: timeless(scene.listing()), own: ownLines(scene) };
  } finally {
    scene.remove();
  }
}

/** What the last kill of a case left, and which tree stood after the recovery. */
export interface Left {
  readonly key: string;
  readonly standing: Standing;
  readonly tree: 'old' | 'new';
}

const OUTCOMES: Readonly<Record<Standing, string>> = {
  none: 'nothing-to-do',
  staging: 'rolled-back',
  prepared: 'rolled-back',
  committed: 'cleaned',
  archived: 'nothing-to-do',
};

/** A scene on which a case is played, and its tree before it. */
interface Stage extends EveryKind {
  readonly before: Listing;
}

async function onStage<Result>(depth: Depth, play: (stage: Stage) => Promise<Result>): Promise<Result> {
  const made = everyKind(depth);
  try {
    return await play({ ...made, before: made.scene.listing() });
  } finally {
    made.scene.remove();
  }
}

/** Plays a case. `expected` is the key of the state that the first of two kills must leave. Rejects where anything is not as promised. */
export async function playCase(bench: Bench, clean: Clean, played: Case, expected?: string): Promise<Left> {
  return onStage(played.depth, async (stage) => {
    await bench.kill(stage.scene, 'apply', played.apply);
    const first = leftBy(stage);
    if (played.recovery === undefined) return judge(bench, clean, stage, first);
    if (expected !== undefined) assert.equal(first.key, expected, 'the first kill left another state than before');
    await bench.kill(stage.scene, 'recover', played.recovery);
    const second = leftBy(stage);
    assert.equal(second.tree, first.tree, `a recovery of ${first.standing} turned to the other tree`);
    return judge(bench, clean, stage, second);
  });
}

/** Numbered calls of the recovery of what a kill of the apply left, and the key of that state. */
export async function numberRecovery(
  bench: Bench,
  depth: Depth,
  apply: Kill,
): Promise<{ key: string; calls: string[] }> {
  return onStage(depth, async (stage) => {
    await bench.kill(stage.scene, 'apply', apply);
    const { key } = leftBy(stage);
    return { key, calls: await bench.number(stage.scene, 'recover') };
  });
}

function leftBy({ scene, before }: Stage): Left {
  const standing = standingOf(scene);
  const tree = standing === 'committed' || standing === 'archived' ? 'new' : 'old';
  return { key: keyOf(stateOf(scene, before)), standing, tree };
}

async function judge(bench: Bench, clean: Clean, { scene, before, untouched }: Stage, left: Left): Promise<Left> {
  const recovered = await scene.recover(bench.real, [PROMOTION]);
  const promoted = left.tree === 'new' ? [PROMOTION] : [];
  assert.deepEqual(recovered, { outcome: OUTCOMES[left.standing], conflicts: [], promoted });
  judgeTree(scene.listing(), { before, untouched, clean }, left.tree);
  judgeOwn(ownLines(scene), clean.own, left.tree);
  assert.equal((await scene.recover(bench.real)).outcome, 'nothing-to-do', 'a second recovery');
  judgeTree(scene.listing(), { before, untouched, clean }, left.tree);
  return left;
}

interface Trees {
  readonly before: Listing;
  readonly untouched: readonly string[];
  readonly clean: Clean;
}

/** The old tree comes back with every time; of the new one what the draft left alone keeps its time. Both listings are whole: nothing of ours is in them. */
function judgeTree(now: Listing, { before, untouched, clean }: Trees, tree: 'old' | 'new'): void {
  if (tree === 'old') return assert.deepEqual(now, before, 'not the old tree');
  assert.deepEqual(timeless(now), clean.promoted, 'not the new tree');
  for (const name of untouched) assert.deepEqual(now.get(name), before.get(name), `${name} was touched`);
}

/** Our own folder holds what an apply that nobody kills leaves: all of it, or before the commit its lock and its mark. */
function judgeOwn(now: readonly string[], clean: readonly string[], tree: 'old' | 'new'): void {
  if (tree === 'new') return assert.deepEqual(now, clean, 'our own folder after the new tree');
  const permitted = clean.filter((line) => /^own\/(lock|mark) /.test(line));
  assert.deepEqual(
    now.filter((line) => !permitted.includes(line)),
    [],
    'left in our own folder',
  );
}
