import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import {
  entriesIn,
  openFile,
  openFolder,
  parsePath,
  PathRefused,
  pathTextOf,
  splitPath,
  statusBelow,
  WalkRefused,
  type PathReason,
  type WalkReason,
} from '../../../helpers/files/walk.ts';
import { skipBecause } from '../../skip.ts';

const names = (text: string): Buffer[] => text.split('/').map((part) => Buffer.from(part));
const order = (list: Buffer[]): Buffer[] => list.toSorted((one, two) => Buffer.compare(one, two));
const pathRefusal = (reason: PathReason) => (error: unknown) => error instanceof PathRefused && error.reason === reason;
const walkRefusal = (reason: WalkReason) => (error: unknown) => error instanceof WalkRefused && error.reason === reason;

/** What an ordinary program does: look at each part, then open the path. */
function readNaively(folder: string): string {
  for (const part of ['dir', 'dir/sub', 'dir/sub/file']) {
    if (fs.lstatSync(path.join(folder, part)).isSymbolicLink()) throw new Error('link');
  }
  return fs.readFileSync(path.join(folder, 'dir/sub/file'), 'utf8');
}

function tryFor(
  ms: number,
  attempt: () => string,
  enough: (seen: Map<string, number>) => boolean,
): Map<string, number> {
  const seen = new Map<string, number>();
  const until = performance.now() + ms;
  while (performance.now() < until && !enough(seen)) {
    let outcome: string;
    try {
      outcome = attempt();
    } catch (error) {
      outcome = error instanceof WalkRefused ? error.reason : 'error';
    }
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
  }
  return seen;
}

