/*
 * promote's own code in this process, on the folders of a scene that was made `asCaller`: one set of handlers for each piece of work,
 * as a process of its own would be, with its native calls within reach of `interpose`.
 */
import fs from 'node:fs';

import { PromoteHandlers } from '../../helpers/promote/handlers.ts';
import type { PromoteReply } from '../../helpers/promote/protocol.ts';
import type { PromotionScene } from './promotion-scene.ts';

// A lease tells of a waiting writer by this signal, which would end the process.
process.on('SIGIO', () => undefined);

const none = (): void => undefined;

/** Recovers, does one piece of work, and ends as the process does; whatever is still open is closed then. */
export async function promoteHere<Result>(
  scene: PromotionScene,
  work: (handlers: PromoteHandlers) => Result | Promise<Result>,
  log: (sentence: string) => void = none,
): Promise<Result> {
  const given = [scene.root, scene.draft, scene.own, scene.owner, scene.configuration];
  const opened = given.map((folder) => fs.openSync(folder, 'r'));
  const [root = -1, draft = -1, own = -1, owner = -1, configuration = -1] = opened;
  const handlers = new PromoteHandlers(
    { root, draft, own, owner, configuration, forbidden: [] },
    'this boot',
    none,
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

/** Applies the draft of a scene; the id of the promotion. Rejects where it was not promoted. */
export async function promoted(scene: PromotionScene): Promise<string> {
  const approval = scene.approve();
  const reply: PromoteReply<'promote.apply'> = await promoteHere(scene, (handlers) => handlers.apply({ approval }));
  if (reply.outcome !== 'promoted') throw new Error(JSON.stringify(reply));
  return reply.history;
}
