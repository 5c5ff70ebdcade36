import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import type { OperationSuccess } from '../../../helpers/protocol/operations.ts';
import { Bench, memoryFolder, newRun, sha256 } from './bench.ts';

const timed = async (where: Bench): Promise<number> => {
  const run = newRun();
  const start = performance.now();
  await where.done('file.write', { path: 'dir/a.txt', content: 'beta', overwrite: true }, { run });
  const ms = performance.now() - start;
  await where.handlers['workspace.discard']({ run });
  return ms;
};

const median = (values: number[]): number => values.toSorted((one, two) => one - two)[values.length >> 1] ?? 0;

describe('workspace at size', function () {
  this.timeout(60_000);
  let bench: Bench;

  beforeEach(() => {
    bench = new Bench(memoryFolder());
  });
  afterEach(() => bench.remove());

  it('N-515 ten thousand entries are paged in byte order, none lost or doubled, while the draft adds and removes some', async () => {
    fs.mkdirSync(bench.at('many'));
    for (let index = 0; index < 10_000; index += 1) fs.writeFileSync(bench.at('many', `${index}`), '');
    await bench.done('file.write', { path: 'many/é', content: 'x' });
    await bench.done('file.delete', { path: 'many/500' });
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page: OperationSuccess<'file.list'> = await bench.done(
        'file.list',
        cursor ? { path: 'many', cursor } : { path: 'many' },
      );
      assert.equal(page.truncated, page.cursor !== undefined);
      names.push(...page.entries.map(({ name }) => name));
      cursor = page.cursor;
    } while (cursor !== undefined);
    const expected = [...fs.readdirSync(bench.at('many')).filter((name) => name !== '500'), 'é'].map((name) =>
      Buffer.from(name),
    );
    assert.deepEqual(names, expected.toSorted((one, two) => Buffer.compare(one, two)).map(String));
  });

  it('long names fill a page by bytes, and the next page goes on', async () => {
    bench.put(
      Object.fromEntries(
        Array.from({ length: 100 }, (_, index) => [`dir/${String(index).padStart(3, '0')}${'\\'.repeat(240)}`, '']),
      ),
    );
    let count = 0;
    let cursor: string | undefined;
    do {
      const page: OperationSuccess<'file.list'> = await bench.done(
        'file.list',
        cursor ? { path: 'dir', cursor } : { path: 'dir' },
      );
      assert.ok(JSON.stringify(page).length <= 65_536);
      count += page.entries.length;
      cursor = page.cursor;
    } while (cursor !== undefined);
    assert.equal(count, 100);
  });

  it('N-514 a file of fifty megabytes and a binary one are put together again from ranges, with size and digest', async () => {
    const text = Buffer.from('zwölf Boxkämpfer jagen Viktor 🦕 quer über den Sylter Deich\n'.repeat(800_000)).subarray(
      0,
      50_000_000,
    );
    const binary = Buffer.alloc(1_000_003);
    for (let at = 0; at < binary.length; at += 1) binary[at] = (at * 31) ^ (at >> 3);
    bench.put({ text, binary });
    fs.utimesSync(bench.at('text'), 1, 1);
    const files = [
      ['text', text, 262_144, 'utf8'],
      ['binary', binary, 100_000, 'base64'],
    ] as const;
    for (const [name, content, maxBytes, encoding] of files) {
      const pieces: Buffer[] = [];
      const whole = sha256(content);
      for (let offset = 0; offset < content.length;) {
        const piece = await bench.done('file.read', { path: name, offset, maxBytes });
        assert.deepEqual([piece.totalBytes, piece.sha256], [content.length, whole]);
        if (piece.truncated) assert.equal(piece.encoding, encoding);
        const bytes = Buffer.from(piece.content, piece.encoding);
        assert.equal(bytes.length, piece.byteCount);
        pieces.push(bytes);
        offset += piece.byteCount;
      }
      assert.ok(Buffer.concat(pieces).equals(content), name);
    }
  });

  it('a large file is appended to and moved in the pool', async () => {
    const content = Buffer.alloc(3_000_000, 'content ');
    bench.put({ large: content });
    const appended = await bench.done('file.append', { path: 'large', content: 'end' });
    assert.equal(appended.sha256, sha256(Buffer.concat([content, Buffer.from('end')])));
    bench.put({ other: content });
    await bench.done('file.rename', { from: 'other', to: 'moved' });
    assert.equal((await bench.done('file.stat', { path: 'moved' })).sha256, sha256(content));
    const edits = [{ oldText: 'end', newText: 'END' }];
    await bench.done('file.patch', { path: 'large', expectedSha256: appended.sha256, edits });
    assert.equal((await bench.done('file.read', { path: 'large', offset: 3_000_000 })).content, 'END');
  });

  it('a file of 5 GB that no draft takes is refused before it is read, with the limit, and no draft is made', async () => {
    bench.put({ huge: 'begin' });
    fs.truncateSync(bench.at('huge'), 5_368_709_120);
    const began = performance.now();
    assert.match(await bench.fails('DRAFT_LIMIT', 'file.append', { path: 'huge', content: 'x' }), /134217728/);
    assert.ok(performance.now() - began < 1000, 'five gigabytes take longer to read');
    assert.deepEqual(fs.readdirSync(bench.draftsPath), []);
  });

  it('a draft takes twenty thousand changed paths, which one review pages through, and refuses one more by name', async () => {
    fs.mkdirSync(bench.at('many'));
    for (let index = 0; index < 19_999; index += 1) fs.writeFileSync(bench.at('many', `${index}`), '');
    const before = bench.treeDigest();
    assert.match(await bench.fails('DRAFT_LIMIT', 'file.rename', { from: 'many', to: 'more' }), /20000/);
    assert.equal((await bench.done('workspace.review', {})).changeCount, 0);
    await bench.done('file.delete', { path: 'many', recursive: true });
    assert.match(await bench.fails('DRAFT_LIMIT', 'file.write', { path: 'one', content: '' }), /20001 .* 20000/);
    const paths: string[] = [];
    const began = performance.now();
    for (let cursor: string | undefined = '0'; cursor !== undefined;) {
      const page: OperationSuccess<'workspace.review'> = await bench.done('workspace.review', { cursor });
      paths.push(...page.changes.map(({ path: changed }) => changed));
      ({ cursor } = page);
    }
    assert.equal(new Set(paths).size, 20_000);
    assert.ok(performance.now() - began < 15_000, `${performance.now() - began} ms: each page seals the draft anew`);
    assert.equal((await bench.handlers['workspace.drafts']({})).drafts[0]?.changeCount, 20_000);
    assert.equal(bench.treeDigest(), before);
  });

  it('what a text that compares badly costs an edit grows with the file alone', async () => {
    const content = 'a'.repeat(4_000_000);
    bench.put({ bad: content });
    const start = performance.now();
    const edits = [{ oldText: `${'a'.repeat(30_000)}b`, newText: 'x' }];
    await bench.fails('PATCH_CONFLICT', 'file.patch', { path: 'bad', expectedSha256: sha256(content), edits });
    assert.ok(performance.now() - start < 3_000, `${performance.now() - start} ms`);
  });

  it('the first write costs the same in a tree of twenty thousand files as in one of ten, in time and on disk', async () => {
    const small = new Bench(memoryFolder());
    small.put({ 'dir/a.txt': 'alpha' });
    for (let folder = 0; folder < 200; folder += 1) {
      fs.mkdirSync(bench.at('dir', `${folder}`), { recursive: true });
      for (let file = 0; file < 100; file += 1) fs.writeFileSync(bench.at('dir', `${folder}`, `${file}`), 'x');
    }
    bench.put({ 'dir/a.txt': 'alpha' });
    const ratios: number[] = [];
    const times: number[] = [];
    await timed(small);
    await timed(bench);
    for (let pair = 0; pair < 41; pair += 1) {
      const base = await timed(small);
      const large = await timed(bench);
      ratios.push(large / base);
      times.push(large);
    }
    // the budget of 1.2 is measured by the benchmark on a quiet machine; here two processors are shared with other tests
    assert.ok(median(ratios) < 1.5, `ratio ${median(ratios)}`);
    assert.ok(median(times) < 1_000, `${median(times)} ms`);
    await bench.done('file.write', { path: 'dir/a.txt', content: 'beta', overwrite: true });
    const bytes = fs
      .readdirSync(bench.draftsPath, { recursive: true, encoding: 'utf8' })
      .reduce((sum, name) => sum + fs.statSync(path.join(bench.draftsPath, name)).size, 0);
    assert.ok(bytes < 1_048_576, `${bytes} bytes`);
    await small.remove();
  });
});
