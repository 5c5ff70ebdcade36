/* New content for each planned step, from the draft's descriptor or, where only the mode changes, from the host's own file. */
import { closeSync } from 'node:fs';
import { DraftDamaged } from '../files/draft-index.ts';
import { openContent } from '../files/draft.ts';
import { NativeError } from '../runtime/libc.ts';
import type { Facts } from './journal-records.ts';
import type { Planned, Side } from './plan.ts';
import { stageFile, stageFolder } from './stage.ts';
import { Stopped, stopFor } from './stop.ts';
import { atPlace, openAt } from './tree.ts';

/** Where content comes from and where it goes, open; `sync` is false where one syncfs of the whole stage follows. */
export interface Staging {
  readonly root: number;
  readonly stage: number;
  readonly draft: number;
  readonly sync: boolean;
}

/** Stages what a step will place and returns its facts, or null for a deletion. Throws Stopped, NativeError. */
export function stageStep(staging: Staging, planned: Planned): Facts | null {
  const { slot, path, before, after, type } = planned;
  if (after === null) return null;
  try {
    if (type === 'directory') return stageFolder(staging.stage, slot, after.mode, staging.sync);
    if (before === null) return stageNew(staging, planned, after);
    return atPlace(staging.root, path, ({ folder, name }) => {
      const replaced = openAt(folder, name);
      try {
        return stageChanged(staging, planned, after, replaced);
      } finally {
        closeSync(replaced);
      }
    });
  } catch (error) {
    throw stopFor(error, path);
  }
}

function stageNew(staging: Staging, { slot, path, content }: Planned, after: Side): Facts {
  return withContent(staging.draft, content, path, (descriptor) =>
    stageFile(
      staging.stage,
      slot,
      { descriptor, mismatch: 'PROMOTION_REVIEW_STALE', replaces: undefined },
      after,
      path,
      staging.sync,
    ),
  );
}

function stageChanged(
  { stage, draft, sync }: Staging,
  { slot, path, content }: Planned,
  after: Side,
  replaces: number,
): Facts {
  if (content === 0) {
    return stageFile(
      stage,
      slot,
      { descriptor: replaces, mismatch: 'PROMOTION_CONFLICT', replaces },
      after,
      path,
      sync,
    );
  }
  return withContent(draft, content, path, (descriptor) =>
    stageFile(stage, slot, { descriptor, mismatch: 'PROMOTION_REVIEW_STALE', replaces }, after, path, sync),
  );
}

/** Opens a content file of the draft; one that is missing or is something else is not what was reviewed. */
function withContent(draft: number, content: number, path: Buffer, work: (descriptor: number) => Facts): Facts {
  if (content === 0) throw new Stopped('PROMOTION_MANIFEST_INVALID', path);
  let descriptor: number;
  try {
    descriptor = openContent(draft, content);
  } catch (cause) {
    const isOther = cause instanceof DraftDamaged || (cause instanceof NativeError && cause.code !== 'EIO');
    throw isOther ? new Stopped('PROMOTION_REVIEW_STALE', path, { cause }) : cause;
  }
  try {
    return work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
