/*
 * promote's own code in this process, on the folders of a scene that was made `asCaller`: one set of handlers for each piece of work,
 * as a process of its own would be, with its native calls within reach of `interpose`.
 */
import fs from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';

import { PromoteHandlers } from '../../helpers/promote/handlers.ts';
import type { Undone } from '../../helpers/protocol/history-facts.ts';
import { promotionIdSchema } from '../../helpers/protocol/ids.ts';
import type { PromoteReply } from '../../helpers/promote/protocol.ts';
import { recover } from '../../helpers/promote/recover.ts';
import type { Recovered } from '../../helpers/promote/recover.ts';
import { interpose, NativeError } from '../../helpers/runtime/libc.ts';
import type { Interposer } from '../../helpers/runtime/libc.ts';
import type { PromotionScene } from './promotion-scene.ts';

// A lease tells of a waiting writer by this signal, which would end the process.
process.on('SIGIO', () => undefined);

const none = (): void => undefined;

/** Recovers, does one piece of work, and ends as the process does; whatever is still open is closed then. */
export async function promoteHere<Result>(
  scene: PromotionScene,
  work: (handlers: PromoteHandlers) => Result | Promise<Result>,
  log: (sentence: string) => void = none,
  tell: ConstructorParameters<typeof PromoteHandlers>[2] = none,
): Promise<Result> {
  const given = [scene.root, scene.draft, scene.own, scene.owner, scene.configuration];
  const opened = given.map((folder) => fs.openSync(folder, 'r'));
  const [root = -1, draft = -1, own = -1, owner = -1, configuration = -1] = opened;
  const handlers = new PromoteHandlers(
    { root, draft, own, owner, configuration, forbidden: [] },
    'this boot',
    tell,
    log,
  );
  try {
    handlers.recover({ promotions: [] });
    return await work(handlers);
  } finally {
    await handlers.end();
    for (const descriptor of opened) fs.closeSync(descriptor);
  }
}

/** Settles what an earlier promotion left in a scene; what was found and done. */
export function recoverHere(scene: PromotionScene, log: (sentence: string) => void = none): Recovered {
  const [own, root] = [fs.openSync(scene.own, 'r'), fs.openSync(scene.root, 'r')];
  try {
    return recover({ own, root }, { bootId: 'this boot', now: Date.now(), log });
  } finally {
    fs.closeSync(own);
    fs.closeSync(root);
  }
}

/** Recovers, and applies the draft of a scene with an interposer before each native call of the apply. */
export function applyHere(scene: PromotionScene, between?: Interposer): Promise<PromoteReply<'promote.apply'>> {
  const approval = scene.approve();
  return promoteHere(scene, async (handlers) => {
    interpose(between);
    try {
      return await handlers.apply({ approval });
    } finally {
      interpose(undefined);
    }
  });
}

/** Applies the draft of a scene up to the rename that gives a name, at which the disk goes away: what stands then is what a cut leaves. */
export async function cutHere(scene: PromotionScene, given: string): Promise<void> {
  let isCut = false;
  const between: Interposer = (name, args, make) => {
    const to = args[3];
    isCut ||= name === 'renameat2' && Buffer.isBuffer(to) && to.subarray(0, -1).toString('latin1') === given;
    if (isCut) throw new NativeError(name, constants.errno.EIO);
    return make();
  };
  await applyHere(scene, between).catch(() => undefined);
}

/** Applies the draft of a scene; the id of the promotion. Rejects where it was not promoted. */
export async function promoted(scene: PromotionScene): Promise<string> {
  const reply = await applyHere(scene);
  if (reply.outcome !== 'promoted') throw new Error(JSON.stringify(reply));
  return reply.history;
}

/** Writes what the owner's command line writes once an undo was confirmed; `changes` make it another. */
export async function confirmUndo(
  scene: PromotionScene,
  promotion: string,
  changes: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const id = promotionIdSchema.parse(promotion);
  const plan = await promoteHere(scene, (handlers) => handlers.undoPlan({ promotion: id, from: 0 }));
  if (plan.outcome !== 'possible') throw new Error(JSON.stringify(plan));
  const { journalDigest, rootIdentity } = plan;
  const folder = path.join(scene.owner, 'confirmations');
  fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, `${journalDigest}.json`);
  const confirmation = { version: 1, undo: id, journalDigest, rootIdentity, at: Date.now(), ...changes };
  fs.writeFileSync(file, JSON.stringify(confirmation), { mode: 0o600 });
  return file;
}

/** Asks for an undo, confirmed or not. */
export function undoHere(scene: PromotionScene, promotion: string): Promise<Undone> {
  const id = promotionIdSchema.parse(promotion);
  return promoteHere(scene, (handlers) => handlers.undo({ promotion: id }));
}

/** Confirms an undo and asks for it. */
export async function confirmedUndo(scene: PromotionScene, promotion: string): Promise<Undone> {
  await confirmUndo(scene, promotion);
  return undoHere(scene, promotion);
}

/** Whether an open descriptor of this process lies in a folder. */
export function liesIn(folder: string, descriptor: unknown): boolean {
  if (typeof descriptor !== 'number' || descriptor < 0) return false;
  const target = fs.readlinkSync(`/proc/self/fd/${descriptor}`);
  // A file without a name is shown as `FOLDER/#INODE (deleted)`.
  return target === folder || target.startsWith(`${folder}/`);
}
