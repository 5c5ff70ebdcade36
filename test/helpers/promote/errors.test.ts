import assert from 'node:assert/strict';

import { Draw } from '../../campaigns/campaign.ts';
import { troublesOf } from '../../faults/errors/errnos.ts';
import { callsOfRecovery, cleanApply, playApply, playRecovery, playShort } from '../../faults/errors/judge.ts';
import type { Clean } from '../../faults/errors/judge.ts';
import type { Fault } from '../../faults/errors/faulty-disk.ts';

type Refused = Extract<Fault, { kind: 'refused' }>;

/** Cases that are drawn of the product of calls and errnos; `npm run campaign -- errors` draws as many as there is time for. */
const LASTING = 150;
const LASTING_RECOVERIES = 15;

describe('the disk refuses a call', function () {
  this.timeout(180_000);
  const seed = process.env['NESSIE_TEST_SEED'] ?? String(Date.now() % 1_000_000);
  const draw = new Draw(seed);
  let clean: Clean;

  before(async () => {
    clean = await cleanApply();
  });

  /** Plays cases; what fails says which. Returns how often each word was the outcome. */
  async function each(
    faults: readonly Refused[],
    play: (fault: Refused) => Promise<string>,
  ): Promise<Map<string, number>> {
    const words = new Map<string, number>();
    for (const fault of faults) {
      try {
        const word = await play(fault);
        words.set(word, (words.get(word) ?? 0) + 1);
      } catch (cause) {
        const what = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`seed ${seed}, ${JSON.stringify(fault)}: ${what}`, { cause });
      }
    }
    return words;
  }

  /** A fault at a call that may give it, drawn. */
  function drawn(calls: Clean['calls'], lasts: boolean, at = draw.below(calls.length) + 1): Refused {
    const name = calls[at - 1];
    assert.ok(name);
    return { kind: 'refused', at, errno: draw.from(troublesOf(name)), lasts };
  }

  it('S-158 EIO of each sync of an apply in turn: before the commit it is restored, never retried into success; the commit’s own is answered by nobody; later ones are told', async () => {
    const syncs = clean.calls.flatMap((name, index) => (name === 'fsync' || name === 'syncfs' ? [index + 1] : []));
    const faults = syncs.map((at): Refused => ({ kind: 'refused', at, errno: 'EIO', lasts: false }));
    const words = await each(faults, (fault) => playApply(clean, fault));
    assert.deepEqual([words.get('ended'), words.get('not-taken'), words.get('left')], [1, undefined, undefined]);
    assert.ok((words.get('rolled-back') ?? 0) > 15 && (words.get('promoted') ?? 0) > 10, JSON.stringify([...words]));
  });

  it('S-160 each call of an apply in turn gives one of its errors once: restored or refused, the cause told, and the next recovery finds the old tree or the new one', async () => {
    const faults = clean.calls.map((_, index) => drawn(clean.calls, false, index + 1));
    const words = await each(faults, (fault) => playApply(clean, fault));
    assert.ok(words.get('promoted') !== faults.length && words.get('left') === undefined);
  });

  it('S-170 from some call on every call that may fail does: nothing old is lost, no recovery goes round, and the first on a sound disk ends it', async () => {
    const faults = Array.from({ length: LASTING }, () => drawn(clean.calls, true));
    const words = await each(faults, (fault) => playApply(clean, fault));
    assert.ok((words.get('left') ?? 0) > 10, JSON.stringify([...words]));
  });

  it('every fourth call of a recovery fails once, and drawn ones for good: it asks for attention with the cause, and the next one ends it', async () => {
    const [, prepare = 0, , , , , , , sixth = 0] = clean.renames;
    const archive = clean.renames.at(-1) ?? 0;
    const moments = [prepare - 20, sixth, clean.commit, clean.commit + 2, (clean.commit + archive) >> 1, archive];
    for (const moment of moments) {
      const calls = await callsOfRecovery(moment);
      const first = draw.below(4);
      const once = calls.map((_, index) => drawn(calls, false, index + 1)).filter((_, index) => index % 4 === first);
      const lasting = Array.from({ length: LASTING_RECOVERIES }, () => drawn(calls, true));
      await each([...once, ...lasting], (fault) => playRecovery(clean, moment, fault));
    }
  });

  it('S-161 writes that take one byte at a time are gone on with, and reads too; a write that takes none fails and is restored', async () => {
    for (const call of ['pwrite64', 'pread64'] as const)
      assert.equal(await playShort(clean, { kind: 'takes-one', call }), 'promoted');
    for (const [index, name] of clean.calls.entries()) {
      if (name !== 'pwrite64') continue;
      const word = await playShort(clean, { kind: 'takes-none', at: index + 1 });
      assert.equal(word === 'promoted', index + 1 > clean.commit);
    }
  });
});
