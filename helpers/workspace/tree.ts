/* file.delete, file.rename and file.mkdir: changes of names, which name every file and folder that they touch. */
import { parsePath, pathTextOf, type PathNames } from '../files/walk.ts';
import { digestBytes, type FileDigest, readWhole } from '../files/digest.ts';
import type { Now, Step } from '../files/draft-index.ts';
import type { OperationArguments, OperationSuccess } from '../protocol/operations.ts';
import { assertMayChange, baseAt, changing, notChangeable, step, withFile, type Call } from './call.ts';
import { INLINE_LIMIT_BYTES } from './digests.ts';
import { denied, nothingThere, OperationFailed } from './failures.ts';
import { DRAFT_LIMITS, writeAll, type OpenDraft } from './open-draft.ts';
import { keyOf, type Place, type View } from './view.ts';
import { applyWith, parentSteps } from './write.ts';

/** A longer path could be named by no operation and no review. */
const PATH_LIMIT = 1024;
const NEW_FOLDER_MODE = 0o755;

type FileNow = Extract<Now, { type: 'file' }>;

interface Found {
  readonly names: PathNames;
  readonly place: Exclude<Place, { of: 'nothing' }>;
}

/**
 * A path and everything below it, folders before what is in them. Throws OperationFailed where something in it may not be
 * changed: a folder that loses its files but not its links would be neither the old tree nor the wished one.
 */
async function subtree(call: Call, view: View, top: PathNames): Promise<Found[]> {
  const found: Found[] = [];
  const waiting: PathNames[] = [top];
  for (let names = waiting.pop(); names; names = waiting.pop()) {
    await call.ending.breathe();
    const place = view.place(names);
    if (place.of === 'nothing') continue;
    if (place.kind === 'link' || place.kind === 'other') throw inside(top, names, notChangeable(place.kind));
    if (pathTextOf(names).length > PATH_LIMIT) throw denied('a path inside is too long for any operation to name');
    found.push({ names, place });
    if (found.length > DRAFT_LIMITS.paths) throw tooMany();
    if (place.kind !== 'directory') continue;
    if ((place.of === 'root' || place.overRoot) && view.hidesSomethingIn(names)) {
      throw denied('the folder holds something that is kept out of the workspace, so it must stay');
    }
    for (const { name } of view.children(names, place)) waiting.push([...names, name]);
  }
  return found;
}

const tooMany = (): OperationFailed =>
  new OperationFailed(
    'DRAFT_LIMIT',
    `the draft would hold more than ${DRAFT_LIMITS.paths} changed paths; change less at a time`,
  );

function inside(top: PathNames, names: PathNames, error: Error): Error {
  return names.length === top.length ? error : denied(`${pathTextOf(names).slice(0, 200)}: ${error.message}`);
}

/** Removes a file, or a folder with all that is in it. */
export function deletePath(
  call: Call,
  { path, recursive }: OperationArguments<'file.delete'>,
): Promise<OperationSuccess<'file.delete'>> {
  const names = parsePath(path);
  return changing(call, async ({ view, make }) => {
    assertMayChange(view, names);
    const place = view.place(names);
    if (place.of === 'nothing') throw nothingThere();
    if (!recursive && place.kind === 'directory' && !view.children(names, place).next().done) {
      throw denied('the folder is not empty; set recursive to remove all that is in it');
    }
    const found = await subtree(call, view, names);
    const steps = await removals(call, view, found);
    const draft = await make();
    await draft.apply(steps);
    return { success: true, path: pathTextOf(names), removed: found.length };
  });
}

async function removals(call: Call, view: View, found: readonly Found[]): Promise<Step[]> {
  const steps: Step[] = [];
  for (const { names, place } of found) {
    await call.ending.breathe();
    steps.push(step(names, await baseAt(call, view, names, place), { type: 'removed' }));
  }
  return steps;
}

/** Renames or moves a file or a folder to a path where nothing is. */
export function renamePath(
  call: Call,
  args: OperationArguments<'file.rename'>,
): Promise<OperationSuccess<'file.rename'>> {
  const from = parsePath(args.from);
  const to = parsePath(args.to);
  return changing(call, async (work) => {
    assertMayRename(work.view, from, to);
    const found = await subtree(call, work.view, from);
    const removed = await removals(call, work.view, found);
    const draft = await work.make();
    draft.assertRoom(pathsToAdd(draft, found, from, to), bytesToCopy(found));
    const copied: number[] = [];
    let steps: Step[] = [];
    try {
      steps = [...removed, ...(await placements(call, work.view, { draft, found, from, to, copied }))];
    } catch (error) {
      for (const content of copied) draft.dropContent(content);
      throw error;
    }
    await applyWith(draft, copied, steps);
    return { success: true, from: pathTextOf(from), to: pathTextOf(to) };
  });
}

