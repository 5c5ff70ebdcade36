/*
 * What it costs to promote many files, against copying the same content and bringing it to the disk: `cp -a` and `sync -f`.
 * One pair after the other, each in fresh folders; the ratio of a pair is of two runs next to each other in time.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { PromotionScene } from '../fakes/promotion-scene.ts';
import type { Wanted } from '../fakes/promotion-scene.ts';
import { installRows } from '../fakes/real-row.ts';
import type { RealInstallation } from '../fakes/real-row.ts';
import { quantile } from './rows.ts';

/** How many files of how many bytes in total, and how often. */
export interface PromoteLoad {
  readonly files: number;
  readonly bytes: number;
  readonly pairs: number;
}

const FULL: PromoteLoad = { files: 10_000, bytes: 100_000_000, pairs: 5 };
const FILES_A_FOLDER = 100;

/** Measures row `promote_vs_cp`: the median ratio, and the median of each side in ms. */
export async function promoteVsCp(
  load: PromoteLoad = FULL,
): Promise<{ value: number; against: Record<string, number> }> {
  const installation = await installRows('promote');
  const promoteMs: number[] = [];
  const copyMs: number[] = [];
  try {
    for (let pair = 0; pair < load.pairs; pair += 1) {
      copyMs.push(copyOnce(load));
      promoteMs.push(await promoteOnce(load, installation));
    }
  } finally {
    installation.remove();
  }
  const ratios = promoteMs.map((ms, index) => ms / (copyMs[index] ?? Number.NaN));
  return {
    value: quantile(ratios, 0.5),
    against: { promote_ms: Math.round(quantile(promoteMs, 0.5)), cp_and_sync_ms: Math.round(quantile(copyMs, 0.5)) },
  };
}

/** Every file has content of its own, so that no file system shares blocks. */
function contents({ files, bytes }: PromoteLoad): Record<string, Wanted> {
  const size = Math.floor(bytes / files);
  const wanted: Record<string, Wanted> = {};
  for (let index = 0; index < files; index += 1) {
    const folder = `folder${Math.floor(index / FILES_A_FOLDER)}`;
    if (index % FILES_A_FOLDER === 0) wanted[folder] = { folder: 0o755 };
    wanted[`${folder}/file${index}`] = { file: Buffer.alloc(size, `${index}-`) };
  }
  return wanted;
}

async function promoteOnce(load: PromoteLoad, installation: RealInstallation): Promise<number> {
  const scene = new PromotionScene();
  try {
    scene.draftOf(contents(load));
    spawnSync('sync', ['-f', scene.draft]);
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, { withinMs: 60_000 });
    const approval = scene.approve();
    const began = performance.now();
    const reply = await running.client.request('promote.apply', { approval }, { withinMs: 300_000 });
    const took = performance.now() - began;
    running.client.close();
    await running.exited;
    if (reply.outcome !== 'promoted') throw new Error(`the promotion of the bench ended ${JSON.stringify(reply)}`);
    return took;
  } finally {
    scene.remove();
  }
}

function copyOnce(load: PromoteLoad): number {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'copy-'));
  try {
    for (const [name, wanted] of Object.entries(contents(load))) {
      const where = path.join(folder, 'from', name);
      if (typeof wanted === 'object' && 'file' in wanted) fs.writeFileSync(where, wanted.file);
      else fs.mkdirSync(where, { recursive: true });
    }
    spawnSync('sync', ['-f', folder]);
    const began = performance.now();
    const copied = spawnSync('cp', ['-a', path.join(folder, 'from'), path.join(folder, 'to')]);
    const synced = spawnSync('sync', ['-f', folder]);
    if (copied.status !== 0 || synced.status !== 0) throw new Error('cp or sync failed');
    return performance.now() - began;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}
