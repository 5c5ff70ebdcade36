import assert from 'node:assert/strict';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { AT_FDCWD, RENAME, renameat2 } from '../../../helpers/runtime/native-files.ts';
import { drawEdits, editedScene, playEdits } from '../../fakes/drawn-edits.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { filesBelow, sealOf } from '../../fakes/folder-contents.ts';
import { applyWatched, QUICK_PARENT, recoverHere } from '../../fakes/watched-apply.ts';
import type { Watched } from '../../fakes/watched-apply.ts';

const OLD = { 'top/work/file': 'old file', 'top/work/gone': 'old gone' };
const NEW = { 'top/work/added': 'added', 'top/work/file': 'new file' };
/** Drawn edits in the suite; the campaign draws more. */
const DRAWN = 400;

/** A root, and a folder outside that looks the same. */
function lookAlike(): { readonly scene: PromotionScene; readonly outside: string; readonly away: string } {
  const scene = new PromotionScene({ asCaller: true, parent: QUICK_PARENT });
  const outside = path.join(scene.folder, 'outside');
  for (const name of ['top', 'top/work']) scene.folderAt(name);
  fs.mkdirSync(path.join(outside, 'top/work'), { recursive: true });
  for (const [name, content] of Object.entries(OLD)) {
    scene.put(name, content);
    fs.writeFileSync(path.join(outside, name), content);
  }
  scene.draftOf({
    'top/work/added': { file: 'added' },
    'top/work/file': { file: 'new file' },
    'top/work/gone': 'removed',
  });
  return { scene, outside, away: path.join(scene.folder, 'away') };
}

function exchange(one: string, other: string): void {
  renameat2(AT_FDCWD, Buffer.from(one), AT_FDCWD, Buffer.from(other), RENAME.EXCHANGE);
}

/** The tree is old or new as the answer says, but for paths that somebody was told of, and nothing old is lost. */
function judge(scene: PromotionScene, { reply, recovered }: Watched, call: number): void {
  // An old file goes back to its path, in whichever folder has that path then.
  const tree = new Map([...filesBelow(path.join(scene.folder, 'other')), ...filesBelow(scene.root)]);
  const told = new Set([...('kept' in reply ? reply.kept : []), ...recovered.conflicts]);
  const expected = new Map(Object.entries(reply.outcome === 'promoted' ? NEW : OLD));
  const said = `call ${call}: ${JSON.stringify([[...tree], reply, recovered])}`;
  if (reply.outcome === 'refused') assert.notEqual(reply.code, 'PROMOTION_RECOVERY_REQUIRED', said);
  for (const name of new Set([...tree.keys(), ...expected.keys()]))
    if (tree.get(name) !== expected.get(name)) assert.ok(told.has(name), `nobody was told of ${name}, ${said}`);
  const copies = [...filesBelow(path.join(scene.own, 'kept')).values()];
  for (const old of reply.outcome === 'promoted' ? [] : Object.values(OLD))
    assert.ok([...tree.values(), ...copies].includes(old), `${old} is lost, ${said}`);
}

/** Somebody who has done something or not. */
interface Attack {
  readonly turn: () => void;
  readonly isDone: () => boolean;
}

/**
 * Does one thing before each call of an apply in turn, and undoes it `after` calls later or when all is over. What lasts is begun at
 * every third call: what stands between two of these meets it at the next.
 */
async function atEveryCall(after: number, attackOf: (world: ReturnType<typeof lookAlike>) => Attack): Promise<number> {
  const step = after === Number.POSITIVE_INFINITY ? 3 : 1;
  for (let call = 1; ; call += step) {
    const world = lookAlike();
    try {
      const seal = sealOf(world.outside);
      const { turn, isDone } = attackOf(world);
      const watched = await applyWatched(world.scene, (now) => {
        if (now === call || (now === call + after && isDone())) turn();
      });
      if (isDone()) turn();
      assert.equal(sealOf(world.outside), seal, `call ${call}: something was written outside`);
      judge(world.scene, watched, call);
      if (watched.calls < call) return call - 1;
    } finally {
      world.scene.remove();
    }
  }
}

function swapOf(part: string): (world: ReturnType<typeof lookAlike>) => Attack {
  return ({ scene, outside }) => {
    const link = path.join(scene.folder, 'link');
    fs.symlinkSync(path.join(outside, part), link);
    let isDone = false;
    return {
      turn: () => {
        try {
          exchange(String(scene.at(part)), link);
          isDone = !isDone;
        } catch {
          // the file is taken away already: there is nothing to swap
        }
      },
      isDone: () => isDone,
    };
  };
}

