/* A promotion of twelve entries, and recoveries after it, by promote's own code in this process, on disks on which something goes wrong. */
import fs from 'node:fs';
import os from 'node:os';

import { PromoteHandlers, PromoteRefused } from '../../../helpers/promote/handlers.ts';
import type { PromoteReply } from '../../../helpers/promote/protocol.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';
import type { Listing, PromotionScene } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';
import { FaultyDisk } from './faulty-disk.ts';

/** How an apply ended: with an answer, as a request that is refused, or without an answer, by the error that ends the process. */
export type Ending =
  | { readonly outcome: 'answered'; readonly reply: PromoteReply<'promote.apply'> }
  | { readonly outcome: 'not-taken'; readonly refused: PromoteRefused }
  | { readonly outcome: 'ended'; readonly error: unknown };

/** What a recovery answers. */
export type Recovered = Omit<PromoteReply<'promote.recover'>, 'slot'>;

/** Memory is as good as a disk where no power is lost, and many trials take less time there. */
const PARENT = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir();

/** Number of descriptors that this process has open below a folder; the runner opens and closes others at any time. */
function openBelow(folder: string): number {
  const targets = fs.readdirSync('/proc/self/fd').map((descriptor) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${descriptor}`, 'latin1');
    } catch {
      // the one that the folder was listed by
      return '';
    }
  });
  return targets.filter((target) => target.startsWith(folder)).length;
}

/** A scene with its tree before, and promote on it. */
export class Trial {
  readonly scene: PromotionScene;
  readonly before: Listing;
  /** Sentences for the owner's log. */
  readonly said: string[] = [];
  /** Descriptors that promote did not close. */
  leaked = 0;

  constructor() {
    this.scene = twelveEntries({ asCaller: true, parent: PARENT });
    this.before = this.scene.listing();
  }

  /** Recovers on a sound disk, then applies on this one. */
  apply(disk: FaultyDisk): Promise<Ending> {
    return this.#with(async (handlers) => {
      handlers.recover({ promotions: [] });
      const approval = this.scene.approve();
      interpose(disk.interposer);
      try {
        return { outcome: 'answered', reply: await handlers.apply({ approval }) };
      } catch (error) {
        if (error instanceof PromoteRefused) return { outcome: 'not-taken', refused: error };
        return { outcome: 'ended', error };
      } finally {
        interpose(undefined);
      }
    });
  }

  /** Recovers, as a process of its own would, on this disk. Rejects with what would end the process. */
  recover(disk: FaultyDisk = new FaultyDisk()): Promise<Recovered> {
    return this.#with((handlers) => {
      interpose(disk.interposer);
      try {
        return Promise.resolve(handlers.recover({ promotions: [] }));
      } finally {
        interpose(undefined);
      }
    });
  }

  async #with<Result>(work: (handlers: PromoteHandlers) => Promise<Result>): Promise<Result> {
    const { root, draft, own, owner, configuration } = this.scene;
    const open = openBelow(this.scene.folder);
    const descriptors = {
      root: fs.openSync(root, 'r'),
      draft: fs.openSync(draft, 'r'),
      own: fs.openSync(own, 'r'),
      owner: fs.openSync(owner, 'r'),
      configuration: fs.openSync(configuration, 'r'),
    };
    const log = (sentence: string): void => void this.said.push(sentence);
    const handlers = new PromoteHandlers({ ...descriptors, forbidden: [] }, 'this boot', () => undefined, log);
    try {
      return await work(handlers);
    } finally {
      await handlers.end();
      for (const descriptor of Object.values(descriptors)) fs.closeSync(descriptor);
      this.leaked += openBelow(this.scene.folder) - open;
    }
  }
}
