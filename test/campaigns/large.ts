/*
 * Promotions at the size of their limits through the confined promote: 20,000 entries with 1 GB, applied or cancelled anywhere, and
 * a file of 5 GB with holes, whose mode, content or existence changes; and 20,000 entries that workspace itself drafted and reviewed.
 */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { slotName } from '../../helpers/files/draft.ts';
import type { OperationSuccess } from '../../helpers/protocol/operations.ts';
import { applyMeasured, draftMany, PEAK_LIMIT_KIB } from '../fakes/many-entries.ts';
import { PromotionScene, RUN } from '../fakes/promotion-scene.ts';
import { installRows } from '../fakes/real-row.ts';
import type { RealInstallation } from '../fakes/real-row.ts';
import { Bench, newPromotion } from '../helpers/workspace/bench.ts';
import type { Campaign, Draw } from './campaign.ts';

const ENTRIES = 20_000;
const BYTES = 1_073_741_824;
const HUGE_BYTES = 5_368_709_120;
const PHASES = ['verifying', 'staging', 'applying'] as const;

/** `npm run campaign -- large`: 12 rounds, most of them a minute. */
export const large: Campaign = {
  name: 'large',
  rounds: 12,
  async begin() {
    const installation = await installRows('promote');
    return {
      async round(draw) {
        const scene = new PromotionScene();
        try {
          const kind = draw.below(6);
          if (kind < 2) return await huge(scene, installation, draw);
          return kind === 2 ? await drafted(scene, installation) : await many(scene, installation, draw);
        } finally {
          scene.remove();
        }
      },
      async end() {
        installation.remove();
      },
    };
  },
};

async function many(scene: PromotionScene, installation: RealInstallation, draw: Draw): Promise<string> {
  draftMany(scene, ENTRIES, Math.ceil(BYTES / ENTRIES));
  const before = scene.listing();
  const phase = draw.from([...PHASES, 'promoted'] as const);
  const cancelAt = phase === 'promoted' ? undefined : { phase, share: draw.below(100) / 100 };
  const { reply, peakKib } = await applyMeasured(scene, installation, cancelAt);
  assert.ok(peakKib < PEAK_LIMIT_KIB, `${peakKib} KiB at the peak`);
  if (reply.outcome === 'promoted') {
    assert.equal(scene.listing().size, ENTRIES + 1);
    return `20,000 entries with 1 GiB, promoted, peak under ${ceilMib(peakKib)} MiB`;
  }
  assert.equal(reply.code, 'CANCELLED');
  assert.deepEqual(scene.listing(), before);
  return `20,000 entries with 1 GiB, cancelled while ${phase}, peak under ${ceilMib(peakKib)} MiB`;
}

/** A folder with its files is removed by one operation, paged through, frozen under the digest of the review, and promoted. */
async function drafted(scene: PromotionScene, installation: RealInstallation): Promise<string> {
  scene.folderAt('many');
  for (let file = 1; file < ENTRIES; file += 1) scene.put(`many/${file}`, `${file}`);
  const bench = new Bench(undefined, scene.root);
  try {
    const asked = { run: RUN, withinMs: 120_000 };
    await bench.done('file.delete', { path: 'many', recursive: true }, asked);
    let pages = 0;
    let manifestDigest = '';
    for (let cursor: string | undefined = '0'; cursor !== undefined;) {
      const page: OperationSuccess<'workspace.review'> = await bench.done('workspace.review', { cursor }, asked);
      assert.equal(page.changeCount, ENTRIES);
      pages += 1;
      ({ cursor, manifestDigest } = page);
    }
    const frozen = { run: RUN, promotion: newPromotion(), manifestDigest };
    const { slot } = await bench.handlers['workspace.freeze'](frozen);
    const folder = path.join(bench.draftsPath, slotName(slot).toString());
    for (const name of fs.readdirSync(folder)) {
      fs.renameSync(path.join(folder, name), path.join(scene.draft, name));
      scene.give(path.join(scene.draft, name));
    }
    const { reply, peakKib } = await applyMeasured(scene, installation);
    assert.ok(peakKib < PEAK_LIMIT_KIB, `${peakKib} KiB at the peak`);
    assert.ok(reply.outcome === 'promoted' && reply.manifestDigest === manifestDigest, JSON.stringify(reply));
    assert.deepEqual(fs.readdirSync(scene.root), []);
    return `20,000 entries drafted, reviewed in ${pages} pages and promoted, peak under ${ceilMib(peakKib)} MiB`;
  } finally {
    await bench.remove();
  }
}

async function huge(scene: PromotionScene, installation: RealInstallation, draw: Draw): Promise<string> {
  scene.put('huge', 'begin');
  fs.truncateSync(scene.at('huge'), HUGE_BYTES);
  const what = draw.from(['mode', 'content', 'removal'] as const);
  scene.draftOf({ huge: { mode: { mode: 0o755 }, content: { file: 'small' }, removal: 'removed' as const }[what] });
  const { reply, peakKib } = await applyMeasured(scene, installation);
  assert.ok(peakKib < PEAK_LIMIT_KIB, `${peakKib} KiB at the peak`);
  assert.equal(reply.outcome, 'promoted', JSON.stringify(reply));
  if (what === 'removal') assert.ok(!fs.existsSync(scene.at('huge')));
  else assert.equal(fs.statSync(scene.at('huge')).size, what === 'mode' ? HUGE_BYTES : 5);
  if (what === 'mode') assert.ok(fs.statSync(scene.at('huge')).blocks < 2048, 'its holes stay holes');
  return `a file of 5 GiB with holes, ${what}, peak under ${ceilMib(peakKib)} MiB`;
}

function ceilMib(kib: number): number {
  return Math.ceil(kib / 16_384) * 16;
}
