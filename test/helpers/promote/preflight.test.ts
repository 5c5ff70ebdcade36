import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import type { Planned, Side } from '../../../helpers/promote/plan.ts';
import { preflight, shapeOf } from '../../../helpers/promote/preflight.ts';
import type { How } from '../../../helpers/promote/preflight.ts';
import { Stopped } from '../../../helpers/promote/stop.ts';
import { interpose } from '../../../helpers/runtime/libc.ts';
import { skipBecause } from '../../skip.ts';

const SOMEBODY = 65_533;
const OLD: Side = { mode: 0o644, bytes: 3, sha256: createHash('sha256').update('old').digest('hex'), lost: [] };
const FOLDER: Side = { mode: 0o755, bytes: 0, sha256: '', lost: [] };

describe('what is looked at before the first change, each alone', () => {
  let folder: string;
  let root: number;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'preflight-'));
    root = fs.openSync(folder, 'r');
    fs.mkdirSync(at('in'));
    fs.writeFileSync(at('in/file'), 'old');
    fs.chmodSync(at('in/file'), 0o644);
  });
  afterEach(() => {
    interpose(undefined);
    for (const name of ['in', 'in/file']) spawnSync('chattr', ['-i', at(name)]);
    fs.closeSync(root);
    fs.rmSync(folder, { recursive: true });
  });

  function at(name: string): string {
    return path.join(folder, name);
  }

  function look(name: string, before: Side | null, how: How['look'] = 'whole'): Promise<unknown> {
    const type = before?.sha256 === '' ? 'directory' : 'file';
    const after = before === null ? OLD : null;
    const change = before === null ? 'created' : 'deleted';
    const planned: Planned = { slot: 0, path: Buffer.from(name), change, type, before, after, content: null };
    return preflight(root, planned, shapeOf([planned]), { look: how, turn: () => Promise.resolve() });
  }

  async function stops(code: string, name: string, before: Side | null, how?: How['look']): Promise<void> {
    await assert.rejects(look(name, before, how), (error) => error instanceof Stopped && error.code === code);
  }

  it('a file that is as it was reviewed passes, and so does a free name', async () => {
    assert.notEqual(await look('in/file', OLD), null);
    assert.equal(await look('in/new', null), null);
  });

  it('size, content, mode, kind and inode are the reviewed ones, and a name is free', async () => {
    await stops('PROMOTION_CONFLICT', 'in/file', { ...OLD, bytes: 4 });
    await stops('PROMOTION_CONFLICT', 'in/file', { ...OLD, sha256: '0'.repeat(64) });
    await stops('PROMOTION_CONFLICT', 'in/file', { ...OLD, mode: 0o600 });
    await stops('PROMOTION_CONFLICT', 'in/file', { ...OLD, known: { inos: ['1'], mtimeNs: '0' } });
    await stops('PROMOTION_CONFLICT', 'in/file', null);
    fs.symlinkSync('file', at('in/link'));
    await stops('PROMOTION_UNSAFE_PATH', 'in/link', OLD);
    await stops('PROMOTION_CONFLICT', 'in', FOLDER);
  });

  it('a file of another time is read, whatever the look', async () => {
    const ino = fs.statSync(at('in/file')).ino.toString();
    await stops(
      'PROMOTION_CONFLICT',
      'in/file',
      { ...OLD, sha256: '0'.repeat(64), known: { inos: [ino], mtimeNs: '0' } },
      'by time',
    );
  });

  it('a second name and write protection are refused', async () => {
    fs.chmodSync(at('in/file'), 0o444);
    await stops('PROMOTION_UNSAFE_PATH', 'in/file', { ...OLD, mode: 0o444 });
    fs.chmodSync(at('in/file'), 0o644);
    fs.linkSync(at('in/file'), at('in/second'));
    await stops('PROMOTION_UNSAFE_PATH', 'in/file', OLD);
  });

  it('a file that is exchanged for its like between two looks is another one', async () => {
    fs.writeFileSync(at('twin'), 'old');
    fs.chmodSync(at('twin'), 0o644);
    interpose((name, args, make) => {
      const isOpened = name === 'openat2' && Buffer.isBuffer(args[1]) && args[1].toString() === 'file\0';
      if (isOpened && fs.existsSync(at('twin'))) fs.renameSync(at('twin'), at('in/file'));
      return make();
    });
    await stops('PROMOTION_CONFLICT', 'in/file', OLD);
    assert.ok(!fs.existsSync(at('twin')));
  });

  it('what another user owns, what is frozen and what lies on another mount is refused', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'files are given away, frozen and mounted by root');
    fs.chownSync(at('in/file'), SOMEBODY, SOMEBODY);
    await stops('PROMOTION_UNSAFE_PATH', 'in/file', OLD);
    fs.chownSync(at('in/file'), 0, 0);
    fs.chownSync(at('in'), SOMEBODY, SOMEBODY);
    for (const [name, before] of [
      ['in/file', OLD],
      ['in/new', null],
    ] as const)
      await stops('PROMOTION_UNSAFE_PATH', name, before);
    fs.chownSync(at('in'), 0, 0);
    assert.equal(spawnSync('mount', ['--bind', at('in/file'), at('in/file')]).status, 0);
    await stops('PROMOTION_UNSAFE_PATH', 'in/file', OLD);
    assert.equal(spawnSync('umount', [at('in/file')]).status, 0);
    for (const name of ['in', 'in/file']) {
      if (spawnSync('chattr', ['+i', at(name)]).status !== 0)
        skipBecause(this, 'a file system whose files can be frozen');
      await stops('PROMOTION_UNSAFE_PATH', 'in/file', OLD);
      spawnSync('chattr', ['-i', at(name)]);
    }
  });
});
