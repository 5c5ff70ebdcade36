import assert from 'node:assert/strict';
import fs from 'node:fs';

import { workspaceBundle, type OperationKey } from '../../../helpers/protocol/operations.ts';
import { Bench, newRun, sha256 } from './bench.ts';

const edit = (oldText: string, newText: string): unknown => ({ oldText, newText });

const openDescriptors = (): number => fs.readdirSync('/proc/self/fd').length;

describe('workspace operations', () => {
  let bench: Bench;
  let before: string;

  beforeEach(() => {
    bench = new Bench();
    bench.put({
      'a.txt': 'alpha\n',
      'src/main.ts': 'one\ntwo\nthree\n',
      'src/deep/leaf.txt': 'leaf',
      'run.sh': '#!/bin/sh\n',
    });
    fs.chmodSync(bench.at('run.sh'), 0o644);
    before = bench.treeDigest();
  });
  afterEach(async () => {
    assert.equal(bench.treeDigest(), before, 'the real root is as it was');
    await bench.remove();
  });

  describe('file.list and file.stat', () => {
    it('a folder is listed in byte order with kind, size, time and mode', async () => {
      const { entries, truncated, path } = await bench.done('file.list', {});
      assert.equal(path, '.');
      assert.equal(truncated, false);
      assert.deepEqual(
        entries.map(({ name, kind, bytes }) => [name, kind, bytes]),
        [
          ['a.txt', 'file', 6],
          ['run.sh', 'file', 10],
          ['src', 'directory', 0],
        ],
      );
      assert.equal(entries[0]?.modifiedMs, Math.floor(fs.statSync(bench.at('a.txt')).mtimeMs));
      assert.equal(entries[1]?.mode, '644');
    });

    it('N-135 later reads and listings of the run see its draft, and another run sees the original', async () => {
      await bench.done('file.write', { path: 'src/new.ts', content: 'x' });
      await bench.done('file.delete', { path: 'src/main.ts' });
      assert.deepEqual(await bench.names('src'), ['deep', 'new.ts']);
      assert.equal(await bench.text('src/new.ts'), 'x');
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'src/main.ts' });
      assert.deepEqual(await bench.names('src', { run: newRun() }), ['deep', 'main.ts']);
      assert.equal(await bench.text('src/main.ts', { run: newRun() }), 'one\ntwo\nthree\n');
    });

    it('stat answers the same facts and the digest', async () => {
      const stat = await bench.done('file.stat', { path: 'a.txt' });
      assert.equal(stat.sha256, sha256('alpha\n'));
      assert.equal(stat.kind, 'file');
      assert.equal((await bench.done('file.stat', { path: 'src' })).kind, 'directory');
      assert.equal((await bench.done('file.stat', { path: '.' })).kind, 'directory');
    });

    it('what is not there and what is no folder are told apart from what is denied', async () => {
      assert.match(await bench.fails('WORKSPACE_UNAVAILABLE', 'file.list', { path: 'none' }), /nothing/);
      assert.match(await bench.fails('WORKSPACE_UNAVAILABLE', 'file.list', { path: 'a.txt' }), /not a folder/);
      assert.match(await bench.fails('WORKSPACE_DENIED', 'file.list', { path: '../x' }), /"\.\."/);
      assert.match(await bench.fails('WORKSPACE_DENIED', 'file.list', { cursor: '!' }), /cursor/);
      assert.match(await bench.fails('WORKSPACE_UNAVAILABLE', 'file.stat', { path: 'a.txt/b' }), /not a folder/);
    });
  });

  describe('file.read', () => {
    it('text and its digest are read, from an offset too', async () => {
      const whole = await bench.done('file.read', { path: 'src/main.ts' });
      assert.equal(whole.content, 'one\ntwo\nthree\n');
      assert.deepEqual([whole.totalBytes, whole.truncated, whole.sha256], [14, false, sha256('one\ntwo\nthree\n')]);
      const part = await bench.done('file.read', { path: 'src/main.ts', offset: 4, maxBytes: 3 });
      assert.deepEqual([part.content, part.byteCount, part.truncated], ['two', 3, true]);
      const past = await bench.done('file.read', { path: 'src/main.ts', offset: 99 });
      assert.deepEqual([past.content, past.byteCount, past.truncated], ['', 0, false]);
    });

    it('folders and absent files are unavailable', async () => {
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'src' });
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'none' });
      await bench.fails('WORKSPACE_DENIED', 'file.read', { path: '/etc/passwd' });
    });
  });

  describe('file.write and file.append', () => {
    it('a new file lands in the draft with the mode of new files, and folders only when asked for', async () => {
      const message = await bench.fails('WORKSPACE_UNAVAILABLE', 'file.write', { path: 'x/y/z.txt', content: 'z' });
      assert.match(message, /createParents/);
      const written = await bench.done('file.write', { path: 'x/y/z.txt', content: 'zoë', createParents: true });
      assert.deepEqual([written.byteCount, written.sha256], [4, sha256('zoë')]);
      assert.equal(await bench.text('x/y/z.txt'), 'zoë');
      assert.equal((await bench.done('file.stat', { path: 'x/y/z.txt' })).mode, '644');
      assert.equal((await bench.done('file.stat', { path: 'x' })).mode, '755');
    });

    it('what is there is replaced only with overwrite, and a folder never', async () => {
      assert.match(await bench.fails('WORKSPACE_DENIED', 'file.write', { path: 'a.txt', content: 'b' }), /overwrite/);
      await bench.done('file.write', { path: 'a.txt', content: 'b', overwrite: true });
      assert.equal(await bench.text('a.txt'), 'b');
      await bench.fails('WORKSPACE_DENIED', 'file.write', { path: 'src', content: 'b', overwrite: true });
      await bench.fails('WORKSPACE_DENIED', 'file.write', { path: '.', content: 'b', overwrite: true });
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.write', { path: 'a.txt/x', content: 'b' });
    });

    it('writing back what was there is no change', async () => {
      await bench.done('file.write', { path: 'a.txt', content: 'other', overwrite: true });
      assert.equal((await bench.done('workspace.review', {})).changeCount, 1);
      await bench.done('file.write', { path: 'a.txt', content: 'alpha\n', overwrite: true });
      assert.equal((await bench.done('workspace.review', {})).changeCount, 0);
    });

    it('text is appended to a file of the root and of the draft, small and large', async () => {
      await bench.done('file.append', { path: 'a.txt', content: 'beta\n' });
      const again = await bench.done('file.append', { path: 'a.txt', content: 'gamma\n' });
      assert.equal(await bench.text('a.txt'), 'alpha\nbeta\ngamma\n');
      assert.equal(again.sha256, sha256('alpha\nbeta\ngamma\n'));
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.append', { path: 'none', content: 'x' });
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.append', { path: 'src', content: 'x' });
    });
  });

  describe('file.patch', () => {
    const file = 'src/main.ts';
    const patch = (expectedSha256: string, edits: unknown[]): unknown => ({ path: file, expectedSha256, edits });
    const current = sha256('one\ntwo\nthree\n');

    it('edits replace parts of the file that still has the expected digest', async () => {
      const done = await bench.done('file.patch', patch(current, [edit('three', '3'), edit('one', '1')]));
      assert.equal(await bench.text(file), '1\ntwo\n3\n');
      assert.equal(done.sha256, sha256('1\ntwo\n3\n'));
    });

    it('N-517 a stale digest, overlapping parts and other line ends are conflicts that name the place', async () => {
      const stale = await bench.fails('PATCH_STALE', 'file.patch', patch(sha256('old'), [edit('one', '1')]));
      assert.ok(stale.includes(current));
      const overlap = [edit('one\ntwo', 'x'), edit('two\nthree', 'y')];
      assert.match(
        await bench.fails('PATCH_CONFLICT', 'file.patch', patch(current, overlap)),
        /edits 1 and 2 overlap at line 2/,
      );
      assert.match(
        await bench.fails('PATCH_CONFLICT', 'file.patch', patch(current, [edit('e', 'x')])),
        /lines 1 and 3/,
      );
      assert.match(
        await bench.fails('PATCH_CONFLICT', 'file.patch', patch(current, [edit('none', 'x')])),
        /edit 1 is not in the file$/,
      );
      const crlf = [edit('one\r\ntwo', 'x')];
      assert.match(await bench.fails('PATCH_CONFLICT', 'file.patch', patch(current, crlf)), /LF alone/);
      await bench.done('file.write', { path: file, content: 'one\r\ntwo\r\n', overwrite: true });
      const lf = patch(sha256('one\r\ntwo\r\n'), [edit('one\ntwo', 'x')]);
      assert.match(await bench.fails('PATCH_CONFLICT', 'file.patch', lf), /CR LF/);
      await bench.done('file.patch', patch(sha256('one\r\ntwo\r\n'), [edit('one\r\n', '1\r\n')]));
      assert.equal(await bench.text(file), '1\r\ntwo\r\n');
    });
  });

  describe('file.delete, file.rename, file.mkdir, file.chmod', () => {
    it('a file and a folder are removed, the folder only when it is empty or the removal recursive', async () => {
      assert.match(await bench.fails('WORKSPACE_DENIED', 'file.delete', { path: 'src' }), /recursive/);
      assert.equal((await bench.done('file.delete', { path: 'src', recursive: true })).removed, 4);
      assert.deepEqual(await bench.names(), ['a.txt', 'run.sh']);
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.delete', { path: 'src' });
      await bench.fails('WORKSPACE_DENIED', 'file.delete', { path: '.', recursive: true });
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'src/main.ts' });
      const { changes } = await bench.done('workspace.review', {});
      assert.deepEqual(
        changes.map(({ path, kind, type }) => `${kind} ${type} ${path}`),
        [
          'deleted directory src',
          'deleted directory src/deep',
          'deleted file src/deep/leaf.txt',
          'deleted file src/main.ts',
        ],
      );
    });

    it('a removed folder that is made again is empty, and what the draft had made is gone without a trace', async () => {
      await bench.done('file.write', { path: 'n/x', content: 'x', createParents: true });
      await bench.done('file.delete', { path: 'n', recursive: true });
      assert.equal((await bench.done('workspace.review', {})).changeCount, 0);
      await bench.done('file.delete', { path: 'src', recursive: true });
      await bench.done('file.mkdir', { path: 'src' });
      assert.deepEqual(await bench.names('src'), []);
      assert.equal((await bench.done('workspace.review', {})).changeCount, 3);
    });

    it('a file takes the place of a folder and back, as one deletion and one creation', async () => {
      await bench.done('file.delete', { path: 'src', recursive: true });
      await bench.done('file.write', { path: 'src', content: 'now a file' });
      assert.equal(await bench.text('src'), 'now a file');
      const { changes } = await bench.done('workspace.review', {});
      assert.deepEqual(
        changes.filter(({ path }) => path === 'src').map(({ kind, type }) => `${kind} ${type}`),
        ['deleted directory', 'created file'],
      );
      await bench.done('file.delete', { path: 'a.txt' });
      await bench.done('file.write', { path: 'a.txt/inside', content: 'x', createParents: true });
      assert.equal(await bench.text('a.txt/inside'), 'x');
      assert.deepEqual(await bench.names('a.txt'), ['inside']);
    });

    it('files and folders move with their content and mode, a case-only rename too, a folder never into itself', async () => {
      fs.chmodSync(bench.at('run.sh'), 0o755);
      before = bench.treeDigest();
      await bench.done('file.rename', { from: 'run.sh', to: 'RUN.sh' });
      assert.equal((await bench.done('file.stat', { path: 'RUN.sh' })).mode, '755');
      await bench.done('file.rename', { from: 'src', to: 'lib' });
      assert.equal(await bench.text('lib/deep/leaf.txt'), 'leaf');
      assert.deepEqual(await bench.names(), ['RUN.sh', 'a.txt', 'lib']);
      assert.match(
        await bench.fails('WORKSPACE_DENIED', 'file.rename', { from: 'lib', to: 'lib/deep/lib' }),
        /into itself/,
      );
      await bench.fails('WORKSPACE_DENIED', 'file.rename', { from: 'lib', to: 'lib' });
      await bench.fails('WORKSPACE_DENIED', 'file.rename', { from: 'lib', to: 'a.txt' });
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.rename', { from: 'none', to: 'x' });
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.rename', { from: 'a.txt', to: 'none/x' });
      await bench.done('file.rename', { from: 'lib', to: 'src' });
      await bench.done('file.rename', { from: 'RUN.sh', to: 'run.sh' });
      assert.equal((await bench.done('workspace.review', {})).changeCount, 0, 'everything is back');
    });

    it('a folder is made, and again only as a parent', async () => {
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.mkdir', { path: 'x/y' });
      await bench.done('file.mkdir', { path: 'x/y', createParents: true });
      await bench.done('file.mkdir', { path: 'x/y', createParents: true });
      await bench.fails('WORKSPACE_DENIED', 'file.mkdir', { path: 'x/y' });
      await bench.fails('WORKSPACE_DENIED', 'file.mkdir', { path: 'a.txt', createParents: true });
    });

    it('the executable bit is set and cleared, on files alone, and shows in review', async () => {
      assert.equal((await bench.done('file.chmod', { path: 'run.sh', executable: true })).mode, '755');
      assert.equal((await bench.done('file.stat', { path: 'run.sh' })).mode, '755');
      assert.equal(await bench.text('run.sh'), '#!/bin/sh\n');
      const { changes } = await bench.done('workspace.review', {});
      assert.deepEqual(
        changes.map(({ path, kind }) => [path, kind]),
        [['run.sh', 'modified']],
      );
      await bench.done('file.append', { path: 'run.sh', content: 'echo\n' });
      assert.equal((await bench.done('file.stat', { path: 'run.sh' })).mode, '755');
      assert.equal((await bench.done('file.chmod', { path: 'run.sh', executable: false })).mode, '644');
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.chmod', { path: 'src', executable: true });
      await bench.fails('WORKSPACE_UNAVAILABLE', 'file.chmod', { path: 'none', executable: true });
    });
  });

  it('arguments that the schema does not know are denied with the argument named', async () => {
    assert.match(await bench.fails('WORKSPACE_DENIED', 'file.read', { path: 'a.txt', maxBytes: 262_145 }), /maxBytes/);
    assert.match(await bench.fails('WORKSPACE_DENIED', 'file.read', { path: 'a.txt', more: 1 }), /more/);
    await bench.fails('WORKSPACE_DENIED', 'sandbox.stop', {});
  });

  it('a cancelled operation and one that is out of time end with their own codes', async () => {
    fs.writeFileSync(bench.at('big.bin'), Buffer.alloc(200 * 1024 * 1024));
    before = bench.treeDigest();
    const running = bench.ask('file.stat', { path: 'big.bin' }, { call: 'one' });
    setImmediate(() => void bench.handlers['workspace.cancel']({ call: 'one' }));
    const answer = await running;
    assert.equal(answer.success ? '' : answer.code, 'CANCELLED');
    await bench.fails('EXPIRED', 'file.stat', { path: 'big.bin' }, { withinMs: 5 });
  });

  it('no descriptor is left open, whatever an operation ends with', async () => {
    fs.symlinkSync('a.txt', bench.at('link'));
    before = bench.treeDigest();
    await bench.done('file.search', { query: 'alpha' });
    const was = openDescriptors();
    for (let round = 0; round < 20; round += 1) {
      for (const path of ['a.txt', 'src', 'none', 'link', 'link/x', 'a.txt/x', '../x', 'src/deep/leaf.txt']) {
        await bench.ask('file.list', { path });
        await bench.ask('file.stat', { path });
        await bench.ask('file.read', { path });
        await bench.ask('file.search', { query: 'e', path });
        await bench.ask('file.append', { path, content: 'x' });
        await bench.ask('file.chmod', { path, executable: round % 2 === 0 });
        await bench.ask('file.rename', { from: path, to: 'moved' });
        await bench.ask('file.delete', { path, recursive: true });
        await bench.ask('workspace.review', {});
      }
      await bench.handlers['workspace.discard']({ run: bench.run });
    }
    assert.equal(openDescriptors(), was);
  });

  it('N-133 the tree digest of the real root is equal before and after every agent operation', async () => {
    const digest = sha256('alpha\n');
    const calls: readonly (readonly [OperationKey, unknown])[] = [
      ['file.list', {}],
      ['file.stat', { path: 'a.txt' }],
      ['file.read', { path: 'a.txt' }],
      ['file.search', { query: 'alpha' }],
      ['file.patch', { path: 'a.txt', expectedSha256: digest, edits: [{ oldText: 'alpha', newText: 'ALPHA' }] }],
      ['file.append', { path: 'a.txt', content: 'more' }],
      ['file.write', { path: 'a.txt', content: 'other', overwrite: true }],
      ['file.chmod', { path: 'run.sh', executable: true }],
      ['file.mkdir', { path: 'made' }],
      ['file.rename', { from: 'src', to: 'made/src' }],
      ['file.delete', { path: 'made', recursive: true }],
      ['workspace.review', {}],
    ];
    const served = workspaceBundle.filter((key) => key !== 'sandbox.stop').toSorted();
    assert.deepEqual(calls.map(([operation]) => operation).toSorted(), served, 'no operation is left out');
    for (const [operation, args] of calls) {
      await bench.done(operation, args);
      assert.equal(bench.treeDigest(), before, operation);
    }
  });

  it('N-518 delete, rename, making a folder, appending and the executable bit work in the draft and show in review', async () => {
    await bench.done('file.delete', { path: 'src/deep/leaf.txt' });
    await bench.done('file.rename', { from: 'a.txt', to: 'A.txt' });
    await bench.done('file.mkdir', { path: 'made' });
    await bench.done('file.append', { path: 'src/main.ts', content: 'four\n' });
    await bench.done('file.chmod', { path: 'run.sh', executable: true });
    await bench.fails('WORKSPACE_DENIED', 'file.rename', { from: 'src', to: 'src/deep/src' });
    const { changes } = await bench.done('workspace.review', {});
    assert.deepEqual(
      changes.map(({ path, kind, type, byteCount }) => [path, kind, type, byteCount]),
      [
        ['A.txt', 'created', 'file', 6],
        ['a.txt', 'deleted', 'file', 6],
        ['made', 'created', 'directory', 0],
        ['run.sh', 'modified', 'file', 10],
        ['src/deep/leaf.txt', 'deleted', 'file', 4],
        ['src/main.ts', 'modified', 'file', 19],
      ],
    );
  });
});