describe('walk below a root', () => {
  let folder: string;
  let outside: string;
  let root: number;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'walk-'));
    outside = fs.mkdtempSync(path.join(os.tmpdir(), 'walk-outside-'));
    fs.mkdirSync(path.join(folder, 'dir/sub'), { recursive: true });
    fs.writeFileSync(path.join(folder, 'dir/sub/file'), 'inside');
    fs.mkdirSync(path.join(outside, 'sub'));
    fs.writeFileSync(path.join(outside, 'sub/file'), 'SECRET');
    fs.writeFileSync(path.join(outside, 'file'), 'SECRET');
    root = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  });
  afterEach(() => {
    fs.closeSync(root);
    fs.rmSync(folder, { recursive: true });
    fs.rmSync(outside, { recursive: true });
  });

  function read(at: Buffer[]): string {
    const { descriptor } = openFile(root, at);
    try {
      return fs.readFileSync(descriptor, 'utf8');
    } finally {
      fs.closeSync(descriptor);
    }
  }

  describe('path text', () => {
    const refused: readonly (readonly [string, PathReason])[] = [
      ['', 'empty'],
      ['/etc/passwd', 'absolute'],
      ['/', 'absolute'],
      ['//server/share/x', 'device'],
      ['\\\\server\\share', 'device'],
      ['\\\\?\\C:\\x', 'device'],
      ['\\\\.\\PhysicalDrive0', 'device'],
      ['C:\\Windows', 'drive'],
      ['c:/Windows', 'drive'],
      ['C:', 'drive'],
      ['..', 'parent'],
      ['../x', 'parent'],
      ['a/../b', 'parent'],
      ['a/..', 'parent'],
      ['./a', 'dot-part'],
      ['a/./b', 'dot-part'],
      ['a/.', 'dot-part'],
      ['a//b', 'empty-part'],
      ['a/', 'empty-part'],
      ['a\0b', 'nul'],
      ['a\\x00b', 'backslash'],
      ['a\\b', 'backslash'],
      ['..\\..\\x', 'backslash'],
      ['a\\x2f..', 'backslash'],
      ['\ud800', 'spelling'],
      ['n'.repeat(256), 'name-too-long'],
    ];
    for (const [text, reason] of refused) {
      it(`${JSON.stringify(text.slice(0, 24))} is refused: ${reason}`, () => {
        assert.throws(() => parsePath(text), pathRefusal(reason));
      });
    }

    it('names with two dots inside, other scripts, line ends and bytes that are not UTF-8 are names', () => {
      const legal = [
        'a..b',
        '...',
        '..a',
        'a b',
        'naïve',
        '文件',
        '🦕',
        ' ',
        '-rf',
        'a\nb',
        '\\\\',
        '\\xff\\xfe',
        'NUL',
        'con',
        'aux.c',
      ];
      for (const text of legal) assert.equal(pathTextOf(parsePath(text)), text);
      assert.deepEqual(parsePath('.'), []);
      assert.deepEqual(parsePath('\\xff'), [Buffer.from([0xff])]);
    });

    it('a path of bytes is cut into names, or refused as its text would be', () => {
      assert.deepEqual(splitPath(Buffer.from('a/b')), names('a/b'));
      assert.throws(() => splitPath(Buffer.from('a/../b')), pathRefusal('parent'));
      assert.throws(() => splitPath(Buffer.from('a\0')), pathRefusal('nul'));
    });
  });

  it('a link as first, middle or last part is refused, and a plain open follows it', () => {
    fs.symlinkSync(outside, path.join(folder, 'first'));
    fs.symlinkSync(path.join(outside, 'sub'), path.join(folder, 'dir/middle'));
    fs.symlinkSync(path.join(outside, 'file'), path.join(folder, 'dir/last'));
    fs.symlinkSync('sub/file', path.join(folder, 'dir/inner'));
    for (const text of ['first/file', 'dir/middle/file', 'dir/last', 'dir/inner']) {
      assert.throws(() => read(names(text)), walkRefusal('link'), text);
      assert.notEqual(fs.readFileSync(path.join(folder, text), 'utf8'), '');
    }
    assert.throws(() => openFolder(root, names('first')), walkRefusal('link'));
    assert.equal(fs.readFileSync(path.join(folder, 'first/file'), 'utf8'), 'SECRET');
  });

  it('names that are no names cannot climb either: the kernel refuses what parsing would', () => {
    assert.throws(() => read([Buffer.from('..'), Buffer.from('x')]), walkRefusal('mount'));
    assert.throws(() => read([Buffer.from('/etc/passwd')]), walkRefusal('mount'));
    assert.equal(fs.readFileSync(path.join(folder, '..', path.basename(outside), 'file'), 'utf8'), 'SECRET');
  });

  it('a magic link is refused, and a plain open follows it out', () => {
    const own = fs.openSync('/proc/self', fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    assert.throws(() => openFolder(own, names('cwd')), walkRefusal('link'));
    assert.throws(() => openFolder(own, names('root/etc')), walkRefusal('link'));
    assert.ok(fs.readdirSync('/proc/self/cwd').length > 0);
    fs.closeSync(own);
  });

  it('another mount is refused, a bind mount of the same file system too, and a plain open enters it', function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'root, to mount');
    fs.mkdirSync(path.join(folder, 'dir/mounted'));
    const bound = spawnSync('mount', ['--bind', outside, path.join(folder, 'dir/mounted')]);
    if (bound.status !== 0) skipBecause(this, 'the right to mount');
    try {
      assert.throws(() => read(names('dir/mounted/file')), walkRefusal('mount'));
      assert.throws(() => statusBelow(root, names('dir/mounted')), walkRefusal('mount'));
      assert.equal(fs.readFileSync(path.join(folder, 'dir/mounted/file'), 'utf8'), 'SECRET');
    } finally {
      spawnSync('umount', [path.join(folder, 'dir/mounted')]);
    }
  });

  it('pipes, sockets and devices are refused without being opened', function () {
    spawnSync('mkfifo', [path.join(folder, 'pipe')]);
    assert.throws(() => read(names('pipe')), walkRefusal('not-a-file'));
    assert.throws(() => read(names('dir')), walkRefusal('not-a-file'));
    if (spawnSync('mknod', [path.join(folder, 'device'), 'c', '1', '3']).status === 0) {
      assert.throws(() => read(names('device')), walkRefusal('not-a-file'));
    }
  });

  it('N-520 any name that the file system takes is listed and opened, in byte order', () => {
    const corpus = [
      'a..b',
      '..a',
      'naïve',
      '文件',
      '🦕',
      ' ',
      '-rf',
      'a\nb',
      '\\',
      'A',
      'a',
      'Z',
      'ß',
      '.hidden',
      'n'.repeat(255),
    ];
    const bytes = [...corpus.map((text) => Buffer.from(text)), Buffer.from([0xff, 0xfe]), Buffer.from([0x61, 0x80])];
    const prefix = Buffer.from(`${folder}/dir/sub/`);
    for (const name of bytes) fs.writeFileSync(Buffer.concat([prefix, name]), name);
    const sub = openFolder(root, names('dir/sub'));
    const listed = [...entriesIn(sub)].map(({ name }) => name).filter((name) => !name.equals(Buffer.from('file')));
    fs.closeSync(sub);
    assert.deepEqual(order(listed), order(bytes));
    for (const name of bytes) {
      const { descriptor } = openFile(root, [...names('dir/sub'), ...parsePath(pathTextOf([name]))]);
      assert.deepEqual(fs.readFileSync(descriptor), name);
      fs.closeSync(descriptor);
    }
  });

  describe('against a process that swaps a folder for a link', () => {
    let racer: ChildProcess;

    beforeEach(async () => {
      const script = path.resolve(import.meta.dirname, '../../fixtures/swapping-racer.mjs');
      racer = spawn(process.execPath, [script, path.join(folder, 'dir/sub'), path.join(outside, 'sub')], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      if (racer.stdout) await once(racer.stdout, 'data');
    });
    afterEach(async () => {
      racer.stdin?.end();
      racer.kill('SIGKILL');
      if (racer.exitCode === null && racer.signalCode === null) await once(racer, 'exit');
    });

    it('N-519 no read of five seconds leaves the root, and a walk that checks before it opens does', function () {
      this.timeout(40_000);
      const seen = tryFor(
        5_000,
        () => read(names('dir/sub/file')),
        () => false,
      );
      assert.equal(seen.get('SECRET'), undefined, 'escaped');
      assert.ok((seen.get('inside') ?? 0) > 0 && seen.size > 1, `the racer raced: ${JSON.stringify([...seen])}`);
      const naive = tryFor(
        30_000,
        () => readNaively(folder),
        (known) => known.has('SECRET'),
      );
      assert.ok(
        (naive.get('SECRET') ?? 0) > 0,
        `the attack works without the mechanism: ${JSON.stringify([...naive])}`,
      );
    });
  });
});
