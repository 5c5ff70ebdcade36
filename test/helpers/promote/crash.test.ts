import assert from 'node:assert/strict';

import { Draw } from '../../campaigns/campaign.ts';
import { DEPTHS } from '../../fakes/every-kind.ts';
import type { Depth } from '../../fakes/every-kind.ts';
import { Bench } from '../../faults/crash/bench.ts';
import { cleanRun, nameOfCase, numberRecovery, playCase } from '../../faults/crash/case.ts';
import type { Case, Clean } from '../../faults/crash/case.ts';
import { killsOf } from '../../faults/crash/matrix.ts';

/** Cases that are tried here; `npm run crash-matrix` tries every one of the first kind, `npm run campaign -- crash` all of both. */
const APPLY_KILLS = 20;
const RECOVERY_KILLS = 8;

/** A kill and the name of the call that it hits. */
interface Aimed {
  readonly kill: Case['apply'];
  readonly call: string;
}

/** One kill of each kind of call first, then any others. */
function sample(calls: readonly string[], count: number, draw: Draw): Aimed[] {
  const aimed = killsOf(calls).map((kill) => ({ kill, call: calls[kill.number - 1] ?? '', key: draw.below(2 ** 32) }));
  const shuffled = aimed.toSorted((one, two) => one.key - two.key);
  const kinds = new Map(shuffled.map((one) => [one.call.split(' ')[0], one]));
  return [...new Set([...kinds.values(), ...shuffled])].slice(0, count);
}

describe('promote is killed', function () {
  this.timeout(180_000);
  const seed = Number(process.env['NESSIE_TEST_SEED'] ?? Date.now() % 1_000_000);
  const cleans = new Map<Depth, Clean>();
  let bench: Bench;

  before(async () => {
    bench = await Bench.begin();
    for (const depth of DEPTHS) cleans.set(depth, await cleanRun(bench, depth));
  });
  after(() => bench?.end());

  function cleanOf(depth: Depth): Clean {
    const clean = cleans.get(depth);
    assert.ok(clean);
    return clean;
  }

  /** Plays a case; what fails says how it is played again. */
  async function play(played: Case, call: string, key?: string): Promise<void> {
    try {
      await playCase(bench, cleanOf(played.depth), played, key);
    } catch (cause) {
      const again = `npm run crash-matrix -- --only ${nameOfCase(played)}`;
      const what = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`seed ${seed}, at ${call}; ${again}\n${what}`, { cause });
    }
  }

  it('before or after calls of an apply of twelve entries: its recovery gives the tree that the journal stands for, exact in byte, mode and time', async () => {
    const draw = new Draw(String(seed));
    for (const depth of DEPTHS) {
      for (const { kill, call } of sample(cleanOf(depth).calls, APPLY_KILLS / DEPTHS.length, draw)) {
        await play({ depth, apply: kill, recovery: undefined }, call);
      }
    }
  });

  it('again in the recovery of what the first kill left: the next recovery gives the same tree', async () => {
    const draw = new Draw(String(seed + 1));
    let kills = 0;
    while (kills < RECOVERY_KILLS) {
      const depth = DEPTHS[kills % DEPTHS.length] ?? 'top';
      const [first] = sample(cleanOf(depth).calls, 1, draw);
      assert.ok(first);
      const { key, calls } = await numberRecovery(bench, depth, first.kill);
      const all = killsOf(calls);
      // Where the first kill came before the journal or after its end there is nothing to recover.
      if (all.length === 0) continue;
      const recovery = draw.from(all);
      kills += 1;
      await play({ depth, apply: first.kill, recovery }, `${first.call}, then ${calls[recovery.number - 1]}`, key);
    }
  });
});
