import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { MarkDamaged, readMark, writeMark } from '../../../helpers/promote/mark.ts';
import { openTrusted, ownSubfolder, ownTrust, UntrustedFile } from '../../../helpers/promote/own-folder.ts';
import { JournalDamaged } from '../../../helpers/promote/journal-records.ts';
import { checkOpenRoot } from '../../../helpers/promote/root-check.ts';
import { openStage } from '../../../helpers/promote/stage-end.ts';
import { Stopped } from '../../../helpers/promote/stop.ts';
import { skipBecause } from '../../skip.ts';

const SOMEBODY = 65_533;

describe('what lies in promote’s own folder is believed only as promote leaves it', () => {
  let folder: string;
  let own: number;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'own-'));
    own = fs.openSync(folder, 'r');
  });
  afterEach(() => {
    fs.closeSync(own);
    fs.rmSync(folder, { recursive: true });
  });

  const at = (name: string): string => path.join(folder, name);

  it('a file is plain, has one name and no other reader', () => {
    fs.writeFileSync(at('good'), 'good', { mode: 0o600 });
    fs.closeSync(openTrusted(own, 'good', ownTrust()) ?? -1);
    assert.equal(spawnSync('mkfifo', ['-m', '600', at('fifo')]).status, 0);
    fs.writeFileSync(at('open'), 'open', { mode: 0o600 });
    fs.chmodSync(at('open'), 0o640);
    fs.writeFileSync(at('twice'), 'twice', { mode: 0o600 });
    fs.linkSync(at('twice'), at('second'));
    for (const name of ['fifo', 'open', 'twice'])
      assert.throws(() => openTrusted(own, name, ownTrust()), UntrustedFile, name);
  });

  it('a folder is one, and nobody else may enter it', () => {
    fs.closeSync(ownSubfolder(own, 'made'));
    fs.writeFileSync(at('file'), 'file', { mode: 0o600 });
    fs.mkdirSync(at('open'), { mode: 0o750 });
    for (const name of ['file', 'open']) assert.throws(() => ownSubfolder(own, name), UntrustedFile, name);
  });

  it('neither belongs to anybody else', function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'a file is given away by root');
    fs.writeFileSync(at('file'), 'file', { mode: 0o600 });
    fs.mkdirSync(at('folder'), { mode: 0o700 });
    for (const name of ['file', 'folder']) fs.chownSync(at(name), SOMEBODY, SOMEBODY);
    assert.throws(() => openTrusted(own, 'file', ownTrust()), UntrustedFile);
    assert.throws(() => ownSubfolder(own, 'folder'), UntrustedFile);
  });

  it('a mark with one letter changed is damaged', () => {
    const promotion = `prm_${'a'.repeat(32)}`;
    writeMark(own, { sequence: 1, used: [promotion], spent: [], successions: [] });
    assert.deepEqual(readMark(own).used, [promotion]);
    const content = fs.readFileSync(at('mark'), 'latin1');
    fs.writeFileSync(at('mark'), content.replace('prm_a', 'prm_b'), 'latin1');
    assert.throws(() => readMark(own), MarkDamaged);
  });

  it('a stage folder is the folder that was made, by its inode, and our own', function () {
    fs.mkdirSync(at('stage'), { mode: 0o700 });
    const ino = fs.statSync(at('stage')).ino.toString();
    fs.closeSync(openStage(own, 'stage', ino) ?? -1);
    assert.equal(openStage(own, 'gone', ino), undefined);
    fs.writeFileSync(at('file'), '');
    assert.throws(() => openStage(own, 'file', undefined), JournalDamaged);
    assert.throws(() => openStage(own, 'stage', '1'), JournalDamaged);
    if (process.getuid?.() !== 0) skipBecause(this, 'a folder is given away by root');
    fs.chownSync(at('stage'), SOMEBODY, SOMEBODY);
    assert.throws(() => openStage(own, 'stage', ino), JournalDamaged);
  });

  it('a root that was removed is none', () => {
    fs.mkdirSync(at('root'));
    const root = fs.openSync(at('root'), 'r');
    fs.rmdirSync(at('root'));
    assert.throws(
      () => checkOpenRoot(root, [], []),
      (error) => error instanceof Stopped && error.code === 'PROMOTION_UNSAFE_ROOT',
    );
    fs.closeSync(root);
  });
});
