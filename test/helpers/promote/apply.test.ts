import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { ManifestError, parseManifest } from '../../../helpers/files/manifest.ts';
import { canonicalBytes } from '../../../helpers/protocol/descriptor.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { applyMeasured, draftMany, PEAK_LIMIT_KIB } from '../../fakes/many-entries.ts';
import { asking, PromotionScene, timeless } from '../../fakes/promotion-scene.ts';

describe('an approved draft is applied', function () {
  this.timeout(180_000);
  let installation: RealInstallation;
  let scene: PromotionScene;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  beforeEach(() => {
    scene = new PromotionScene();
  });
  afterEach(() => scene.remove());

  const shown = (): string[] =>
    [...timeless(scene.listing())].map(([name, { kind, mode }]) => `${name} ${kind} ${mode}`);

  it('creates, changes and deletes files and folders, empty ones too, and leaves nothing of its own', async () => {
    scene.put('changed', 'old', 0o640);
    scene.put('gone', 'bye');
    scene.folderAt('old');
    scene.put('old/inside', 'x');
    scene.folderAt('hollow');
    scene.draftOf({
      changed: { file: 'new', mode: 0o640 },
      gone: 'removed',
      old: 'removed',
      'old/inside': 'removed',
      hollow: 'removed',
      made: { folder: 0o755 },
      'made/deep': { folder: 0o700 },
      'made/deep/file': { file: 'hello', mode: 0o755 },
      'made/empty': { folder: 0o750 },
      empty: { file: '' },
    });
    const reply = await scene.apply(installation);
    assert.ok(reply.outcome === 'promoted', JSON.stringify(reply));
    assert.deepEqual(shown(), [
      '. folder 755',
      'changed file 640',
      'empty file 644',
      'made folder 755',
      'made/deep folder 700',
      'made/deep/file file 755',
      'made/empty folder 750',
    ]);
    assert.equal(fs.readFileSync(scene.at('changed'), 'utf8'), 'new');
    assert.equal(fs.readFileSync(scene.at('made/deep/file'), 'utf8'), 'hello');
    assert.equal(fs.readFileSync(scene.at('empty'), 'utf8'), '');
    assert.equal(reply.manifestDigest, scene.manifest().digest);
    assert.deepEqual(await scene.recover(installation), { outcome: 'nothing-to-do', conflicts: [], promoted: [] });
  });

  it('says later which promotions were committed: not one that was refused, and none that it never saw', async () => {
    scene.put('changed', 'old');
    scene.draftOf({ changed: { file: 'new' } });
    const promoted = await scene.apply(installation);
    assert.ok(promoted.outcome === 'promoted');
    scene.draftOf({ changed: { file: 'newer' } });
    const [refused, unseen] = [`prm_${'1'.repeat(32)}`, `prm_${'2'.repeat(32)}`];
    const approval = scene.approve({ promotion: refused });
    scene.put('changed', 'mine');
    assert.equal((await scene.apply(installation, { approval })).outcome, 'refused');
    const recovered = await scene.recover(installation, [unseen, refused, promoted.history]);
    assert.deepEqual(recovered.promoted, [promoted.history]);
  });

  it('keeps the old files in the history, byte for byte', async () => {
    const old = Buffer.from([0, 255, 1, 254]);
    scene.put('changed', old);
    scene.put('gone', 'bye');
    scene.draftOf({ changed: { file: 'new' }, gone: 'removed' });
    const reply = await scene.apply(installation);
    assert.ok(reply.outcome === 'promoted');
    const history = path.join(scene.own, 'history', reply.history);
    const contents = fs
      .readdirSync(history)
      .filter((name) => name !== 'journal')
      .map((name) => fs.readFileSync(path.join(history, name)));
    assert.deepEqual(new Set(contents.map(String)), new Set([String(old), 'bye']));
  });

  describe('N-528 modes', () => {
    const modes: readonly (readonly [string, number | undefined, number, 'promoted' | 'PROMOTION_MANIFEST_INVALID'])[] =
      [
        ['a new file that its owner alone reads', undefined, 0o600, 'promoted'],
        ['a new file that all read', undefined, 0o644, 'promoted'],
        ['a new program', undefined, 0o755, 'promoted'],
        ['a new file that its owner may not read', undefined, 0o044, 'PROMOTION_MANIFEST_INVALID'],
        ['a new file that all may write', undefined, 0o666, 'PROMOTION_MANIFEST_INVALID'],
        ['a file that all may write already', 0o666, 0o666, 'promoted'],
        ['a file that becomes a program', 0o644, 0o755, 'promoted'],
        ['a program that becomes a file', 0o755, 0o644, 'promoted'],
        ['a file that opens to all who write', 0o644, 0o646, 'PROMOTION_MANIFEST_INVALID'],
      ];
    for (const [sentence, from, to, verdict] of modes) {
      it(`mode of ${sentence}: ${verdict}`, async () => {
        if (from !== undefined) scene.put('file', 'old', from);
        scene.draftOf({ file: { file: 'new', mode: to } });
        const reply = await scene.apply(installation);
        assert.equal(reply.outcome === 'promoted' ? 'promoted' : reply.code, verdict);
        const stands = verdict === 'promoted' ? to : from;
        if (stands !== undefined) assert.equal(fs.statSync(scene.at('file')).mode & 0o7777, stands);
        else assert.ok(!fs.existsSync(scene.at('file')));
      });
    }

    it('a set-id bit of the old file does not reach the new one', async () => {
      scene.put('tool', 'old', 0o4755);
      scene.draftOf({ tool: { file: 'new', mode: 0o755 } });
      assert.equal((await scene.apply(installation)).outcome, 'promoted');
      assert.equal(fs.statSync(scene.at('tool')).mode & 0o7777, 0o755);
    });

    it('a manifest that names a set-id or sticky bit for a new file is none', () => {
      const made = (mode: string): Buffer => {
        const after = { bytes: 1, mode, sha256: '0'.repeat(64) };
        const change = { path: 'tool', type: 'file', kind: 'created', before: null, after };
        return canonicalBytes({
          changes: [change],
          rootIdentity: '0'.repeat(64),
          run: `run_${'1'.repeat(32)}`,
          version: 2,
        });
      };
      assert.equal(parseManifest(made('755')).changes.length, 1);
      for (const mode of ['4755', '2755', '1755', '0755'])
        assert.throws(() => parseManifest(made(mode)), ManifestError);
    });
  });

  it('a change of mode alone keeps the content of the host’s own file', async () => {
    scene.put('tool', '#!/bin/sh\n');
    scene.draftOf({ tool: { mode: 0o755 } });
    assert.equal((await scene.apply(installation)).outcome, 'promoted');
    assert.equal(fs.readFileSync(scene.at('tool'), 'utf8'), '#!/bin/sh\n');
    assert.equal(fs.statSync(scene.at('tool')).mode & 0o7777, 0o755);
  });

  it('names of 255 bytes, with a line feed, and bytes that are not UTF-8 arrive as they are', async () => {
    const names = ['n'.repeat(255), 'two\nlines', '\xff\xfe not text', 'back\\slash', '..dots', 'fold\xe9r'];
    const wanted = Object.fromEntries(names.slice(0, 5).map((name) => [name, { file: name }]));
    scene.draftOf({ ...wanted, 'fold\xe9r': { folder: 0o755 }, 'fold\xe9r/\xe9': { file: 'é' } });
    assert.equal((await scene.apply(installation)).outcome, 'promoted');
    const found = fs
      .readdirSync(Buffer.from(scene.root), { encoding: 'buffer' })
      .map((name) => name.toString('latin1'));
    assert.deepEqual(new Set(found), new Set(names));
  });

  it('a file becomes a folder and a folder becomes a file', async () => {
    scene.put('one', 'was a file');
    scene.folderAt('two');
    scene.put('two/inside', 'x');
    scene.draftOf({
      one: { folder: 0o755 },
      'one/inside': { file: 'y' },
      two: { file: 'is a file' },
      'two/inside': 'removed',
    });
    assert.equal((await scene.apply(installation)).outcome, 'promoted');
    assert.deepEqual(shown(), ['. folder 755', 'one folder 755', 'one/inside file 644', 'two file 644']);
  });

  it('the time of a folder in which nothing was approved stays, the root’s too', async () => {
    scene.folderAt('work');
    scene.put('work/file', 'old');
    scene.folderAt('other');
    for (const name of ['other', '.']) fs.utimesSync(scene.at(name), 1_000, 1_000);
    scene.draftOf({ 'work/file': { file: 'new' } });
    assert.equal((await scene.apply(installation)).outcome, 'promoted');
    for (const name of ['other', '.']) assert.equal(fs.statSync(scene.at(name)).mtimeMs, 1_000_000);
  });

  it('two thousand entries with 20 MiB stay far below 256 MiB of memory, and a cancel in the middle restores', async () => {
    draftMany(scene, 2000, 10_486);
    const before = scene.listing();
    const cancelled = await applyMeasured(scene, installation, { phase: 'applying', share: 0.1 });
    assert.ok(cancelled.reply.outcome === 'rolled-back' && cancelled.reply.code === 'CANCELLED');
    assert.deepEqual(scene.listing(), before);
    const { reply, peakKib } = await applyMeasured(scene, installation);
    assert.equal(reply.outcome, 'promoted');
    assert.equal(scene.listing().size, 2001);
    for (const peak of [peakKib, cancelled.peakKib]) assert.ok(peak < PEAK_LIMIT_KIB, `${peak} KiB at the peak`);
  });

  it('three hundred files over two hundred folders tell how far they are and take one history', async () => {
    const folders = Array.from({ length: 200 }, (_, index) => [`d${index}`, { folder: 0o755 }] as const);
    const files = Array.from(
      { length: 300 },
      (_, index) => [`d${index % 200}/f${index}`, { file: `${index}` }] as const,
    );
    scene.draftOf(Object.fromEntries([...folders, ...files]));
    const running = scene.start(installation);
    await running.client.request('promote.recover', { promotions: [] }, asking);
    const reply = await running.client.request('promote.apply', { approval: scene.approve() }, asking);
    assert.equal(reply.outcome, 'promoted');
    running.client.close();
    await running.exited;
    assert.equal(scene.listing().size, 501);
    const phases = [...new Set(running.progress.map(({ body }) => body.phase))];
    assert.deepEqual(phases, ['verifying', 'staging', 'applying', 'committing', 'cleaning']);
  });
});
