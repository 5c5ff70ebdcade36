/* promote as it ships and the victim, both bundled and started through launch, on scenes of every kind of entry. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { asking } from '../../fakes/promotion-scene.ts';
import type { PromotionScene, Running } from '../../fakes/promotion-scene.ts';
import { installRows, installVictim } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { nameOf, NUMBERING, ORDER } from './order.ts';
import type { Kill } from './order.ts';

/** What a promote is started for: its recovery alone, or that and an apply. */
export type Work = 'apply' | 'recover';

/** Id of the promotion of every scene, so that two runs leave the same bytes. */
export const PROMOTION = `prm_${'7'.repeat(32)}`;

/** The two installations. */
export class Bench {
  readonly real: RealInstallation;
  readonly victim: RealInstallation;

  private constructor(real: RealInstallation, victim: RealInstallation) {
    this.real = real;
    this.victim = victim;
  }

  static async begin(): Promise<Bench> {
    return new Bench(await installRows('promote'), await installVictim());
  }

  end(): void {
    this.real.remove();
    this.victim.remove();
  }

  /** Starts a victim that dies there, or with null one that lives and tells its calls. */
  start(scene: PromotionScene, order: Kill | null): Running {
    const file = path.join(scene.configuration, ORDER);
    fs.writeFileSync(file, JSON.stringify(order), { mode: 0o600 });
    scene.give(file);
    return scene.start(this.victim);
  }

  /** Does the work in a victim that dies; throws where it did not die, or by something else than SIGKILL. */
  async kill(scene: PromotionScene, work: Work, kill: Kill): Promise<void> {
    const running = this.start(scene, kill);
    // A victim that dies answers nothing.
    await ask(scene, running, work).catch(() => undefined);
    running.client.close();
    assert.deepEqual(await running.exited, { by: 'signal', signal: 'SIGKILL' }, `not killed at ${nameOf(kill)}`);
  }

  /** Does the work in a victim that lives and returns its numbered calls; `meanwhile` may watch it before the first request. */
  async number(
    scene: PromotionScene,
    work: Work,
    meanwhile: (running: Running) => Promise<() => Promise<void>> = () => Promise.resolve(async () => {}),
  ): Promise<string[]> {
    const running = this.start(scene, null);
    const ended = await meanwhile(running);
    await ask(scene, running, work);
    await ended();
    running.client.close();
    await running.exited;
    const file = path.join(scene.own, NUMBERING);
    // Written by the victim: the words of its calls.
    const calls = JSON.parse(fs.readFileSync(file, 'utf8')) as string[];
    fs.unlinkSync(file);
    return calls;
  }
}

async function ask(scene: PromotionScene, { client }: Running, work: Work): Promise<void> {
  await client.request('promote.recover', { promotions: [] }, asking);
  if (work === 'recover') return;
  const approval = scene.approve({ promotion: PROMOTION });
  const reply = await client.request('promote.apply', { approval }, asking);
  assert.equal(reply.outcome, 'promoted');
}
