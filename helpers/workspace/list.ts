/* file.list and file.stat. */
import { parsePath, pathTextOf, WalkRefused, type PathNames } from '../files/walk.ts';
import type { OperationArguments, OperationSuccess } from '../protocol/operations.ts';
import { toPathText } from '../protocol/path-text.ts';
import { reading, withFile, type Call } from './call.ts';
import { denied, nothingThere } from './failures.ts';
import { factsOf, factsOfChild } from './facts.ts';
import type { Place, View } from './view.ts';

/** Encoded entries of one page, bytes; the rest of a result's limit is for its frame. */
const PAGE_LIMIT_BYTES = 60_000;
/** A larger file is described without its digest, bytes. */
const DIGEST_LIMIT_BYTES = 268_435_456;

type Listed = OperationSuccess<'file.list'>;

/** Lists a folder in byte order of names, a page at a time. */
export function listFolder(call: Call, { path, maxEntries, cursor }: OperationArguments<'file.list'>): Promise<Listed> {
  const names = parsePath(path);
  const after = cursor === undefined ? undefined : nameOfCursor(cursor);
  return reading(call, async (view) => {
    const place = folderAt(view, names);
    const next = await smallestNames(call, view, names, place, after, maxEntries + 1);
    const entries: Listed['entries'] = [];
    let last: Buffer | undefined;
    let bytes = 0;
    for (const name of next.slice(0, maxEntries)) {
      const facts = factsOfChild(view, call.services.root, [...names, name]);
      const entry = facts && { name: toPathText(name), ...facts };
      bytes += entry ? Buffer.byteLength(JSON.stringify(entry)) + 1 : 0;
      if (bytes > PAGE_LIMIT_BYTES) break;
      last = name;
      if (entry) entries.push(entry);
    }
    const truncated = last !== next.at(-1);
    const success = { success: true as const, path: pathTextOf(names), entries, truncated };
    return truncated && last ? { ...success, cursor: last.toString('base64url') } : success;
  });
}

function folderAt(view: View, names: PathNames): Place {
  const place = view.place(names);
  if (place.of === 'nothing') throw nothingThere();
  if (place.kind === 'link') throw new WalkRefused('link');
  if (place.kind !== 'directory') throw new WalkRefused('not-a-folder');
  return place;
}

/** The first `count` names after one name; memory follows `count`, not the folder. */
async function smallestNames(
  call: Call,
  view: View,
  names: PathNames,
  place: Place,
  after: Buffer | undefined,
  count: number,
): Promise<Buffer[]> {
  const room = count + 4096;
  let smallest: Buffer[] = [];
  const cut = (): void => {
    smallest = smallest.toSorted((one, two) => Buffer.compare(one, two)).slice(0, count);
  };
  let seen = 0;
  for (const { name } of view.children(names, place)) {
    seen += 1;
    if (seen % 4096 === 0) await call.ending.breathe();
    if (after && Buffer.compare(name, after) <= 0) continue;
    smallest.push(name);
    if (smallest.length >= room) cut();
  }
  cut();
  return smallest;
}

function nameOfCursor(cursor: string): Buffer {
  const name = Buffer.from(cursor, 'base64url');
  if (name.length > 0 && name.toString('base64url') === cursor) return name;
  throw denied('the cursor is not one that a listing gave; begin without one');
}

/** Tells what stands at one path. */
export function statPath(
  call: Call,
  { path }: OperationArguments<'file.stat'>,
): Promise<OperationSuccess<'file.stat'>> {
  const names = parsePath(path);
  return reading(call, async (view) => {
    const facts = factsOf(view, call.services.root, names);
    if (!facts) throw nothingThere();
    const stat = { success: true as const, path: pathTextOf(names), ...facts };
    if (facts.kind !== 'file' || facts.bytes > DIGEST_LIMIT_BYTES) return stat;
    return withFile(call, view, names, ({ bytes }, sha256) => ({ ...stat, bytes, sha256 }));
  });
}
