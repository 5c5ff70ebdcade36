import type { TraceLine, TraceState } from './format.ts';

/**
 * Explains in words how the second trace differs from the first, one sentence each, in order; empty when they are equal. Lines of
 * one actor and event are paired so that as much as possible stays equal: one lost line is told as one lost line.
 */
export function explain(first: readonly TraceLine[], second: readonly TraceLine[]): string[] {
  const sentences: string[] = [];
  for (const [left, right] of paired(first, second)) {
    if (left === undefined && right !== undefined) {
      sentences.push(`line ${right.seq + 1} of the second is new: ${said(right)} leads to ${shown(right.after)}`);
    } else if (left !== undefined && right === undefined) {
      sentences.push(`line ${left.seq + 1} of the first is missing: ${said(left)} led to ${shown(left.after)}`);
    } else if (left !== undefined && right !== undefined) {
      sentences.push(...changes(left, right));
    }
  }
  return sentences;
}

function changes(left: TraceLine, right: TraceLine): string[] {
  const where = left.seq === right.seq ? `line ${left.seq + 1}` : `lines ${left.seq + 1} and ${right.seq + 1}`;
  const about = `${where}, ${said(left)}:`;
  const found: string[] = [];
  if (left.version !== right.version) found.push(`${about} machine version ${left.version} became ${right.version}`);
  const fields = new Set([...Object.keys(left.event.payload), ...Object.keys(right.event.payload)]);
  for (const field of fields) {
    const [was, is] = [JSON.stringify(left.event.payload[field]), JSON.stringify(right.event.payload[field])];
    if (was !== is) found.push(`${about} its ${field} was ${was ?? 'absent'} and is ${is ?? 'absent'}`);
  }
  if (shown(left.before) !== shown(right.before)) {
    found.push(`${about} it came in ${shown(left.before)} and comes in ${shown(right.before)}`);
  }
  if (shown(left.after) !== shown(right.after)) {
    found.push(`${about} it led to ${shown(left.after)} and leads to ${shown(right.after)}`);
  }
  const gone = left.actions.filter((action) => !right.actions.includes(action));
  const come = right.actions.filter((action) => !left.actions.includes(action));
  if (gone.length > 0) found.push(`${about} it no longer asks for ${gone.join(', ')}`);
  if (come.length > 0) found.push(`${about} it now asks for ${come.join(', ')}`);
  if (gone.length + come.length === 0 && left.actions.join() !== right.actions.join()) {
    found.push(`${about} it asks for the same in another order or number: ${right.actions.join(', ')}`);
  }
  return found;
}

type Pair = readonly [TraceLine | undefined, TraceLine | undefined];

/** The pairing with the greatest likeness in sum; what has no partner stands alone. */
function paired(first: readonly TraceLine[], second: readonly TraceLine[]): Pair[] {
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
  if (left === undefined || right === undefined || said(left) !== said(right)) return 0;
  return gist(left) === gist(right) ? 3 : 2;
}

function gist({ event, before, after, actions }: TraceLine): string {
  return JSON.stringify([event, before, after, actions]);
}

function at(sums: readonly (readonly number[])[], i: number, j: number): number {
  return sums[i]?.[j] ?? 0;
}

function said(line: TraceLine): string {
  return `${line.event.type} at ${line.actor}`;
}

function shown(state: TraceState | null): string {
  if (state === null) return 'nothing';
  return typeof state.value === 'string' ? state.value : JSON.stringify(state.value);
}