/** Swaps a file for a link for one call, at the first call at which promote takes the link for the file and cannot put it back. */
async function firstCaught(): Promise<{ scene: PromotionScene; watched: Watched; link: string }> {
  for (let call = 1; ; call += 1) {
    const world = lookAlike();
    const { scene } = world;
    const { turn } = swapOf('top/work/file')(world);
    const watched = await applyWatched(scene, (now) => {
      if (now === call || now === call + 1) turn();
    });
    const stage = fs.readdirSync(scene.root).find((name) => name.startsWith('.nessie-stage-'));
    const names = stage === undefined ? [] : fs.readdirSync(scene.at(stage));
    const links = names.map((name) => path.join(scene.root, stage ?? '', name));
    const link = links.find((name) => fs.lstatSync(name).isSymbolicLink());
    if (link !== undefined) return { scene, watched, link };
    scene.remove();
    if (watched.calls < call) throw new Error('no call at which a link is caught');
  }
}

describe('something happens before each native call of an apply', function () {
  this.timeout(180_000);

  it('N-150 the first, a middle or the last part of a path is swapped for a link, for one call or for good: it is never followed, and what is not restored is told', async () => {
    for (const part of ['top', 'top/work', 'top/work/file']) {
      const calls = await atEveryCall(1, swapOf(part));
      assert.ok(calls > 100, `${calls} calls`);
    }
    for (const part of ['top/work', 'top/work/file']) await atEveryCall(Number.POSITIVE_INFINITY, swapOf(part));
  });

  it('a link that a rename catches in the stage folder stays there, is told, and holds nothing up once it is taken out', async () => {
    const caught = await firstCaught();
    const { scene, watched } = caught;
    try {
      assert.equal(watched.reply.outcome, 'rolled-back');
      assert.deepEqual('kept' in watched.reply && watched.reply.kept, ['top/work/file']);
      assert.deepEqual(watched.recovered, { outcome: 'needs-attention', conflicts: ['top/work/file'], promoted: [] });
      assert.deepEqual(Object.fromEntries(filesBelow(scene.root)), OLD);
      fs.unlinkSync(caught.link);
      assert.equal((await recoverHere(scene)).outcome, 'nothing-to-do');
      assert.deepEqual(fs.readdirSync(scene.root), ['top']);
    } finally {
      scene.remove();
    }
  });

  it('the folder is moved out of the root, for one call or for good: nothing is lost, and what is not restored is told', async () => {
    for (const after of [1, Number.POSITIVE_INFINITY]) {
      await atEveryCall(after, ({ scene, away }) => {
        const work = String(scene.at('top/work'));
        let isDone = false;
        return {
          turn: () => {
            fs.renameSync(isDone ? away : work, isDone ? work : away);
            isDone = !isDone;
          },
          isDone: () => isDone,
        };
      });
    }
  });

  it('the folder is swapped for another one of the person: old files are at their path or kept, and what went with it is told', async () => {
    await atEveryCall(Number.POSITIVE_INFINITY, ({ scene }) => {
      const other = path.join(scene.folder, 'other', 'top', 'work');
      fs.mkdirSync(other, { recursive: true });
      let isDone = false;
      return {
        turn: () => {
          exchange(String(scene.at('top/work')), other);
          isDone = !isDone;
        },
        isDone: () => isDone,
      };
    });
  });

  it('a person saves over a file or appends to it once, before every other call: a promotion that goes through has left the edit at its path', async () => {
    const scene = editedScene();
    const { calls } = await applyWatched(scene);
    scene.remove();
    for (const edit of [
      { target: 'folder/file', way: 'save' },
      { target: 'folder/file', way: 'append' },
      { target: 'folder/gone', way: 'save' },
    ] as const) {
      for (let call = 1 + randomInt(2); call <= calls; call += 2) {
        const { outcome, copied } = await playEdits(new Map([[call, [edit]]]));
        assert.ok(outcome !== 'promoted' || copied === 0, `${JSON.stringify(edit)} before call ${call} is only a copy`);
      }
    }
  });

  it(`a person edits at ${DRAWN} drawn moments, by saving over and through descriptors: every edit is at its path, or kept and told`, async () => {
    const seed = randomBytes(4).toString('hex');
    let count = 0;
    const below = (limit: number): number => {
      count += 1;
      const digest = createHash('sha256').update(`${seed}:${count}`).digest();
      return digest.readUInt32BE() % limit;
    };
    const scene = editedScene();
    const { calls } = await applyWatched(scene);
    scene.remove();
    try {
      for (let round = 0; round < DRAWN; round += 1) await playEdits(drawEdits(below, calls));
    } catch (error) {
      console.error(`seed ${seed}`);
      throw error;
    }
  });
});
