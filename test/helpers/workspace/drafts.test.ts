import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { manifestDigest, parseManifest } from '../../../helpers/files/manifest.ts';
import { MACHINE_LIMITS } from '../../../helpers/workspace/draft-budget.ts';
import { Bench, memoryFolder, newPromotion, newRun } from './bench.ts';

describe('drafts', () => {
  let bench: Bench;
  let before: string;

  beforeEach(() => {
    bench = new Bench(memoryFolder());
    bench.put({ 'a.txt': 'alpha', 'dir/file': 'content' });
    before = bench.treeDigest();
  });
  afterEach(async () => {
    assert.equal(bench.treeDigest(), before);
    await bench.remove();
  });

  const digest = async (): Promise<string> => (await bench.done('workspace.review', {})).manifestDigest;
  const draftFolder = (): string => path.join(bench.draftsPath, fs.readdirSync(bench.draftsPath)[0] ?? '');

  it('a draft lies below the drafts folder, readable by its owner alone, and is listed with size and age', async () => {
    assert.deepEqual(await bench.handlers['workspace.drafts']({}), { drafts: [], frozen: [] });
    await bench.done('file.write', { path: 'b.txt', content: 'four' });
    const [draft] = (await bench.handlers['workspace.drafts']({})).drafts;
    assert.ok(draft);
    assert.deepEqual(
      [draft.run, draft.slot, draft.changeCount, draft.byteCount, draft.damaged],
      [bench.run, 1, 1, 4, false],
    );
    assert.ok(draft.createdAt <= draft.changedAt && draft.changedAt <= Date.now());
    assert.equal(fs.statSync(draftFolder()).mode & 0o777, 0o700);
    for (const name of fs.readdirSync(draftFolder()))
      assert.equal(fs.statSync(path.join(draftFolder(), name)).mode & 0o777, 0o600);
  });

  it('a draft is there after a restart, and belongs to its run alone', async () => {
    await bench.done('file.write', { path: 'b.txt', content: 'kept' });
    const other = newRun();
    await bench.done('file.write', { path: 'c.txt', content: 'other' }, { run: other });
    const was = await digest();
    bench.start();
    assert.equal(await bench.text('b.txt'), 'kept');
    assert.equal(await digest(), was);
    await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'b.txt' }, { run: other });
    assert.deepEqual(
      (await bench.handlers['workspace.drafts']({})).drafts.map(({ slot }) => slot),
      [1, 2],
    );
  });

  it('a discarded draft is gone for good, and its number is not used again by the same process', async () => {
    await bench.done('file.write', { path: 'b.txt', content: 'x' });
    assert.deepEqual(await bench.handlers['workspace.discard']({ run: bench.run }), { discarded: true });
    assert.deepEqual(await bench.handlers['workspace.discard']({ run: bench.run }), { discarded: false });
    assert.deepEqual(fs.readdirSync(bench.draftsPath), []);
    await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'b.txt' });
    await bench.done('file.write', { path: 'b.txt', content: 'x' });
    assert.deepEqual(fs.readdirSync(bench.draftsPath), ['00000002']);
  });

  it('a frozen draft is read but not changed, over a restart too, until its own promotion releases it', async () => {
    await bench.done('file.write', { path: 'b.txt', content: 'x' });
    const { run } = bench;
    const [promotion, other] = [newPromotion(), newPromotion()];
    const manifestDigestNow = await digest();
    const stale = bench.handlers['workspace.freeze']({ run, promotion, manifestDigest: '0'.repeat(64) });
    await assert.rejects(stale, { code: 'MANIFEST_STALE' });
    const frozen = await bench.handlers['workspace.freeze']({ run, promotion, manifestDigest: manifestDigestNow });
    assert.equal(frozen.slot, 1);
    assert.ok(frozen.manifest);
    assert.equal(manifestDigest(frozen.manifest), manifestDigestNow);
    assert.equal(parseManifest(frozen.manifest).run, run);
    for (const restart of [false, true]) {
      if (restart) bench.start();
      assert.match(await bench.fails('WORKSPACE_DENIED', 'file.append', { path: 'b.txt', content: 'y' }), /promoted/);
      assert.equal(await bench.text('b.txt'), 'x');
      await assert.rejects(bench.handlers['workspace.discard']({ run }), { code: 'DRAFT_FROZEN' });
      const again = bench.handlers['workspace.freeze']({ run, promotion: other, manifestDigest: manifestDigestNow });
      await assert.rejects(again, { code: 'DRAFT_FROZEN' });
      assert.deepEqual((await bench.handlers['workspace.drafts']({})).frozen, [{ run, promotion }]);
      for (const promoted of [false, true]) {
        await bench.handlers['workspace.release']({ run, promotion: other, promoted });
        assert.deepEqual((await bench.handlers['workspace.drafts']({})).frozen, [{ run, promotion }]);
      }
    }
    await bench.handlers['workspace.release']({ run, promotion, promoted: false });
    await bench.done('file.append', { path: 'b.txt', content: 'y' });
    await bench.handlers['workspace.freeze']({ run, promotion: other, manifestDigest: await digest() });
    await bench.handlers['workspace.release']({ run, promotion: other, promoted: true });
    assert.deepEqual(fs.readdirSync(bench.draftsPath), []);
    const unknown = bench.handlers['workspace.freeze']({ run, promotion, manifestDigest: manifestDigestNow });
    await assert.rejects(unknown, { code: 'DRAFT_UNKNOWN' });
    await bench.handlers['workspace.release']({ run, promotion: other, promoted: true });
  });

  it('a damaged draft answers nothing, is kept as it is, is listed, and can be discarded', async () => {
    await bench.done('file.write', { path: 'b.txt', content: 'x' });
    await bench.done('file.write', { path: 'c.txt', content: 'x' });
    const index = path.join(draftFolder(), fs.readdirSync(draftFolder()).find((name) => name.endsWith('.index')) ?? '');
    const bytes = fs.readFileSync(index);
    bytes[60] = (bytes[60] ?? 0) ^ 1;
    fs.writeFileSync(index, bytes);
    bench.start();
    assert.match(await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'a.txt' }), /damaged/);
    assert.match(await bench.fails('WORKSPACE_UNAVAILABLE', 'file.write', { path: 'd.txt', content: 'x' }), /damaged/);
    assert.deepEqual(fs.readFileSync(index), bytes);
    assert.equal((await bench.handlers['workspace.drafts']({})).drafts[0]?.damaged, true);
    const frozen = { run: bench.run, promotion: newPromotion(), manifestDigest: '0'.repeat(64) };
    await assert.rejects(bench.handlers['workspace.freeze'](frozen), { code: 'DRAFT_DAMAGED' });
    assert.deepEqual(await bench.handlers['workspace.discard']({ run: bench.run }), { discarded: true });
    assert.equal(await bench.text('a.txt'), 'alpha');
  });

  it('all drafts of a machine together have a limit of number, over a restart too, and a discarded one makes room', async () => {
    bench.limits = { ...MACHINE_LIMITS, drafts: 2 };
    bench.start();
    const [one, two, three] = [newRun(), newRun(), newRun()];
    for (const run of [one, two]) await bench.done('file.write', { path: 'b.txt', content: 'x' }, { run });
    for (const restart of [false, true]) {
      if (restart) bench.start();
      const message = await bench.fails('DRAFT_LIMIT', 'file.write', { path: 'b.txt', content: 'x' }, { run: three });
      assert.match(message, /3 drafts, allowed are 2; the owner can promote or discard/);
      await bench.done('file.write', { path: 'c.txt', content: 'x' }, { run: one });
      await bench.handlers['workspace.discard']({ run: one });
      await bench.done('file.write', { path: 'b.txt', content: 'x' }, { run: one });
    }
    assert.equal(fs.readdirSync(bench.draftsPath).length, 2);
  });

  it('several runs that make their drafts at once do not pass the limit of number', async () => {
    bench.limits = { ...MACHINE_LIMITS, drafts: 3 };
    bench.start();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => bench.ask('file.write', { path: 'b.txt', content: 'x' }, { run: newRun() })),
    );
    assert.equal(answers.filter(({ success }) => success).length, 3);
    assert.equal(fs.readdirSync(bench.draftsPath).length, 3);
  });

  it('all drafts of a machine together have a limit of bytes, over a restart too', async () => {
    bench.limits = { ...MACHINE_LIMITS, bytes: 30_000 };
    bench.start();
    const content = 'x'.repeat(12_000);
    await bench.done('file.write', { path: 'b.txt', content });
    const other = newRun();
    await bench.done('file.write', { path: 'b.txt', content }, { run: other });
    for (const restart of [false, true]) {
      if (restart) bench.start();
      const message = await bench.fails('DRAFT_LIMIT', 'file.write', { path: 'c.txt', content }, { run: other });
      assert.match(message, /all drafts together would take \d+ bytes, allowed are 30000/);
    }
    await bench.handlers['workspace.discard']({ run: bench.run });
    await bench.done('file.write', { path: 'c.txt', content }, { run: other });
  });

  it('drafts that nobody uses stay open only up to a number of paths together, and each is read again when it is asked for', async () => {
    bench.limits = { ...MACHINE_LIMITS, idlePaths: 4 };
    bench.start();
    const openDrafts = (): number => {
      const descriptors = fs.readdirSync('/proc/self/fd').map((name) => {
        try {
          return fs.readlinkSync(`/proc/self/fd/${name}`);
        } catch {
          // the one that the folder was listed by
          return '';
        }
      });
      return descriptors.filter((target) => target.startsWith(`${bench.draftsPath}/`) && target.endsWith('.index'))
        .length;
    };
    const runs = [newRun(), newRun(), newRun(), newRun()];
    for (const run of runs)
      for (const name of ['b.txt', 'c.txt']) await bench.done('file.write', { path: name, content: name }, { run });
    assert.equal(openDrafts(), 2);
    for (const run of runs) assert.equal(await bench.text('c.txt', { run }), 'c.txt');
    for (const name of ['d.txt', 'e.txt', 'f.txt']) await bench.done('file.write', { path: name, content: name });
    assert.equal(openDrafts(), 1);
  });

  it('what must stay free on the disk of the drafts stays free', async () => {
    // the whole disk is to stay free, and one file of another program takes of it
    const taken = path.join(bench.folder, 'taken');
    fs.writeFileSync(taken, Buffer.alloc(1_048_576, 1));
    bench.limits = { ...MACHINE_LIMITS, reserveBytes: Number.MAX_SAFE_INTEGER, reserveShare: 1 };
    bench.start();
    const message = await bench.fails('DRAFT_LIMIT', 'file.write', { path: 'b.txt', content: 'x' });
    assert.match(message, /\d+ bytes would be free on the disk that holds drafts, kept free are \d+/);
    assert.deepEqual(fs.readdirSync(bench.draftsPath), []);
    bench.limits = { ...MACHINE_LIMITS, reserveBytes: 0 };
    bench.start();
    await bench.done('file.write', { path: 'b.txt', content: 'x' });
  });

  it('a draft of another root is not read over this one, is listed, and can be discarded', async () => {
    await bench.done('file.write', { path: 'b.txt', content: 'x' });
    fs.renameSync(bench.rootPath, `${bench.rootPath}.old`);
    fs.cpSync(`${bench.rootPath}.old`, bench.rootPath, { recursive: true });
    bench.start();
    assert.match(await bench.fails('WORKSPACE_UNAVAILABLE', 'file.read', { path: 'b.txt' }), /another root/);
    before = bench.treeDigest();
    assert.equal((await bench.handlers['workspace.drafts']({})).drafts[0]?.changeCount, 1, 'it is listed');
    assert.deepEqual(await bench.handlers['workspace.discard']({ run: bench.run }), { discarded: true });
    assert.deepEqual(fs.readdirSync(bench.draftsPath), []);
  });

  it('an index that grows is rewritten, and says the same', async () => {
    for (let round = 0; round < 300; round += 1) {
      await bench.done('file.write', { path: 'b.txt', content: `${round}`, overwrite: true });
    }
    const was = await digest();
    const index = fs.readdirSync(draftFolder()).find((name) => name.endsWith('.index')) ?? '';
    const small = fs.statSync(path.join(draftFolder(), index)).size;
    assert.ok(small < 200_000, `${small} bytes`);
    fs.appendFileSync(path.join(draftFolder(), index), Buffer.alloc(40));
    bench.start();
    await bench.done('file.write', { path: 'c.txt', content: 'x' });
    await bench.done('file.delete', { path: 'c.txt' });
    assert.equal(await digest(), was);
    bench.start();
    assert.equal(await digest(), was);
  });

  it('changes of one run at the same time happen one after the other', async () => {
    await bench.done('file.write', { path: 'log', content: '' });
    await Promise.all(Array.from({ length: 40 }, () => bench.done('file.append', { path: 'log', content: 'x' })));
    assert.equal(await bench.text('log'), 'x'.repeat(40));
  });

  it('more changed bytes than a draft may hold are refused by name before they are copied', async () => {
    fs.writeFileSync(bench.at('huge'), '');
    fs.truncateSync(bench.at('huge'), 134_217_729);
    before = bench.treeDigest();
    assert.match(await bench.fails('DRAFT_LIMIT', 'file.rename', { from: 'huge', to: 'huge2' }), /134217728/);
    assert.match(await bench.fails('DRAFT_LIMIT', 'file.append', { path: 'huge', content: 'x' }), /134217728/);
    assert.equal((await bench.done('workspace.review', {})).changeCount, 0);
  });
});
