/* Promotions too large to look at every crash of: crashes drawn from one, and from the recoveries after it. */
import fs from 'node:fs';
import { faultOf } from '../faults/disk/explore.ts';
import { drawnCrash } from '../faults/disk/model.ts';
import { allowedSides } from '../faults/disk/recording.ts';
import { Rehearsal } from '../faults/disk/rehearsal.ts';
import type { Draft } from '../faults/disk/rehearsal.ts';
import { PromotionScene } from '../fakes/promotion-scene.ts';
import { twelveChanges, twelveEntries } from '../fakes/twelve-entries.ts';
import type { Campaign, Draw } from './campaign.ts';

/** Enough files for one sync of the file system instead of one of each file. */
const MANY = 260;
/** Crashes of one recording, and recoveries that are cut after each. */
const CRASHES = 20;
const CUT_RECOVERIES = 3;

const NEXT: Draft = { second: { file: 'second' } };

/** A root with many files, and a draft that changes, removes and adds many. */
function manyEntries(draw: Draw): { scene: PromotionScene; draft: Draft } {
  const scene = new PromotionScene({ asCaller: true });
  const draft: Record<string, Draft[string]> = { new: { folder: 0o755 }, 'new/deep': { folder: 0o700 } };
  scene.folderAt('files');
  for (let number = 0; number < MANY; number += 1) {
    const name = `files/${number}`;
    const kind = draw.below(8);
    if (kind === 0) draft[`new/deep/${number}`] = { file: `new ${number}` };
    else scene.put(name, `old ${number}`);
    if (kind === 1) draft[name] = 'removed';
    else if (kind > 1) draft[name] = { file: `other ${number}` };
    if (kind > 0) fs.utimesSync(scene.at(name), 1_000_000_000, 1_000_000_000);
  }
  for (let number = MANY; Object.keys(draft).length < MANY + 30; number += 1)
    draft[`new/${number}`] = { file: `more ${number}` };
  return { scene, draft };
}

async function round(draw: Draw): Promise<string> {
  const isMany = draw.below(4) === 0;
  const { scene, draft } = isMany
    ? manyEntries(draw)
    : { scene: twelveEntries({ asCaller: true }), draft: twelveChanges };
  const rehearsal = new Rehearsal(scene);
  const below = (limit: number): number => draw.below(limit);
  try {
    const recording = await rehearsal.record([draft, NEXT]);
    for (let crash = 0; crash < CRASHES; crash += 1) {
      const before = below(recording.operations.length + 1);
      let disk = drawnCrash(recording.start, recording.operations, before, below);
      let allowed = allowedSides(recording, before);
      for (let cut = 0; cut <= CUT_RECOVERIES; cut += 1) {
        const ending = rehearsal.recover(disk, recording);
        const fault = faultOf(ending, allowed);
        if (fault !== undefined)
          throw new Error(`crash ${crash}, before operation ${before}, recovery ${cut}: ${fault}`);
        disk = drawnCrash(ending.start, ending.operations, below(ending.operations.length + 1), below);
        allowed = ending.side === undefined ? [] : [ending.side];
      }
    }
  } finally {
    rehearsal.close();
  }
  return `${CRASHES} crashes and ${CRASHES * CUT_RECOVERIES} in recoveries, ${isMany ? 'some 290 entries' : '12 entries'}`;
}

/** `npm run campaign -- disk`. */
export const disk: Campaign = {
  name: 'disk',
  rounds: 200,
  begin: () => Promise.resolve({ round, end: () => Promise.resolve() }),
};
