/* New content for each planned step, from where the plan has it or, where only the mode changes, from the host's own file. */
import { closeSync } from 'node:fs';
import { DraftDamaged } from '../files/draft-index.ts';
import { openContent } from '../files/draft.ts';
import { NativeError } from '../runtime/libc.ts';
import type { Facts } from './journal-records.ts';
import { UntrustedFile } from './own-folder.ts';
import type { Planned, Side } from './plan.ts';
import { stageFile, stageFolder } from './stage.ts';
import type { Target } from './stage.ts';
import type { Mismatch } from './stage-content.ts';
import { isTrouble, Stopped, stopFor } from './stop.ts';
import { atPlace, openAt } from './tree.ts';

/** Where new content comes from: `open` opens one by its number, `mismatch` is the reason that ends it where it is not what was planned. */
export interface Contents {
  readonly open: (content: number) => number;
  readonly mismatch: Mismatch;
}

/** Where content comes from and where it goes, open. */
export interface Staging extends Omit<Target, 'slot'> {
  readonly root: number;
  readonly contents: Contents;
}

/** New content of an approved draft. */
export function draftContents(draft: number): Contents {
  return { open: (content) => openContent(draft, content), mismatch: 'PROMOTION_REVIEW_STALE' };
}

/** Stages what a step will place and returns its facts, or null for a deletion. Rejects with Stopped, NativeError. */
export async function stageStep(staging: Staging, planned: Planned): Promise<Facts | null> {
  const { path, after } = planned;
  if (after === null) return null;
  try {
    const facts = await stageSide(staging, planned, after);
    // The kernel takes a set-group bit away without a word where the group is not ours; what comes back is as it was.
    if (after.known !== undefined && facts.mode !== after.mode) throw new Stopped('PROMOTION_UNSAFE_PATH', path);
    return facts;
  } catch (error) {
    throw stopFor(error, path);
  }
}

async function stageSide(staging: Staging, planned: Planned, after: Side): Promise<Facts> {
  const { slot, path, before, type } = planned;
  if (type === 'directory') return stageFolder(staging.stage, slot, after.mode, staging.sync);
  if (before === null) return stageNew(staging, planned, after);
  const replaced = atPlace(staging.root, path, ({ folder, name }) => openAt(folder, name));
  try {
    return await stageChanged(staging, planned, after, replaced);
  } finally {
    closeSync(replaced);
  }
}

async function stageNew(staging: Staging, planned: Planned, after: Side): Promise<Facts> {
  const { slot, path, content } = planned;
  const { contents } = staging;
  if (content === null) throw new Stopped('PROMOTION_MANIFEST_INVALID', path);
  return withContent(contents, content, path, (descriptor) => {
    const source = { descriptor, mismatch: contents.mismatch, replaces: undefined, lost: [] };
    return stageFile({ ...staging, slot }, source, after, path);
  });
}

async function stageChanged(staging: Staging, planned: Planned, after: Side, replaces: number): Promise<Facts> {
  const { contents } = staging;
  const { slot, path, content, before } = planned;
  const lost = before?.lost ?? [];
  if (content === null) {
    const source = { descriptor: replaces, mismatch: 'PROMOTION_CONFLICT', replaces, lost } as const;
    return stageFile({ ...staging, slot }, source, after, path);
  }
  return withContent(contents, content, path, (descriptor) => {
    const source = { descriptor, mismatch: contents.mismatch, replaces, lost };
    return stageFile({ ...staging, slot }, source, after, path);
  });
}

/** Opens new content; one that is missing or is something else is not what was planned. */
async function withContent(
  contents: Contents,
  content: number,
  path: Buffer,
  work: (descriptor: number) => Promise<Facts>,
): Promise<Facts> {
  let descriptor: number;
  try {
    descriptor = contents.open(content);
  } catch (cause) {
    const isOther =
      cause instanceof DraftDamaged ||
      cause instanceof UntrustedFile ||
      (cause instanceof NativeError && !isTrouble(cause));
    throw isOther ? new Stopped(contents.mismatch, path, { cause }) : cause;
  }
  try {
    return await work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
