import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import type { Planned, Side } from '../../../helpers/promote/plan.ts';
import { stageStep } from '../../../helpers/promote/stage-plan.ts';
import { Stopped } from '../../../helpers/promote/stop.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';

const GOOD: Side = { mode: 0o644, bytes: 3, sha256: createHash('sha256').update('new').digest('hex'), lost: [] };

describe('new content is staged only as it was approved', () => {
  let folder: string;
  let root: number;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'stage-'));
    fs.writeFileSync(path.join(folder, 'content'), 'new');
    root = fs.openSync(folder, 'r');
  });
  afterEach(() => {
    interpose(undefined);
    fs.closeSync(root);
    fs.rmSync(folder, { recursive: true });
  });

  function stage(after: Side): Promise<unknown> {
    const planned: Planned = {
      slot: 0,
      path: Buffer.from('path'),
      change: 'created',
      type: 'file',
      before: null,
      after,
      content: 1,
    };
    const open = (): number => fs.openSync(path.join(folder, 'content'), 'r');
    const contents = { open, mismatch: 'PROMOTION_REVIEW_STALE' } as const;
    return stageStep(
      { root, stage: root, contents, unnamed: true, reflink: false, sync: false, turn: () => Promise.resolve() },
      planned,
    );
  }

  async function stops(code: string, after: Side): Promise<void> {
    await assert.rejects(stage(after), (error) => error instanceof Stopped && error.code === code);
    assert.deepEqual(fs.readdirSync(folder), ['content']);
  }

  it('with its digest and its length', async () => {
    assert.notEqual(await stage(GOOD), null);
    fs.unlinkSync(path.join(folder, '0'));
    await stops('PROMOTION_REVIEW_STALE', { ...GOOD, sha256: '0'.repeat(64) });
    await stops('PROMOTION_REVIEW_STALE', { ...GOOD, bytes: 4 });
  });

  it('and nothing beyond its length is written', async () => {
    let writes = 0;
    interpose((name, _args, make) => {
      if (name === 'pwrite64') writes += 1;
      return make();
    });
    await stops('PROMOTION_REVIEW_STALE', { ...GOOD, bytes: 2 });
    assert.equal(writes, 0);
  });

  it('and with its mode, where it is brought back: one that the kernel narrows is told', async () => {
    interpose((name, _args, make) => (name === 'fchmod' ? 0 : make()));
    await assert.rejects(
      stage({ ...GOOD, known: { inos: ['1'], mtimeNs: '0' } }),
      (error) => error instanceof Stopped && error.code === 'PROMOTION_UNSAFE_PATH',
    );
  });
});
