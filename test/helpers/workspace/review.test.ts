import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

import nacl from 'tweetnacl';

import { manifestDigest, parseManifest, type Manifest } from '../../../helpers/files/manifest.ts';
import type { OperationSuccess } from '../../../helpers/protocol/operations.ts';
import { CAPABILITY, setAttribute } from '../../fakes/attributes.ts';
import { skipBecause } from '../../skip.ts';
import { Bench, newRun, sha256 } from './bench.ts';

describe('workspace.review and the difference', () => {
  let bench: Bench;

  beforeEach(() => {
    bench = new Bench();
    bench.put({ 'a.txt': 'alpha\n', 'gone.txt': 'MARKER\n', 'dir/file': 'content', bin: Buffer.from([0, 255, 1]) });
  });
  afterEach(() => bench.remove());

  it('paths, kinds, sizes and the digest are told, and no content', async () => {
    await bench.done('file.write', { path: 'new.txt', content: 'MARKER' });
    await bench.done('file.append', { path: 'a.txt', content: 'x' });
    await bench.done('file.delete', { path: 'gone.txt' });
    const review = await bench.done('workspace.review', {});
    assert.deepEqual(
      review.changes.map(({ path, kind, type, byteCount, hostChanged }) => [path, kind, type, byteCount, hostChanged]),
      [
        ['a.txt', 'modified', 'file', 7, false],
        ['gone.txt', 'deleted', 'file', 7, false],
        ['new.txt', 'created', 'file', 6, false],
      ],
    );
    assert.equal(review.rootIdentity.length, 64);
    assert.ok(!JSON.stringify(review).includes('MARKER'));
  });

  it('N-140 the digest covers run, path, kind and both contents, and not the order in which things were done', async () => {
    const digestAfter = async (
      run: ReturnType<typeof newRun>,
      calls: readonly (readonly ['file.write' | 'file.delete', object])[],
    ): Promise<string> => {
      for (const [operation, args] of calls) await bench.done(operation, args, { run });
      const { manifestDigest: digest } = await bench.done('workspace.review', {}, { run });
      await bench.handlers['workspace.discard']({ run });
      return digest;
    };
    const run = newRun();
    const one = ['file.write', { path: 'é', content: '1' }] as const;
    const two = ['file.write', { path: 'z', content: '2' }] as const;
    const same = await digestAfter(run, [one, two]);
    assert.equal(await digestAfter(run, [two, one]), same);
    assert.notEqual(await digestAfter(newRun(), [one, two]), same);
    assert.notEqual(await digestAfter(run, [one, ['file.write', { path: 'z', content: '3' }]]), same);
    assert.notEqual(await digestAfter(run, [one]), same);
    bench.put({ z: 'was here' });
    assert.notEqual(await digestAfter(run, [one, ['file.write', { path: 'z', content: '2', overwrite: true }]]), same);
  });

  it('what a changed file would not keep is told before anybody approves, to the page and on the terminal', async function () {
    const file = bench.at('a.txt');
    setAttribute(file, 'user.note', 'mine');
    const review = async (): Promise<string[] | undefined> => {
      const run = newRun();
      await bench.done('file.append', { path: 'a.txt', content: 'x' }, { run });
      await bench.done('file.delete', { path: 'gone.txt' }, { run });
      const { changes } = await bench.done('workspace.review', {}, { run });
      const shown = await bench.handlers['workspace.difference']({ run, change: 0, ignore: [] });
      assert.deepEqual(shown.lost, changes[0]?.lost);
      assert.equal(changes[1]?.lost, undefined);
      return changes[0]?.lost;
    };
    assert.deepEqual(await review(), undefined);
    if (spawnSync('chattr', ['+d', file]).status !== 0) skipBecause(this, 'chattr or a file system with its flags');
    assert.deepEqual(await review(), ['flag no dump']);
    if (process.getuid?.() !== 0) skipBecause(this, 'root alone gives a program capabilities');
    for (const name of ['a.txt', 'gone.txt']) setAttribute(bench.at(name), 'security.capability', CAPABILITY);
    assert.deepEqual(await review(), ['attribute security.capability', 'flag no dump']);
  });

  it('a host file that changed since the draft touched it is told, one that was only touched is not', async () => {
    await bench.done('file.append', { path: 'a.txt', content: 'x' });
    await bench.done('file.write', { path: 'new.txt', content: 'x' });
    await bench.done('file.delete', { path: 'dir', recursive: true });
    fs.utimesSync(bench.at('a.txt'), 1, 1);
    const changed = async (): Promise<Record<string, boolean>> =>
      Object.fromEntries(
        (await bench.done('workspace.review', {})).changes.map(({ path, hostChanged }) => [path, hostChanged]),
      );
    assert.deepEqual(await changed(), { 'a.txt': false, dir: false, 'dir/file': false, 'new.txt': false });
    fs.writeFileSync(bench.at('a.txt'), 'ALPHA\n');
    fs.writeFileSync(bench.at('new.txt'), 'theirs');
    fs.rmSync(bench.at('dir/file'));
    assert.deepEqual(await changed(), { 'a.txt': true, dir: false, 'dir/file': true, 'new.txt': true });
  });

  it('N-526 more than a page is REVIEW_TOO_LARGE with the count, and paged under one digest with a cursor', async function () {
    this.timeout(60_000);
    bench.put(Object.fromEntries(Array.from({ length: 1_230 }, (_, index) => [`many/${index}`, `${index}`])));
    await bench.done('file.delete', { path: 'many', recursive: true });
    assert.match(await bench.fails('REVIEW_TOO_LARGE', 'workspace.review', {}), /1231/);
    const seen: string[] = [];
    const digests = new Set<string>();
    let cursor: string | undefined = '0';
    while (cursor !== undefined) {
      const page: OperationSuccess<'workspace.review'> = await bench.done('workspace.review', {
        cursor,
      });
      seen.push(...page.changes.map(({ path }) => path));
      digests.add(page.manifestDigest);
      cursor = page.cursor;
    }
    assert.deepEqual([seen.length, new Set(seen).size, digests.size], [1_231, 1_231, 1]);
    const first = await bench.done('workspace.review', { cursor: '0' });
    await bench.done('file.write', { path: 'late', content: 'x' });
    await bench.fails('REVIEW_STALE', 'workspace.review', { cursor: first.cursor });
    await bench.fails('WORKSPACE_DENIED', 'workspace.review', { cursor: 'x' });
  });

  describe('sealed', () => {
    const page = nacl.box.keyPair();
    const recipientKey = Buffer.from(page.publicKey).toString('base64');

    /** One part whole, as a page would read it. */
    async function readPart(digest: string, part: object): Promise<Buffer> {
      const pieces: Uint8Array[] = [];
      let offset: number | undefined = 0;
      while (offset !== undefined) {
        const args = { manifestDigest: digest, recipientKey, part, offset };
        const piece: OperationSuccess<'review.difference'> = await bench.done('review.difference', args);
        const [sealed, nonce, sender] = [piece.sealed, piece.nonce, piece.senderKey].map((text) =>
          Buffer.from(text, 'base64'),
        );
        assert.ok(sealed && nonce && sender);
        const opened = nacl.box.open(sealed, nonce, sender, page.secretKey);
        assert.ok(opened, 'the page opens it');
        pieces.push(opened);
        offset = piece.next;
      }
      return Buffer.concat(pieces);
    }

    const large = Buffer.alloc(700_000, 'large ');
    let digest: string;
    let manifest: Manifest;

    beforeEach(async () => {
      bench.put({ large });
      await bench.done('file.append', { path: 'large', content: 'end' });
      await bench.done('file.delete', { path: 'gone.txt' });
      await bench.done('file.write', { path: 'made/new.txt', content: 'new', createParents: true });
      await bench.done('file.chmod', { path: 'a.txt', executable: true });
      digest = (await bench.done('workspace.review', {})).manifestDigest;
      const bytes = await readPart(digest, { of: 'manifest' });
      assert.equal(manifestDigest(bytes), digest);
      manifest = parseManifest(bytes);
    });

    it('both sides of every change hash to what the manifest says', async () => {
      let sides = 0;
      for (const [index, change] of manifest.changes.entries()) {
        for (const which of ['before', 'after'] as const) {
          const side = change.type === 'file' ? change[which] : null;
          if (side) {
            const content = await readPart(digest, { of: which, change: index });
            assert.deepEqual([content.length, sha256(content)], [side.bytes, side.sha256], `${which} ${change.path}`);
            sides += 1;
          } else {
            await bench.fails('WORKSPACE_UNAVAILABLE', 'review.difference', {
              manifestDigest: digest,
              recipientKey,
              part: { of: which, change: index },
            });
          }
        }
      }
      assert.equal(sides, 6);
    });

    const ask = (part: object, more: object = {}): object => ({
      manifestDigest: digest,
      recipientKey,
      part,
      ...more,
    });

    it('a changed draft, a changed host file, a change that is none and a key that everybody knows are refused', async () => {
      await bench.fails('WORKSPACE_UNAVAILABLE', 'review.difference', ask({ of: 'after', change: 99 }));
      const zero = Buffer.alloc(32).toString('base64');
      assert.match(
        await bench.fails('WORKSPACE_DENIED', 'review.difference', ask({ of: 'manifest' }, { recipientKey: zero })),
        /not usable/,
      );
      fs.writeFileSync(bench.at('large'), Buffer.alloc(700_000, 'LARGE '));
      const index = manifest.changes.findIndex(({ path }) => path === 'large');
      await bench.fails('REVIEW_STALE', 'review.difference', ask({ of: 'before', change: index }));
      await bench.done('file.append', { path: 'large', content: '!' });
      await bench.fails('REVIEW_STALE', 'review.difference', ask({ of: 'manifest' }));
      await bench.fails('REVIEW_STALE', 'review.difference', ask({ of: 'manifest' }), { run: newRun() });
    });
  });

  it('the terminal is shown a unified difference, or why there is none, under the digest of the review', async () => {
    await bench.done('file.append', { path: 'a.txt', content: 'beta\n' });
    await bench.done('file.append', { path: 'bin', content: 'x' });
    await bench.done('file.chmod', { path: 'dir/file', executable: true });
    await bench.done('file.mkdir', { path: 'made' });
    await bench.done('file.delete', { path: 'gone.txt' });
    const { manifestDigest: digest } = await bench.done('workspace.review', {});
    const show = (change: number) => bench.handlers['workspace.difference']({ run: bench.run, change, ignore: [] });
    const shown = [];
    for (let change = 0; change < 5; change += 1) shown.push(await show(change));
    assert.deepEqual(
      shown.map(({ path, difference }) => [path, difference.shown === 'text' ? 'text' : difference.reason]),
      [
        ['a.txt', 'text'],
        ['bin', 'binary'],
        ['dir/file', 'mode-only'],
        ['gone.txt', 'text'],
        ['made', 'directory'],
      ],
    );
    assert.ok(shown.every((page) => page.manifestDigest === digest && page.changeCount === 5));
    const [first, , third, fourth] = shown;
    assert.match(first?.difference.shown === 'text' ? first.difference.text : '', /^\+beta$/m);
    assert.match(fourth?.difference.shown === 'text' ? fourth.difference.text : '', /^-MARKER$/m);
    assert.deepEqual([third?.modeBefore, third?.modeAfter], ['644', '755']);
    await assert.rejects(show(5), { code: 'CHANGE_UNKNOWN' });
    await assert.rejects(bench.handlers['workspace.difference']({ run: newRun(), change: 0, ignore: [] }), {
      code: 'DRAFT_UNKNOWN',
    });
    fs.writeFileSync(bench.at('a.txt'), 'theirs\n');
    await assert.rejects(show(0), { code: 'MANIFEST_STALE' });
  });
});
