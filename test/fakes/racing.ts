/* Racers (test/fixtures/racers) against promotions: how they are started, told where, and what they have done then. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';

import type { PromoteReply } from '../../helpers/promote/protocol.ts';
import { asking } from './promotion-scene.ts';
import type { PromotionScene } from './promotion-scene.ts';
import type { RealInstallation } from './real-row.ts';

const TOP = path.resolve(import.meta.dirname, '..', '..');

/** What a racer did: numbers and texts by name. */
export type Figures = Readonly<Record<string, unknown>>;

/** A racer, running. */
export class Racer {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess, lines: AsyncIterator<string>) {
    this.#child = child;
    this.#lines = lines;
  }

  /** Starts a racer as a process of its own, under a uid where one is given. */
  static async start(name: 'swapper' | 'person' | 'reader', uid?: number): Promise<Racer> {
    const program = path.join(TOP, 'test', 'fixtures', 'racers', `${name}.ts`);
    const user = uid === undefined ? {} : { uid, gid: uid };
    const child = spawn(process.execPath, ['--import', 'tsx', program], {
      cwd: TOP,
      stdio: ['pipe', 'pipe', 'inherit'],
      ...user,
    });
    const racer = new Racer(child, createInterface({ input: child.stdout })[Symbol.asyncIterator]());
    await racer.#next();
    return racer;
  }

  /** Races from now on. */
  async begin(where: Readonly<Record<string, string>>): Promise<void> {
    this.#child.stdin?.write(`${JSON.stringify({ begin: where })}\n`);
    await this.#next();
  }

  /** Stops, with everything where it was, and tells what was done. */
  async stop(): Promise<Figures> {
    this.#child.stdin?.write(`${JSON.stringify({ stop: true })}\n`);
    // A line of test/fixtures/racers/turns.ts.
    return JSON.parse(await this.#next()) as Figures;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = new Promise((resolve) => void this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await exited;
  }

  async #next(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error('a racer ended');
    return value;
  }
}

/** What came of one promotion under a racer: the answer, what a recovery in a new process said after it, and what the racer did. */
export interface Raced {
  readonly reply: PromoteReply<'promote.apply'>;
  readonly recovered: Pick<PromoteReply<'promote.recover'>, 'outcome' | 'conflicts'>;
  readonly figures: Figures;
  /** Paths that somebody was told of: a copy was kept, or a file was left. */
  readonly told: ReadonlySet<string>;
}

/** Applies the draft of a scene in the real, confined promote while a racer races, and no longer. */
export async function raceApply(
  installation: RealInstallation,
  scene: PromotionScene,
  racer: Racer,
  where: Readonly<Record<string, string>>,
): Promise<Raced> {
  const running = scene.start(installation);
  let reply: PromoteReply<'promote.apply'>;
  let figures: Figures;
  try {
    await running.client.request('promote.recover', { promotions: [] }, asking);
    const approval = scene.approve();
    await racer.begin(where);
    try {
      reply = await running.client.request('promote.apply', { approval }, asking);
    } finally {
      figures = await racer.stop();
    }
  } finally {
    running.client.close();
    await running.exited;
  }
  const recovered = await scene.recover(installation);
  const kept = 'kept' in reply ? reply.kept : [];
  return { reply, recovered, figures, told: new Set([...kept, ...recovered.conflicts]) };
}
