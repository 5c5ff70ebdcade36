import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { markUndone, pruneHistory, readPast } from '../../../helpers/promote/history.ts';
import { JournalDamaged } from '../../../helpers/promote/journal-records.ts';
import { promotionIdSchema } from '../../../helpers/protocol/ids.ts';
import { promoted, promoteHere } from '../../fakes/promote-here.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';

const MIB = 1_048_576;
const DAY_MS = 86_400_000;

describe('how much of promotions is kept', function () {
  this.timeout(60_000);
  let scene: PromotionScene;

  beforeEach(() => {
    scene = new PromotionScene({ asCaller: true });
    scene.put('file', Buffer.alloc(MIB));
  });
  afterEach(() => scene.remove());

  /** Names in the folder of each kept promotion. */
  const kept = (): Record<string, string[]> => {
    const history = path.join(scene.own, 'history');
    const ids = fs.existsSync(history) ? fs.readdirSync(history) : [];
    return Object.fromEntries(ids.map((id) => [id, fs.readdirSync(path.join(history, id)).toSorted()]));
  };
  const promote = (content: string): Promise<string> => {
    scene.draftOf({ file: { file: content } });
    return promoted(scene);
  };
  const limited = (megabytes: number, days: number): void => scene.policy({ history: { megabytes, days, why: '' } });

  it('the owner’s policy sets the size: the oldest go first', async () => {
    limited(3, 30);
    const [one, two, three] = [await promote('a'.repeat(MIB)), await promote('b'.repeat(MIB)), await promote('c')];
    assert.deepEqual(new Set(Object.keys(kept())), new Set([two, three]), `${one} is forgotten`);
    limited(1, 30);
    await promoteHere(scene, () => undefined);
    assert.deepEqual(kept(), { [three]: ['journal'] }, 'an edit counts with the next start of promote');
  });

  it('the owner’s policy sets the age, and the newest one stays known to be committed', async () => {
    const [one, two] = [await promote('new'), await promote('newer')];
    const own = fs.openSync(scene.own, 'r');
    const limits = { bytes: 10 * MIB, ageMs: 5 * DAY_MS };
    pruneHistory(own, Date.now() + 4 * DAY_MS, limits);
    assert.deepEqual(new Set(Object.keys(kept())), new Set([one, two]));
    pruneHistory(own, Date.now() + 6 * DAY_MS, limits);
    fs.closeSync(own);
    assert.deepEqual(kept(), { [two]: ['journal'] });
  });

  for (const [sentence, megabytes, days] of [
    ['no megabyte', 0, 30],
    ['no day', 1024, 0],
  ] as const) {
    it(`with ${sentence} nothing is kept but that the newest was committed`, async () => {
      limited(megabytes, days);
      await promote('new');
      const newest = await promote('newer');
      assert.deepEqual(kept(), { [newest]: ['journal'] });
      const { promoted: known } = await promoteHere(scene, (handlers) =>
        handlers.recover({ promotions: [promotionIdSchema.parse(newest)] }),
      );
      assert.deepEqual(known, [newest]);
    });
  }

  it('the newest one takes the older ones’ place also where it keeps no old file', async () => {
    limited(1024, 0);
    await promote('new');
    scene.draftOf({ other: { file: 'other' } });
    const id = await promoted(scene);
    assert.deepEqual(kept(), { [id]: ['journal'] });
  });

  it('a journal in another one’s place, or with anything after its commit, is believed no more', async () => {
    const id = await promote('new');
    const other = promotionIdSchema.parse(`prm_${'0'.repeat(32)}`);
    const own = fs.openSync(scene.own, 'r');
    try {
      assert.equal(readPast(own, id)?.state, 'kept');
      fs.renameSync(path.join(scene.own, 'history', id), path.join(scene.own, 'history', other));
      assert.throws(() => readPast(own, other), JournalDamaged);
      fs.renameSync(path.join(scene.own, 'history', other), path.join(scene.own, 'history', id));
      fs.appendFileSync(path.join(scene.own, 'history', id, 'journal'), 'x');
      assert.throws(() => readPast(own, id), JournalDamaged);
      markUndone(own, other, id);
      assert.deepEqual(Object.keys(kept()), [id], 'one that is forgotten is not made anew');
    } finally {
      fs.closeSync(own);
    }
  });

  it('while the policy cannot be read nothing is forgotten', async () => {
    const one = await promote('new');
    limited(0, 0);
    fs.chmodSync(path.join(scene.configuration, 'policy.json'), 0o666);
    await promoteHere(scene, () => undefined);
    assert.deepEqual(kept(), { [one]: ['0', 'journal'] });
  });
});
