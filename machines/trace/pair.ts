/*
 * Which line of a trace is which of another: so that as much as possible stays equal, and one lost line is one lost line. Lines pair
 * that are of one actor and one event.
 */
import type { TraceLine } from './format.ts';

/** A line of each trace that are the same one, or a line without a partner. */
export type Pair = readonly [TraceLine | undefined, TraceLine | undefined];

/** Most cells of a table of likeness; what would need more is paired actor by actor, and then by place. */
const CELLS = 4_000_000;
/** Farthest that an equal line is looked for by place. */
const AHEAD = 50;

/** Pairs in the order of both traces. Equal beginnings and ends are taken off first, so that what is far apart alone costs time. */
export function paired(first: readonly TraceLine[], second: readonly TraceLine[]): Pair[] {
  let begin = 0;
  while (begin < first.length && isSame(first[begin], second[begin])) begin += 1;
  let [left, right] = [first.length, second.length];
  while (left > begin && right > begin && isSame(first[left - 1], second[right - 1])) {
    left -= 1;
    right -= 1;
  }
  const ends = first.slice(left).map((line, index): Pair => [line, second[right + index]]);
  const begins = first.slice(0, begin).map((line, index): Pair => [line, second[index]]);
  return [...begins, ...pairedMiddle(first.slice(begin, left), second.slice(begin, right)), ...ends];
}

/** A line without its place: what two lines must share to be equal. */
export function gist({ machine, version, actor, event, before, after, actions }: TraceLine): string {
  return JSON.stringify([machine, version, actor, event, before, after, actions]);
}

function isSame(left: TraceLine | undefined, right: TraceLine | undefined): boolean {
  return left !== undefined && right !== undefined && gist(left) === gist(right);
}

function pairedMiddle(first: readonly TraceLine[], second: readonly TraceLine[]): Pair[] {
  if (first.length * second.length <= CELLS) return pairedByLikeness(first, second);
  const actors = [...new Set([...first, ...second].map(({ actor }) => actor))];
  if (actors.length === 1) return pairedByPlace(first, second);
  const [lefts, rights] = [byActor(first), byActor(second)];
  return actors.flatMap((actor) => paired(lefts.get(actor) ?? [], rights.get(actor) ?? [])).toSorted(inOrder);
}

function byActor(lines: readonly TraceLine[]): Map<string, TraceLine[]> {
  const found = new Map<string, TraceLine[]>();
  for (const line of lines) {
    const known = found.get(line.actor);
    if (known === undefined) found.set(line.actor, [line]);
    else known.push(line);
  }
  return found;
}

function inOrder(one: Pair, other: Pair): number {
  return (one[0]?.seq ?? one[1]?.seq ?? 0) - (other[0]?.seq ?? other[1]?.seq ?? 0);
}

/** One after the other; where two lines are not equal, as many are left out of either as bring the next equal ones together. */
function pairedByPlace(first: readonly TraceLine[], second: readonly TraceLine[]): Pair[] {
  const pairs: Pair[] = [];
  let [i, j] = [0, 0];
  while (i < first.length || j < second.length) {
    const skip = isSame(first[i], second[j]) ? [0, 0] : nearest(first, second, i, j);
    for (const line of first.slice(i, i + (skip[0] ?? 0))) pairs.push([line, undefined]);
    for (const line of second.slice(j, j + (skip[1] ?? 0))) pairs.push([undefined, line]);
    [i, j] = [i + (skip[0] ?? 0), j + (skip[1] ?? 0)];
    const [left, right] = [first[i], second[j]];
    if (likeness(left, right) > 0) pairs.push([left, right]);
    else
      for (const pair of [[left, undefined] as const, [undefined, right] as const])
        if (pair[0] ?? pair[1]) pairs.push(pair);
    [i, j] = [i + 1, j + 1];
  }
  return pairs;
}

/** How many lines of either to leave out until two equal ones meet; none where that is too far. */
function nearest(first: readonly TraceLine[], second: readonly TraceLine[], i: number, j: number): readonly number[] {
  for (let far = 1; far <= AHEAD; far += 1) {
    if (isSame(first[i + far], second[j])) return [far, 0];
    if (isSame(first[i], second[j + far])) return [0, far];
  }
  return [0, 0];
}

/** The pairing with the greatest likeness in sum; what has no partner stands alone. */
function pairedByLikeness(first: readonly TraceLine[], second: readonly TraceLine[]): Pair[] {
  const sums = likenessSums(first, second);
  const pairs: Pair[] = [];
  let [i, j] = [0, 0];
  while (i < first.length || j < second.length) {
    const [left, right] = [first[i], second[j]];
    const pays = likeness(left, right);
    if (pays > 0 && at(sums, i, j) === pays + at(sums, i + 1, j + 1)) {
      pairs.push([left, right]);
      i += 1;
      j += 1;
    } else if (right === undefined || (left !== undefined && at(sums, i + 1, j) >= at(sums, i, j + 1))) {
      pairs.push([left, undefined]);
      i += 1;
    } else {
      pairs.push([undefined, right]);
      j += 1;
    }
  }
  return pairs;
}

/** Greatest sum of likeness from each pair of places to the ends. */
function likenessSums(first: readonly TraceLine[], second: readonly TraceLine[]): number[][] {
  const sums = Array.from({ length: first.length + 1 }, () => Array.from({ length: second.length + 1 }, () => 0));
  for (let i = first.length - 1; i >= 0; i -= 1) {
    for (let j = second.length - 1; j >= 0; j -= 1) {
      const row = sums[i];
      const pays = likeness(first[i], second[j]);
      const pairing = pays === 0 ? 0 : pays + at(sums, i + 1, j + 1);
      if (row !== undefined) row[j] = Math.max(pairing, at(sums, i + 1, j), at(sums, i, j + 1));
    }
  }
  return sums;
}

/** 0 for lines that are not of one actor and event, more the more of them is equal. */
function likeness(left: TraceLine | undefined, right: TraceLine | undefined): number {
  if (left === undefined || right === undefined || left.actor !== right.actor || left.event.type !== right.event.type)
    return 0;
  return gist(left) === gist(right) ? 3 : 2;
}

function at(sums: readonly (readonly number[])[], i: number, j: number): number {
  return sums[i]?.[j] ?? 0;
}
