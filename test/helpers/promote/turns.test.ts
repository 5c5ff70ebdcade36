import assert from 'node:assert/strict';
import fs from 'node:fs';

import { DIGEST_CHUNK_BYTES } from '../../../helpers/files/digest.ts';
import type { Interposer } from '../../../helpers/runtime/libc.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';
import { promoteHere, recoverHere } from '../../fakes/promote-here.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';

const PIECES = 300;
/** The readings of one large file whose mode changes, in their order; each reads every piece and finds the end. */
const READINGS = ['verified', 'staged', 'looked at in the stage folder', 'looked at under its lease'] as const;

describe('one file that is long to read', function () {
  this.timeout(60_000);

  for (const [index, reading] of READINGS.entries()) {
    it(`a promotion that is cancelled while it is ${reading} ends before its end, with the old tree`, async () => {
      const scene = new PromotionScene({ asCaller: true });
      scene.put('large', 'begin');
      fs.truncateSync(scene.at('large'), PIECES * DIGEST_CHUNK_BYTES);
      scene.draftOf({ large: { mode: 0o755 } });
      const before = scene.listing();
      const approval = scene.approve();
      let read = 0;
      let isCancelled = false;
      const reply = await promoteHere(scene, async (handlers) => {
        const counting: Interposer = (name, args, make) => {
          const isPiece = name === 'pread64' && Number(args[2]) === DIGEST_CHUNK_BYTES;
          if (isPiece && (read += 1) === index * (PIECES + 1) + 10) setImmediate(() => void handlers.cancel());
          if (isPiece) isCancelled = read > index * (PIECES + 1) + 10;
          return make();
        };
        interpose(counting);
        try {
          return await handlers.apply({ approval });
        } finally {
          interpose(undefined);
        }
      });
      assert.ok(isCancelled && reply.outcome !== 'promoted' && reply.code === 'CANCELLED', JSON.stringify(reply));
      assert.deepEqual(scene.listing(), before);
      assert.equal(recoverHere(scene).outcome, 'nothing-to-do');
      // What was staged whole is judged once more on the way back.
      const onTheWayBack = index >= 2 ? PIECES : 0;
      assert.ok(read < (index + 1) * PIECES + onTheWayBack, `${read} pieces were read`);
      scene.remove();
    });
  }

  it('what was told last is told again each second, so that whoever waits knows that work goes on', async () => {
    const scene = new PromotionScene({ asCaller: true });
    scene.put('large', 'begin');
    fs.truncateSync(scene.at('large'), PIECES * DIGEST_CHUNK_BYTES);
    scene.draftOf({ large: { mode: 0o755 } });
    const approval = scene.approve();
    const told: string[] = [];
    await promoteHere(
      scene,
      async (handlers) => {
        let pieces = 0;
        interpose((name, args, make) => {
          // A slow disk, for a moment.
          if (name === 'pread64' && Number(args[2]) === DIGEST_CHUNK_BYTES && (pieces += 1) === 100)
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100);
          return make();
        });
        try {
          return await handlers.apply({ approval });
        } finally {
          interpose(undefined);
        }
      },
      undefined,
      (phase, done) => void told.push(`${phase} ${done}`),
    );
    const [first, ...more] = told;
    assert.equal(first, 'verifying 0');
    assert.equal(more[0], 'verifying 0', told.join(', '));
    scene.remove();
  });
});
