/* What a listing says of one path. */
import { closeSync, constants } from 'node:fs';

import { openBelow, WalkRefused, type EntryKind, type PathNames } from '../files/walk.ts';
import { toPathText } from '../protocol/path-text.ts';
import { O_PATH } from '../runtime/native-files.ts';
import { readlinkat } from '../runtime/native-folders.ts';
import type { View } from './view.ts';

/** Kind, size, mode and time of one path, as operations.ts has them. */
export interface Facts {
  readonly kind: EntryKind;
  readonly bytes: number;
  readonly mode: string;
  readonly modifiedMs: number;
  readonly target?: string;
}

const TARGET_LIMIT = 4096;

/** Facts of a path for one run; undefined where there is nothing. Throws WalkRefused. */
export function factsOf(view: View, root: number, names: PathNames): Facts | undefined {
  const place = view.place(names);
  if (place.of === 'nothing') return undefined;
  if (place.of === 'draft') {
    const { now, at } = place.entry;
    const bytes = now.type === 'file' ? now.bytes : 0;
    return { kind: place.kind, bytes, mode: modeOf(now.type === 'removed' ? 0 : now.mode), modifiedMs: at };
  }
  const { kind, status } = place;
  const facts = {
    kind,
    bytes: kind === 'file' ? Number(status.size) : 0,
    mode: modeOf(status.mode),
    modifiedMs: Number(status.mtimeNs / 1_000_000n),
  };
  const target = kind === 'link' ? targetOf(root, names) : undefined;
  return target === undefined ? facts : { ...facts, target };
}

/** Facts of a child for a listing: what lies on another file system is shown as `other`, what vanished as nothing. */
export function factsOfChild(view: View, root: number, names: PathNames): Facts | undefined {
  try {
    return factsOf(view, root, names);
  } catch (error) {
    if (!(error instanceof WalkRefused)) throw error;
    return error.reason === 'mount' ? { kind: 'other', bytes: 0, mode: '000', modifiedMs: 0 } : undefined;
  }
}

const modeOf = (mode: number): string => (mode & 0o777).toString(8).padStart(3, '0');

/**
 * Target of a link as path text; undefined where it leads out of the root.
 * THREAT: a link tells an agent where things lie on the host (N-132), so an absolute or escaping target is not shown.
 */
function targetOf(root: number, names: PathNames): string | undefined {
  const folder = openBelow(root, names.slice(0, -1), O_PATH | constants.O_DIRECTORY);
  try {
    const target = readlinkat(folder, names.at(-1) ?? Buffer.alloc(0));
    const text = toPathText(target);
    return text.length <= TARGET_LIMIT && staysBelow(target, names.length - 1) ? text : undefined;
  } finally {
    closeSync(folder);
  }
}

function staysBelow(target: Buffer, depth: number): boolean {
  if (target[0] === 0x2f) return false;
  let level = depth;
  for (const part of target.toString('latin1').split('/')) {
    if (part === '..') level -= 1;
    else if (part !== '' && part !== '.') level += 1;
    if (level < 0) return false;
  }
  return true;
}
