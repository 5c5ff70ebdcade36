/* Both sides of a change, opened only if they are byte for byte what the manifest says. */
import { closeSync } from 'node:fs';

import { openContent } from '../files/draft.ts';
import type { Change, FileSide } from '../files/manifest.ts';
import { openFile } from '../files/walk.ts';
import { statx } from '../runtime/native-files.ts';
import type { Digests } from './digests.ts';
import type { Ending } from './ending.ts';
import { OperationFailed, unavailable } from './failures.ts';
import type { OpenDraft } from './open-draft.ts';
import { namesOf } from './review.ts';
import { keyOf, type Opened } from './view.ts';

/** What opening a side takes; `root` is the open root. */
export interface SideSource {
  readonly root: number;
  readonly draft: OpenDraft;
  readonly digests: Digests;
  readonly ending: Ending;
}

const ITSELF = Buffer.alloc(0);

/** Content of one side of a file's change; undefined where that side is a folder or does not exist. */
export function sideOf(change: Change, of: 'before' | 'after'): FileSide | undefined {
  return change.type === 'file' ? (change[of] ?? undefined) : undefined;
}

/** Gives `use` one side, open. Throws OperationFailed REVIEW_STALE where the content is not what the manifest says. */
export async function withSide<Result>(
  source: SideSource,
  change: Change,
  of: 'before' | 'after',
  use: (opened: Opened) => Result | Promise<Result>,
): Promise<Result> {
  const side = sideOf(change, of);
  if (!side) throw unavailable('this side of the change has no content');
  const opened = openSide(source, change, of);
  try {
    const sha256 = opened.bytes === side.bytes ? await source.digests.of(opened, source.ending) : '';
    if (sha256 === side.sha256) return await use(opened);
    throw new OperationFailed(
      'REVIEW_STALE',
      'the file is not what it was at the review any more; review the draft again',
    );
  } finally {
    closeSync(opened.descriptor);
  }
}

function openSide({ root, draft }: SideSource, change: Change, of: 'before' | 'after'): Opened {
  const names = namesOf(change.path);
  const now = draft.entries.get(keyOf(names))?.now;
  if (of === 'after' && now?.type === 'file' && now.content !== 0) {
    const descriptor = openContent(draft.folder, now.content);
    const status = statx(descriptor, ITSELF);
    return { descriptor, status, bytes: Number(status.size), mode: now.mode, modifiedMs: 0 };
  }
  const { descriptor, status } = openFile(root, names);
  return { descriptor, status, bytes: Number(status.size), mode: status.mode & 0o777, modifiedMs: 0 };
}
