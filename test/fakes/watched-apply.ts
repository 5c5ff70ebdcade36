/* Promotions by promote's own code in this process, with something done before any native call of theirs. */
import fs from 'node:fs';
import os from 'node:os';

import { PromoteHandlers } from '../../helpers/promote/handlers.ts';
import type { PromoteReply } from '../../helpers/promote/protocol.ts';
import { interpose } from '../../helpers/runtime/libc.ts';
import type { PromotionScene } from './promotion-scene.ts';

const none = (): void => undefined;

/** A folder in memory, where there is one: an apply is tried hundreds of times, and each syncs. */
export const QUICK_PARENT = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir();

/** What an apply answered, how many native calls it made, and what a recovery after it answered. */
export interface Watched {
  readonly reply: PromoteReply<'promote.apply'>;
  readonly calls: number;
  readonly recovered: Pick<PromoteReply<'promote.recover'>, 'outcome' | 'conflicts'>;
}

/** Applies the draft of a scene that belongs to this process; `before` is told the number of each native call, from 1 on, before it is made. Recovers then, as the next process would. */
export async function applyWatched(scene: PromotionScene, before: (call: number) => void = none): Promise<Watched> {
  // a lease that is broken tells its holder so
  process.on('SIGIO', none);
  const first = handlersOf(scene);
  let calls = 0;
  let isInside = false;
  try {
    first.handlers.recover({ promotions: [] });
    const approval = scene.approve();
    interpose((_name, _args, make) => {
      if (isInside) return make();
      calls += 1;
      isInside = true;
      try {
        before(calls);
      } finally {
        isInside = false;
      }
      return make();
    });
    const reply = await first.handlers.apply({ approval });
    interpose(undefined);
    await first.close();
    return { reply, calls, recovered: await recoverHere(scene) };
  } finally {
    interpose(undefined);
    await first.close();
    process.off('SIGIO', none);
  }
}

/** Recovers as the next process would. */
export async function recoverHere(scene: PromotionScene): Promise<Watched['recovered']> {
  const { handlers, close } = handlersOf(scene);
  try {
    return handlers.recover({ promotions: [] });
  } finally {
    await close();
  }
}

function handlersOf(scene: PromotionScene): {
  readonly handlers: PromoteHandlers;
  readonly close: () => Promise<void>;
} {
  const open = (folder: string): number => fs.openSync(folder, 'r');
  const given = {
    root: open(scene.root),
    draft: open(scene.draft),
    own: open(scene.own),
    owner: open(scene.owner),
    configuration: open(scene.configuration),
  };
  const handlers = new PromoteHandlers({ ...given, forbidden: [] }, 'this boot', none, none);
  let isOpen = true;
  return {
    handlers,
    close: async () => {
      if (!isOpen) return;
      isOpen = false;
      await handlers.end();
      for (const descriptor of Object.values(given)) fs.closeSync(descriptor);
    },
  };
}
