import assert from 'node:assert/strict';
import fs from 'node:fs';

import { PromoteHandlers } from '../../../helpers/promote/handlers.ts';
import { BULK_FILES } from '../../../helpers/promote/go-forward.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import type { Wanted } from '../../fakes/promotion-scene.ts';

describe('a promotion of many files', function () {
  this.timeout(180_000);
  let scene: PromotionScene;
  let calls: string[];

  before(async () => {
    scene = new PromotionScene({ asCaller: true });
    const wanted: Record<string, Wanted> = {};
    for (let number = 0; number < BULK_FILES; number += 1) {
      scene.put(String(number), 'old');
      wanted[number] = { file: 'new' };
    }
    scene.draftOf(wanted);
    calls = await callsOfApply();
  });
  after(() => scene.remove());

  /** Names of the calls of an apply; of a rename the name that is given, of a sync the folder. */
  async function callsOfApply(): Promise<string[]> {
    const opened = [scene.root, scene.draft, scene.own, scene.owner, scene.configuration].map((folder) =>
      fs.openSync(folder, 'r'),
    );
    const [root = -1, draft = -1, own = -1, owner = -1, configuration = -1] = opened;
    const none = (): void => undefined;
    const given = { root, draft, own, owner, configuration, forbidden: [] };
    const handlers = new PromoteHandlers(given, 'this boot', none, none);
    const made: string[] = [];
    handlers.recover({ promotions: [] });
    const approval = scene.approve();
    interpose((name, args, make) => {
      const target = args[3];
      if (name === 'renameat2' && Buffer.isBuffer(target)) made.push(`rename ${target.subarray(0, -1).toString()}`);
      else if (name === 'syncfs') made.push(`syncfs ${fs.readlinkSync(`/proc/self/fd/${Number(args[0])}`)}`);
      else made.push(name);
      return name === 'fsync' || name === 'syncfs' ? 0 : make();
    });
    try {
      assert.equal((await handlers.apply({ approval })).outcome, 'promoted');
    } finally {
      interpose(undefined);
      await handlers.end();
      for (const descriptor of opened) fs.closeSync(descriptor);
    }
    return made;
  }

  it('brings the whole file system to the disk once everything is staged, before the journal says so', () => {
    const prepared = calls.indexOf('rename journal.prepared');
    const staged = calls.findLastIndex((call, index) => call === 'linkat' && index < prepared);
    const sync = calls.findIndex((call) => /^syncfs .*\/\.nessie-stage-/.test(call));
    assert.ok(staged > 0 && sync > staged && sync < prepared, `${staged}, ${sync}, ${prepared}`);
  });

  it('and once the history has every old file, before the first of them goes', () => {
    const committed = calls.indexOf('rename journal.committed');
    const sync = calls.findIndex((call) => /^syncfs .*\/history\//.test(call));
    const dropped = calls.findIndex((call, index) => call === 'unlinkat' && index > committed);
    const written = calls.findLastIndex((call) => call === 'pwrite64');
    assert.ok(
      committed > 0 && written > committed && sync > written && sync < dropped,
      `${written}, ${sync}, ${dropped}`,
    );
  });
});