function assertMayRename(view: View, from: PathNames, to: PathNames): void {
  assertMayChange(view, from);
  assertMayChange(view, to);
  const place = view.place(from);
  if (place.of === 'nothing') throw nothingThere();
  const isInside = from.every((name, index) => to[index]?.equals(name));
  if (isInside && to.length > from.length) throw denied('a folder cannot be moved into itself');
  if (isInside) throw denied('both paths are the same');
  parentSteps(view, to, false);
  if (view.place(to).of !== 'nothing')
    throw denied('there is something at the new path; delete it first or choose another');
}

function bytesToCopy(found: readonly Found[]): number {
  return found.reduce((sum, { place }) => {
    if (place.kind !== 'file') return sum;
    if (place.of === 'root') return sum + Number(place.status.size);
    return place.now.content === 0 ? sum + place.now.bytes : sum;
  }, 0);
}

interface Move {
  readonly draft: OpenDraft;
  readonly found: readonly Found[];
  readonly from: PathNames;
  readonly to: PathNames;
  /** Numbers of content files that the move made. */
  readonly copied: number[];
}

/** Content files that are flushed at the same time: the file system commits them together. */
const TOGETHER = 16;

async function placements(call: Call, view: View, move: Move): Promise<Step[]> {
  const steps: Step[] = [];
  for (let first = 0; first < move.found.length; first += TOGETHER) {
    await call.ending.breathe();
    const some = move.found.slice(first, first + TOGETHER);
    const placed = await Promise.allSettled(some.map((found) => placement(call, view, move, found)));
    for (const outcome of placed) {
      // all have ended here, so what they made is known to the one who removes it
      if (outcome.status === 'rejected') throw outcome.reason;
      steps.push(outcome.value);
    }
  }
  return steps;
}

async function placement(call: Call, view: View, move: Move, { names, place }: Found): Promise<Step> {
  const target = targetOf(move.from, move.to, names);
  if (pathTextOf(target).length > PATH_LIMIT) {
    throw denied('a path inside would become too long for any operation to name');
  }
  assertMayChange(view, target);
  const base = view.entryAt(target)?.base ?? null;
  const now = place.kind === 'directory' ? folderNow(place) : await movedFile(call, view, move, names, place);
  return step(target, base, now);
}

const targetOf = (from: PathNames, to: PathNames, names: PathNames): PathNames => [...to, ...names.slice(from.length)];

/** Paths that the draft will name in addition; what it made itself goes away at the old place. */
function pathsToAdd(draft: OpenDraft, found: readonly Found[], from: PathNames, to: PathNames): number {
  return found.reduce((sum, { names }) => {
    const old = draft.entries.get(keyOf(names));
    const away = old ? (old.base ? 0 : -1) : 1;
    return sum + away + (draft.entries.has(keyOf(targetOf(from, to, names))) ? -1 : 1);
  }, 0);
}

function folderNow(place: Found['place']): { type: 'directory'; mode: number } {
  if (place.of === 'root') return { type: 'directory', mode: place.status.mode & 0o777 };
  const { now } = place.entry;
  return { type: 'directory', mode: now.type === 'directory' ? now.mode : NEW_FOLDER_MODE };
}

/** Content that the draft holds is renamed with its entry; content of the root is copied, since the root is not the draft's. */
async function movedFile(
  call: Call,
  view: View,
  { draft, copied }: Move,
  names: PathNames,
  place: Found['place'],
): Promise<FileNow> {
  if (place.of === 'draft' && place.kind === 'file' && place.now.content !== 0) return place.now;
  return withFile(call, view, names, async ({ descriptor, mode, bytes: size }) => {
    let digest = { sha256: '', bytes: 0 };
    const content = await draft.addContent(async (to) => {
      digest = await copyInto(call, descriptor, size, to);
    });
    copied.push(content);
    return { type: 'file' as const, content, mode, ...digest };
  });
}

async function copyInto(call: Call, from: number, size: number, to: number): Promise<FileDigest> {
  if (size > INLINE_LIMIT_BYTES) return call.services.pool.run('copy', { from, to, ending: call.ending.mark });
  const bytes = readWhole(from, size);
  await writeAll(to, bytes, 0);
  return { sha256: digestBytes(bytes), bytes: bytes.length };
}

/** Makes a folder. */
export function makeFolder(
  call: Call,
  { path, createParents }: OperationArguments<'file.mkdir'>,
): Promise<OperationSuccess<'file.mkdir'>> {
  const names = parsePath(path);
  return changing(call, async ({ view, make }) => {
    assertMayChange(view, names);
    const parents = parentSteps(view, names, createParents);
    const place = view.place(names);
    const success = { success: true as const, path: pathTextOf(names) };
    if (place.of !== 'nothing') {
      if (createParents && place.kind === 'directory') return success;
      throw denied('there is something at this path already');
    }
    const base = await baseAt(call, view, names, place);
    const draft = await make();
    await draft.apply([...parents, step(names, base, { type: 'directory', mode: NEW_FOLDER_MODE })]);
    return success;
  });
}
