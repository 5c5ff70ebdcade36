import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { MarkDamaged, readMark, writeMark } from '../../../helpers/promote/mark.ts';
import { openTrusted, ownSubfolder, ownTrust, UntrustedFile } from '../../../helpers/promote/own-folder.ts';
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
});
