import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';

import type { OperationKey } from '../../../helpers/protocol/operations.ts';
import { skipBecause } from '../../skip.ts';
import { Bench } from './bench.ts';

/** One call of every operation that takes a path, aimed at a path. */
const aimedAt = (target: string): readonly (readonly [OperationKey, unknown])[] => [
  ['file.list', { path: target }],
  ['file.stat', { path: target }],
  ['file.read', { path: target }],
  ['file.search', { query: 'x', path: target }],
  ['file.write', { path: target, content: 'x', overwrite: true, createParents: true }],
  ['file.append', { path: target, content: 'x' }],
  ['file.patch', { path: target, expectedSha256: '0'.repeat(64), edits: [{ oldText: 'a', newText: 'b' }] }],
  ['file.delete', { path: target, recursive: true }],
  ['file.rename', { from: target, to: 'elsewhere' }],
  ['file.rename', { from: 'a.txt', to: target }],
  ['file.mkdir', { path: target, createParents: true }],
  ['file.chmod', { path: target, executable: true }],
];

describe('workspace boundaries', () => {
  let bench: Bench;
  let before: string;

  beforeEach(() => {
    bench = new Bench();
    bench.put({ 'a.txt': 'alpha', 'dir/file': 'content', '../outside/file': 'SECRET' });
  });
  afterEach(async () => {
    assert.equal(bench.treeDigest(), before);
    await bench.remove();
  });
  const settle = (): void => {
    before = bench.treeDigest();
  };

  it('N-131 every operation refuses traversal, absolute, drive, share and device forms', async () => {
    settle();
    for (const target of [
      '../outside/file',
      'dir/../../outside',
      '/etc/passwd',
      'C:\\x',
      '\\\\s\\share',
      '\\\\.\\disk',
      'dir//file',
      'a\0b',
    ]) {
      for (const [operation, args] of aimedAt(target)) {
        const message = await bench.fails('WORKSPACE_DENIED', operation, args);
        assert.ok(message.length > 10, operation);
      }
    }
  });

  it('a link in any place of a path is refused by every operation, and shown as a link', async () => {
    fs.symlinkSync(path.join(bench.folder, 'outside'), bench.at('out'));
    fs.symlinkSync('../dir/file', bench.at('dir/climbs'));
    fs.symlinkSync('file', bench.at('dir/inner'));
    fs.symlinkSync('../../outside/file', bench.at('dir/escapes'));
    settle();
    for (const target of ['out/file', 'dir/inner/x']) {
      for (const [operation, args] of aimedAt(target))
        assert.match(await bench.fails('WORKSPACE_DENIED', operation, args), /link/, operation);
    }
    for (const [operation, args] of aimedAt('dir/inner')) {
      if (operation === 'file.stat') continue;
      const answer = await bench.ask(operation, args);
      assert.equal(answer.success ? '' : answer.code, 'WORKSPACE_DENIED', `${operation} ${JSON.stringify(args)}`);
    }
    const { entries } = await bench.done('file.list', { path: 'dir' });
    assert.deepEqual(
      entries.map(({ name, kind, target }) => [name, kind, target]),
      [
        ['climbs', 'link', '../dir/file'],
        ['escapes', 'link', undefined],
        ['file', 'file', undefined],
        ['inner', 'link', 'file'],
      ],
    );
    assert.equal(
      (await bench.done('file.stat', { path: 'out' })).target,
      undefined,
      'an absolute target is a host path',
    );
    assert.match(
      await bench.fails('WORKSPACE_DENIED', 'file.delete', { path: 'dir', recursive: true }),
      /dir\/(climbs|escapes|inner)/,
    );
    assert.equal(await bench.text('dir/file'), 'content', 'a tree with links is not refused');
  });

  it('no operation enters another file system', async function () {
    fs.mkdirSync(bench.at('mounted'));
    settle();
    if (process.getuid?.() !== 0) skipBecause(this, 'root, to mount');
    const outside = path.join(bench.folder, 'outside');
    if (spawnSync('mount', ['--bind', outside, bench.at('mounted')]).status !== 0)
      skipBecause(this, 'the right to mount');
    try {
      for (const [operation, args] of aimedAt('mounted/file'))
        assert.match(await bench.fails('WORKSPACE_DENIED', operation, args), /file system/);
      const { entries } = await bench.done('file.list', {});
      assert.deepEqual(
        entries.map(({ name, kind }) => [name, kind]),
        [
          ['a.txt', 'file'],
          ['dir', 'directory'],
          ['mounted', 'other'],
        ],
      );
      const { matches } = await bench.done('file.search', { query: 'SECRET' });
      assert.deepEqual(matches, []);
      assert.equal(fs.readFileSync(bench.at('mounted/file'), 'utf8'), 'SECRET', 'a plain open enters it');
    } finally {
      spawnSync('umount', [bench.at('mounted')]);
      settle();
    }
  });

  it('N-525 what the owner ignores is invisible to every operation, by exact path too', async () => {
    bench.put({ 'secret/key': 'MARKER', 'deep/.env': 'MARKER', 'deep/ok': 'fine', 'only-folder/x': 'MARKER' });
    settle();
    const ignore = ['secret', '.env', 'only-folder/'];
    const options = { ignore };
    const reads = new Set([
      'file.list',
      'file.stat',
      'file.read',
      'file.search',
      'file.append',
      'file.patch',
      'file.delete',
      'file.chmod',
    ]);
    for (const target of ['secret', 'secret/key', 'deep/.env', 'only-folder', 'only-folder/x', 'secret/absent']) {
      for (const [operation, args] of aimedAt(target)) {
        const absent = await bench.ask(operation, args, options);
        assert.ok(!absent.success, `${operation} ${target} ${JSON.stringify(absent)}`);
        if (reads.has(operation)) assert.ok(!/MARKER/.test(JSON.stringify(absent)));
      }
      assert.equal(
        await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: target }, options),
        'there is nothing at this path',
      );
    }
    assert.deepEqual(await bench.names('.', options), ['a.txt', 'deep', 'dir']);
    assert.deepEqual(await bench.names('deep', options), ['ok']);
    for (const where of ['content', 'names']) {
      for (const query of ['MARKER', 'key', 'env', 'secret', 'only']) {
        assert.deepEqual((await bench.done('file.search', { query, in: where }, options)).matches, []);
      }
    }
    assert.equal(
      (await bench.done('file.search', { query: 'MARKER' })).matches.length,
      3,
      'without the rules they are found',
    );
    assert.match(
      await bench.fails('WORKSPACE_DENIED', 'file.delete', { path: 'deep', recursive: true }, options),
      /kept out/,
    );
    assert.equal((await bench.done('workspace.review', {}, options)).changeCount, 0);
  });

  it('a change at a path that the owner came to ignore is not reviewed without a word', async () => {
    settle();
    await bench.done('file.write', { path: 'late', content: 'x' });
    assert.match(
      await bench.fails('WORKSPACE_DENIED', 'workspace.review', {}, { ignore: ['late'] }),
      /1 of the changes/,
    );
    assert.equal((await bench.done('workspace.review', {})).changeCount, 1);
  });

  it('names that the product uses itself are hidden from every operation', async () => {
    bench.put({ '.nessie-stage-1/file': 'MARKER' });
    settle();
    for (const target of ['.nessie-stage-1', '.nessie-stage-1/file', '.nessie-stage-2']) {
      for (const [operation, args] of aimedAt(target))
        assert.ok(!(await bench.ask(operation, args)).success, operation);
    }
    assert.deepEqual(await bench.names(), ['a.txt', 'dir']);
    assert.deepEqual((await bench.done('file.search', { query: 'MARKER' })).matches, []);
  });

  it('N-524 a hard-linked file is separated in the draft: its other names keep the old content', async () => {
    fs.linkSync(bench.at('a.txt'), bench.at('linked'));
    settle();
    await bench.done('file.append', { path: 'linked', content: '+' });
    assert.equal(await bench.text('linked'), 'alpha+');
    assert.equal(await bench.text('a.txt'), 'alpha');
    assert.equal(fs.statSync(bench.at('a.txt')).nlink, 2);
  });

  it('N-132 a root that was moved, replaced by a link, a file, a folder or a mount, or deleted is refused', async function () {
    settle();
    const aside = `${bench.rootPath}.aside`;
    const isRefused = async (what: string): Promise<void> => {
      assert.match(await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'a.txt' }), /root/, what);
      const reply = await bench.handlers['workspace.root']({});
      assert.equal(reply.changed, true, what);
    };
    fs.renameSync(bench.rootPath, aside);
    await isRefused('moved');
    fs.symlinkSync(aside, bench.rootPath);
    await isRefused('link');
    fs.unlinkSync(bench.rootPath);
    fs.writeFileSync(bench.rootPath, '');
    await isRefused('file');
    fs.unlinkSync(bench.rootPath);
    fs.mkdirSync(bench.rootPath);
    await isRefused('another folder');
    fs.rmdirSync(bench.rootPath);
    fs.renameSync(aside, bench.rootPath);
    assert.equal(await bench.text('a.txt'), 'alpha');
    if (spawnSync('mount', ['--bind', path.join(bench.folder, 'outside'), bench.rootPath]).status === 0) {
      await isRefused('mount');
      spawnSync('umount', [bench.rootPath]);
    }
    assert.equal((await bench.handlers['workspace.root']({})).changed, false);
  });

  it('a root that overlaps the drafts is refused', async () => {
    settle();
    const inner = new Bench();
    const drafts = inner.at('state');
    fs.mkdirSync(drafts);
    const { makeHandlers, makeServices } = await import('../../../helpers/workspace/handlers.ts');
    const [root, below] = [inner.rootPath, drafts].map((folder) => fs.openSync(folder, 'r'));
    assert.ok(root && below);
    const handlers = makeHandlers(makeServices({ root, drafts: below, forbiddenFolders: '', tasks: { filename: '' } }));
    await assert.rejects(handlers['workspace.root']({}), { code: 'ROOT_OVERLAPS' });
    const forbidden = fs.statSync(inner.folder, { bigint: true });
    const folders = `${forbidden.dev}:${forbidden.ino}`;
    const [away, apart] = [inner.rootPath, inner.draftsPath].map((folder) => fs.openSync(folder, 'r'));
    assert.ok(away && apart);
    const below2 = makeHandlers(
      makeServices({ root: away, drafts: apart, forbiddenFolders: folders, tasks: { filename: '' } }),
    );
    await assert.rejects(below2['workspace.root']({}), { code: 'ROOT_OVERLAPS' });
    for (const descriptor of [root, below, away, apart]) fs.closeSync(descriptor);
    await inner.remove();
  });

  it('no operation of three seconds against a swapping process leaves the root', async function () {
    this.timeout(20_000);
    bench.put({ 'dir/sub/file': 'inside', '../outside/sub/file': 'SECRET' });
    const script = path.resolve(import.meta.dirname, '../../fixtures/swapping-racer.mjs');
    const racer = spawn(process.execPath, [script, bench.at('dir/sub'), path.join(bench.folder, 'outside')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (racer.stdout) await once(racer.stdout, 'data');
    const until = performance.now() + 3_000;
    const outcomes = new Map<string, number>();
    while (performance.now() < until) {
      const answer = await bench.ask('file.read', { path: 'dir/sub/file' });
      const outcome = 'content' in answer ? answer.content : answer.success ? '' : answer.code;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      const appended = await bench.ask('file.append', { path: 'dir/sub/file', content: '+' });
      if (appended.success) {
        assert.match(await bench.text('dir/sub/file').catch(() => 'inside+'), /^inside\++$/);
        await bench.handlers['workspace.discard']({ run: bench.run });
      }
    }
    racer.kill('SIGKILL');
    await once(racer, 'exit');
    assert.equal(outcomes.get('SECRET'), undefined);
    assert.ok((outcomes.get('inside') ?? 0) > 0 && outcomes.size > 1, JSON.stringify([...outcomes]));
    settle();
  });

  it('reading leaves not even the time of the last access behind, and a plain read does', async function () {
    const files = ['a.txt', 'dir', 'dir/file'].map((name) => bench.at(name));
    for (const file of files) fs.utimesSync(file, 1, 2);
    const times = (): bigint[] => files.map((file) => fs.statSync(file, { bigint: true }).atimeNs);
    const old = times();
    await bench.text('dir/file');
    await bench.names('dir');
    await bench.done('file.search', { query: 'content' });
    await bench.done('file.stat', { path: 'a.txt' });
    await bench.done('file.append', { path: 'a.txt', content: 'x' });
    await bench.done('file.rename', { from: 'dir', to: 'moved' });
    await bench.done('workspace.review', {});
    assert.deepEqual(times(), old);
    settle();
    fs.readFileSync(bench.at('a.txt'));
    if (times()[0] === old[0]) skipBecause(this, 'a file system that keeps access times');
  });

  it('a tree deeper than any path is searched as far as paths reach, and listed', async function () {
    this.timeout(60_000);
    let depth = 0;
    const top = process.cwd();
    process.chdir(bench.rootPath);
    for (; depth < 2_100; depth += 1) {
      fs.mkdirSync('d');
      process.chdir('d');
    }
    fs.writeFileSync('needle', '');
    process.chdir(top);
    try {
      const { matches, stopped } = await bench.done('file.search', {
        query: 'd',
        in: 'names',
        path: 'd',
        maxMatches: 200,
      });
      assert.deepEqual([matches.length, stopped], [200, 'matches']);
      assert.equal((await bench.done('file.search', { query: 'needle', in: 'names' })).stopped, 'complete');
      assert.match(await bench.fails('WORKSPACE_DENIED', 'file.delete', { path: 'd', recursive: true }), /too long/);
    } finally {
      spawnSync('rm', ['-rf', bench.at('d')]);
      settle();
    }
  });
});
