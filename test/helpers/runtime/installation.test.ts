import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { copyForOtherUsers, MANIFEST, readInstallation } from '../../../helpers/runtime/installation.ts';
import type { Installation } from '../../../helpers/runtime/installation.ts';

describe('copies of an installation for other users', () => {
  let folder: string;
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'installation-'));
  });
  afterEach(() => fs.rmSync(folder, { recursive: true }));

  function build(text: string): Installation {
    const built = path.join(folder, `built-${text}`);
    fs.mkdirSync(built);
    fs.writeFileSync(path.join(built, 'role.mjs'), text);
    const files = { 'role.mjs': createHash('sha256').update(text).digest('hex') };
    fs.writeFileSync(path.join(built, MANIFEST), JSON.stringify({ files }));
    return readInstallation(built);
  }

  it('a new copy lets go of old ones that no process runs from, and of no other', async () => {
    const copies = path.join(folder, 'copies');
    const [unused, young, used] = ['unused', 'young', 'setInterval(() => 0, 1000)'].map((text) =>
      copyForOtherUsers(build(text), copies),
    );
    assert.ok(unused && young && used);
    const child = spawn(process.execPath, [path.join(used.folder, 'role.mjs')], { stdio: 'ignore' });
    try {
      const twoHoursAgo = new Date(Date.now() - 7_200_000);
      for (const copy of [unused, young, used]) fs.utimesSync(copy.folder, twoHoursAgo, twoHoursAgo);
      // Asked for again: whoever did has started nothing from it yet.
      copyForOtherUsers(readInstallation(path.join(folder, 'built-young')), copies);
      const made = copyForOtherUsers(build('new'), copies);
      const left = [young, used, made].map(({ digest }) => digest);
      assert.deepEqual(fs.readdirSync(copies).toSorted(), left.toSorted());
      assert.equal(copyForOtherUsers(build('again'), copies).folder.startsWith(copies), true);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
