import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { factsOf, isSame, statusAt } from '../../../helpers/promote/tree.ts';

describe('a file is known again', () => {
  it('by its inode and its kind: a number that something of another kind has now says nothing', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tree-'));
    fs.writeFileSync(path.join(folder, 'file'), '');
    fs.mkdirSync(path.join(folder, 'folder'));
    const descriptor = fs.openSync(folder, 'r');
    const [file, inner] = ['file', 'folder'].map((name) => statusAt(descriptor, Buffer.from(name)));
    fs.closeSync(descriptor);
    fs.rmSync(folder, { recursive: true });
    assert.ok(file !== undefined && inner !== undefined);
    const sha256 = '0'.repeat(64);
    assert.deepEqual([isSame(file, factsOf(file, sha256)), isSame(inner, factsOf(inner, ''))], [true, true]);
    assert.deepEqual([isSame(file, factsOf(file, '')), isSame(inner, factsOf(inner, sha256))], [false, false]);
    assert.equal(isSame(file, factsOf(inner, sha256)), false);
  });
});
