import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { checkApart, checkRoot, RootRefused, rootIdentity } from '../../../helpers/files/root.ts';
import { chainOf, forbiddenChains, overlapOf } from '../../../helpers/runtime/folder-chains.ts';
import { skipBecause } from '../../skip.ts';

describe('the root', () => {
  let folder: string;
  const descriptors: number[] = [];
  const open = (name: string): number => {
    const descriptor = fs.openSync(path.join(folder, name), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    descriptors.push(descriptor);
    return descriptor;
  };

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'root-'));
    fs.mkdirSync(path.join(folder, 'one/inner/deep'), { recursive: true });
    fs.mkdirSync(path.join(folder, 'two'));
  });
  afterEach(() => {
    for (const descriptor of descriptors.splice(0)) fs.closeSync(descriptor);
    fs.rmSync(folder, { recursive: true });
  });

  it('the identity is the folder: the same through another descriptor, a rename and new content, another in its place', () => {
    const identity = rootIdentity(open('one'));
    assert.equal(identity.length, 32);
    fs.renameSync(path.join(folder, 'one'), path.join(folder, 'moved'));
    fs.writeFileSync(path.join(folder, 'moved/file'), 'x');
    assert.deepEqual(rootIdentity(open('moved')), identity);
    fs.mkdirSync(path.join(folder, 'one'));
    assert.notDeepEqual(rootIdentity(open('one')), identity);
  });

  it('overlaps are seen along both chains, whatever the names', () => {
    const [one, inner, two] = [open('one'), open('one/inner'), open('two')].map((folder) => chainOf(folder).folders);
    assert.ok(one && inner && two);
    assert.equal(overlapOf(one, one), 'equal');
    assert.equal(overlapOf(one, inner), 'contains');
    assert.equal(overlapOf(inner, one), 'below');
    assert.equal(overlapOf(one, two), 'apart');
    assert.throws(() => checkApart(open('one'), [inner]), RootRefused);
    assert.throws(() => checkApart(open('one/inner/deep'), [inner]), RootRefused);
    checkApart(open('two'), [inner]);
  });

  it('the whole machine is no root', () => {
    const top = fs.openSync('/', 'r');
    descriptors.push(top);
    assert.throws(
      () => checkApart(top, []),
      (error) => error instanceof RootRefused && error.reason === 'whole-machine',
    );
  });

  it('a bind mount does not hide an overlap', function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'root, to mount');
    if (spawnSync('mount', ['--bind', path.join(folder, 'one'), path.join(folder, 'two')]).status !== 0)
      skipBecause(this, 'the right to mount');
    try {
      const mounted = open('two');
      assert.throws(() => checkApart(mounted, [chainOf(open('one/inner')).folders]), RootRefused);
    } finally {
      for (const descriptor of descriptors.splice(0)) fs.closeSync(descriptor);
      spawnSync('umount', [path.join(folder, 'two')]);
    }
  });

  it('a deleted root is no root', () => {
    const two = open('two');
    checkRoot(two);
    fs.rmdirSync(path.join(folder, 'two'));
    assert.throws(
      () => checkRoot(two),
      (error) => error instanceof RootRefused && error.reason === 'deleted',
    );
  });

  it('folders of the executor are read as stat numbers them', () => {
    const chain = [path.join(folder, 'one'), folder].map((name) => {
      const { dev, ino } = fs.statSync(name, { bigint: true });
      return `${dev}:${ino}`;
    });
    const [parsed] = forbiddenChains(chain.join('/'));
    assert.deepEqual(parsed, chainOf(open('one')).folders.slice(0, 2));
    assert.deepEqual(forbiddenChains(''), []);
    assert.throws(() => forbiddenChains('1:x'), SyntaxError);
  });
});
