import assert from 'node:assert/strict';
import fs from 'node:fs';

import type { PromoteReply } from '../../helpers/promote/protocol.ts';
import { asking } from './promotion-scene.ts';
import type { PromotionScene, Wanted } from './promotion-scene.ts';
import type { RealInstallation } from './real-row.ts';

/** Most memory that a promotion may take at its peak, in KiB: that of the whole confined process. */
export const PEAK_LIMIT_KIB = 262_144;
/** The longest of these takes this long on a busy machine, in ms. */
const APPLY_MS = 540_000;

/** A draft of so many new files of one size over a hundred new folders. */
export function draftMany(scene: PromotionScene, entries: number, bytesEach: number): void {
  const content = Buffer.alloc(bytesEach, 'x');
  const wanted: Record<string, Wanted> = {};
  for (let folder = 0; folder < 100; folder += 1) wanted[`folder${folder}`] = { folder: 0o755 };
  for (let file = 0; file < entries - 100; file += 1) wanted[`folder${file % 100}/file${file}`] = { file: content };
  scene.draftOf(wanted);
}

/** What a promotion answered, and what its process took at its peak, in KiB. */
export interface Measured {
  readonly reply: PromoteReply<'promote.apply'>;
  readonly peakKib: number;
}

/** Applies through the confined promote and reads its peak from the kernel; cancelled once so much of its progress was told. */
export async function applyMeasured(
  scene: PromotionScene,
  installation: RealInstallation,
  cancelAt?: { readonly phase: 'verifying' | 'staging' | 'applying'; readonly share: number },
): Promise<Measured> {
  const running = scene.start(installation);
  let peakKib = 0;
  const timer = setInterval(() => {
    const last = running.progress.at(-1)?.body;
    if (cancelAt && last?.phase === cancelAt.phase && last.done >= cancelAt.share * last.total)
      void running.client.request('promote.cancel', {}, asking).catch(() => undefined);
    peakKib = Math.max(peakKib, peakOf(running.pid));
  }, 20);
  try {
    await running.client.request('promote.recover', { promotions: [] }, asking);
    const approval = scene.approve();
    const reply = await running.client.request('promote.apply', { approval }, { withinMs: APPLY_MS });
    peakKib = Math.max(peakKib, peakOf(running.pid));
    assert.ok(peakKib > 0, 'the kernel told a peak');
    return { reply, peakKib };
  } finally {
    clearInterval(timer);
    running.client.close();
    await running.exited;
  }
}

function peakOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    // It has ended.
    return 0;
  }
}
