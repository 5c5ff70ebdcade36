import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';

import { contentName } from '../../../helpers/files/draft.ts';
import { applyHere } from '../../fakes/promote-here.ts';
import { PromotionScene } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { skipBecause } from '../../skip.ts';

describe('what is no plain file', function () {
  this.timeout(180_000);
  let installation: RealInstallation;
  let scene: PromotionScene;

  before(async () => {
    installation = await installRows('promote');
  });
  after(() => installation.remove());
  beforeEach(() => {
    scene = new PromotionScene();
    scene.put('file', 'old');
    scene.draftOf({ file: { file: 'new' }, other: { file: 'other' } });
  });
  afterEach(() => scene.remove());

  it('N-151 a link, a second name, a special file and a mount are refused, in the root and in the draft', async function () {
    if (spawnSync('unshare', ['-m', 'true']).status !== 0) skipBecause(this, 'a mount needs CAP_SYS_ADMIN');
    const content = path.join(scene.draft, String(contentName(1)));
    const places = { root: String(scene.at('file')), draft: content };
    const bytes = { root: 'old', draft: 'new' };
    const elsewhere = path.join(scene.folder, 'elsewhere');
    const makers: Readonly<Record<string, (at: string, text: string) => void>> = {
      'a symbolic link': (at, text) => {
        fs.writeFileSync(elsewhere, text);
        fs.symlinkSync(elsewhere, at);
      },
      'a hard link': (at, text) => {
        fs.writeFileSync(elsewhere, text);
        scene.give(elsewhere);
        fs.linkSync(elsewhere, at);
      },
      'a FIFO': (at) => void spawnSync('mkfifo', [at]),
      'a mount': (at, text) => {
        fs.writeFileSync(elsewhere, text);
        fs.writeFileSync(at, text);
        scene.give(elsewhere, at);
        assert.equal(spawnSync('mount', ['--bind', elsewhere, at]).status, 0);
      },
    };
    for (const where of ['root', 'draft'] as const) {
      for (const [what, make] of Object.entries(makers)) {
        const at = places[where];
        const approval = scene.approve();
        fs.unlinkSync(at);
        make(at, bytes[where]);
        if (what !== 'a mount') scene.give(at);
        const before = scene.listing();
        try {
          const reply = await scene.apply(installation, { approval });
          assert.notEqual(reply.outcome, 'promoted', `${what} in the ${where}`);
          assert.deepEqual(scene.listing(), before, `${what} in the ${where}: nothing was changed`);
        } finally {
          if (what === 'a mount') spawnSync('umount', [at]);
        }
        fs.rmSync(at);
        fs.rmSync(elsewhere, { force: true });
        fs.writeFileSync(at, bytes[where], { mode: where === 'root' ? 0o644 : 0o600 });
        scene.give(at);
      }
    }
    assert.equal((await scene.apply(installation)).outcome, 'promoted', 'plain files in both places are taken');
  });

  /** Applies; what was answered, with nothing changed unless it was promoted. */
  async function answered(approval = scene.approve()): Promise<string> {
    const before = scene.listing();
    const reply = await scene.apply(installation, { approval });
    if (reply.outcome === 'promoted') return 'promoted';
    assert.deepEqual(scene.listing(), before);
    assert.ok(!fs.readdirSync(scene.own).some((name) => name.startsWith('journal.')));
    return `${reply.outcome} ${reply.code} ${reply.path ?? ''}`;
  }

  it('S-140 a file with a second name, in the root or outside of it, is refused', async () => {
    for (const second of [scene.at('second'), Buffer.from(path.join(scene.folder, 'outside'))]) {
      const approval = scene.approve();
      fs.linkSync(scene.at('file'), second);
      assert.equal(await answered(approval), 'refused PROMOTION_UNSAFE_PATH file');
      assert.equal(fs.readFileSync(second, 'utf8'), 'old');
      fs.unlinkSync(second);
    }
    assert.equal(await answered(), 'promoted');
  });

  it('S-145 read-only mount, read-only file, frozen attributes, a foreign owner and an unreadable original are found before the first change', async function () {
    if (scene.uid === undefined) skipBecause(this, 'root alone mounts, freezes and gives files away');
    const file = String(scene.at('file'));
    const shell = (...args: readonly string[]): void => {
      const [program = '', ...rest] = args;
      assert.equal(spawnSync(program, rest).status, 0, args.join(' '));
    };
    const { uid } = scene;
    const places: Readonly<Record<string, readonly [() => void, () => void]>> = {
      'a read-only file': [() => fs.chmodSync(file, 0o444), () => fs.chmodSync(file, 0o644)],
      'an unreadable original': [() => fs.chmodSync(file, 0o200), () => fs.chmodSync(file, 0o644)],
      'a foreign owner': [() => fs.chownSync(file, 0, 0), () => fs.chownSync(file, uid, uid)],
      'an immutable file': [() => shell('chattr', '+i', file), () => shell('chattr', '-i', file)],
      'a file that is only appended to': [() => shell('chattr', '+a', file), () => shell('chattr', '-a', file)],
      'an immutable folder': [() => shell('chattr', '+i', scene.root), () => shell('chattr', '-i', scene.root)],
      'a read-only folder': [() => fs.chmodSync(scene.root, 0o555), () => fs.chmodSync(scene.root, 0o755)],
      'a read-only mount': [
        () => {
          shell('mount', '--bind', scene.root, scene.root);
          shell('mount', '-o', 'remount,bind,ro', scene.root);
        },
        () => shell('umount', scene.root),
      ],
    };
    for (const [what, [make, unmake]] of Object.entries(places)) {
      // The mode that is there is reviewed: it is the place that refuses, not a difference to the review.
      if (what.endsWith('file') || what.endsWith('original')) make();
      scene.draftOf({ file: { file: 'new' } });
      if (!what.endsWith('file') && !what.endsWith('original')) make();
      try {
        assert.match(await answered(), /^refused PROMOTION_(?:UNSAFE_PATH file|UNSUPPORTED )$/, what);
        assert.deepEqual(fs.existsSync(path.join(scene.own, 'history')), false, what);
      } finally {
        unmake();
      }
    }
    scene.draftOf({ file: { file: 'new' } });
    assert.equal(await answered(), 'promoted');
  });

  it('S-153 set-id, sticky and world-writable are refused by path, and a file runs only where that was reviewed', async () => {
    for (const mode of [0o4755, 0o2755, 0o1755, 0o666, 0o646, 0o777]) {
      scene.draftOf({ file: { file: 'new', mode }, other: { file: 'other' } });
      assert.equal(await answered(), 'refused PROMOTION_MANIFEST_INVALID file', mode.toString(8));
    }
    for (const folder of [0o1777, 0o2755, 0o777]) {
      scene.draftOf({ folder: { folder } });
      assert.equal(await answered(), 'refused PROMOTION_MANIFEST_INVALID folder', folder.toString(8));
    }
    scene.draftOf({ file: { file: 'new' }, tool: { file: '#!', mode: 0o755 } });
    for (const name of fs.readdirSync(scene.draft)) {
      if (name.startsWith('content-')) fs.chmodSync(path.join(scene.draft, name), 0o700);
    }
    const approval = scene.approve();
    fs.chmodSync(scene.at('file'), 0o755);
    assert.equal(await answered(approval), 'refused PROMOTION_CONFLICT file');
    fs.chmodSync(scene.at('file'), 0o644);
    assert.equal(await answered(), 'promoted');
    assert.deepEqual(
      ['file', 'tool'].map((name) => fs.statSync(scene.at(name)).mode & 0o7777),
      [0o644, 0o755],
    );
  });

  const MIB = 1_048_576;
  /** Disk that a file takes, in bytes. */
  const taken = (file: string | Buffer): number => fs.statSync(file).blocks * 512;

  it('a file with holes keeps them, in the tree and in the history, whether content or mode changes', async () => {
    for (const name of ['content', 'mode']) {
      scene.put(name, 'begin');
      fs.truncateSync(scene.at(name), 64 * MIB);
    }
    const content = Buffer.alloc(48 * MIB);
    content.write('end', content.length - 3);
    scene.draftOf({ content: { file: content }, mode: { mode: 0o755 } });
    const reply = await scene.apply(installation);
    assert.ok(reply.outcome === 'promoted', JSON.stringify(reply));
    assert.ok(fs.readFileSync(scene.at('content')).equals(content));
    const mode = fs.readFileSync(scene.at('mode'));
    assert.ok(
      mode.length === 64 * MIB && mode.subarray(0, 5).toString() === 'begin' && !mode.subarray(5).some(Boolean),
    );
    const history = path.join(scene.own, 'history', reply.history);
    const kept = fs.readdirSync(history).filter((name) => name !== 'journal');
    assert.equal(kept.length, 2);
    for (const file of [scene.at('content'), scene.at('mode'), ...kept.map((name) => path.join(history, name))])
      assert.ok(taken(file) < 2 * MIB, `${String(file)} takes ${taken(file)} bytes`);
  });

  it('an installed tree of packages with a linked store: links beside changed files stay as they are, to the inode', async () => {
    const store = 'node_modules/.store/a@1/node_modules';
    const folders = ['node_modules', 'node_modules/.bin', 'node_modules/.store', 'node_modules/.store/a@1', store];
    for (const name of [...folders, `${store}/a`]) scene.folderAt(name);
    scene.put(`${store}/a/index.js`, 'one');
    scene.put(`${store}/a/old.js`, 'old');
    const links = {
      'node_modules/a': '.store/a@1/node_modules/a',
      'node_modules/.bin/a': '../a/index.js',
      'node_modules/gone': '.store/gone@1',
      'node_modules/host': scene.folder,
      [`${store}/a/self`]: '..',
    };
    for (const [name, target] of Object.entries(links)) {
      fs.symlinkSync(target, scene.at(name));
      scene.give(scene.at(name));
    }
    const facts = (): unknown[] =>
      Object.keys(links).map((name) => {
        const { ino, mtimeNs, ctimeNs, uid } = fs.lstatSync(scene.at(name), { bigint: true });
        return [name, fs.readlinkSync(scene.at(name)), ino, mtimeNs, ctimeNs, uid];
      });
    const before = facts();
    scene.draftOf({
      [`${store}/a/index.js`]: { file: 'two' },
      [`${store}/a/old.js`]: 'removed',
      [`${store}/a/new.js`]: { file: 'new' },
      'node_modules/.store/b@1': { folder: 0o755 },
      'node_modules/.store/b@1/index.js': { file: 'b' },
    });
    assert.equal(await answered(), 'promoted');
    assert.deepEqual(facts(), before);
    assert.equal(fs.readFileSync(scene.at('node_modules/.bin/a'), 'utf8'), 'two');
    scene.draftOf({ 'node_modules/a/index.js': { file: 'through a link' } });
    assert.equal(await answered(), 'refused PROMOTION_UNSAFE_PATH node_modules/a/index.js');
    scene.draftOf({ [`${store}/a`]: 'removed', [`${store}/a/index.js`]: 'removed', [`${store}/a/new.js`]: 'removed' });
    assert.match(
      await answered(),
      /^refused PROMOTION_CONFLICT .*\/self$/,
      'a folder with a link in it is not removed',
    );
  });

  it('a rename, of a file and of a whole folder, and names of 255 bytes that are no UTF-8 on the way', async () => {
    const long = '\xff'.repeat(255);
    scene.folderAt('folder');
    scene.put(Buffer.from(`folder/${long}`, 'latin1'), 'moved', 0o755);
    const moved = { file: 'moved', mode: 0o755 };
    scene.draftOf({
      folder: 'removed',
      [`folder/${long}`]: 'removed',
      [long]: { folder: 0o755 },
      [`${long}/${long}`]: moved,
      file: 'removed',
      FILE: { file: 'old' },
    });
    assert.equal(await answered(), 'promoted');
    assert.deepEqual([...scene.listing().keys()], ['.', 'FILE', long, `${long}/${long}`]);
    assert.equal(scene.listing().get(`${long}/${long}`)?.mode, '755');
  });
});

describe('what stands where a file or a folder was', function () {
  this.timeout(60_000);
  let scene: PromotionScene;
  beforeEach(() => {
    scene = new PromotionScene({ asCaller: true });
  });
  afterEach(() => scene.remove());

  it('S-141 FIFO, socket, device, and a folder for a file or a file for a folder are refused in under 100 ms', async function () {
    if (process.getuid?.() !== 0) skipBecause(this, 'a device is made by root');
    const server = net.createServer();
    const makers: Readonly<Record<string, (at: string) => void | Promise<void>>> = {
      'a FIFO': (at) => void spawnSync('mkfifo', [at]),
      'a socket': (at) => new Promise<void>((resolve) => void server.listen(at, () => resolve())),
      'a character device': (at) => void spawnSync('mknod', [at, 'c', '1', '5']),
      'a block device': (at) => void spawnSync('mknod', [at, 'b', '7', '200']),
      'the other kind': (at) => (at.endsWith('folder') ? fs.writeFileSync(at, '') : fs.mkdirSync(at)),
    };
    for (const name of ['file', 'folder']) {
      for (const [what, make] of Object.entries(makers)) {
        const at = String(scene.at(name));
        fs.rmSync(at, { recursive: true, force: true });
        if (name === 'file') scene.put(name, 'old');
        else scene.folderAt(name);
        scene.draftOf({ [name]: name === 'file' ? { file: 'new' } : 'removed' });
        fs.rmSync(at, { recursive: true });
        await make(at);
        // A machine may be busy: an open that waits would wait each time.
        let fastestMs = Infinity;
        for (let tries = 1; tries <= 3 && fastestMs >= 100; tries += 1) {
          const began = performance.now();
          const reply = await applyHere(scene);
          fastestMs = Math.min(fastestMs, performance.now() - began);
          assert.ok(reply.outcome === 'refused' && reply.code === 'PROMOTION_UNSAFE_PATH', `${what} for a ${name}`);
        }
        assert.ok(fastestMs < 100, `${what} for a ${name}: ${fastestMs} ms`);
        assert.ok(fs.lstatSync(at));
        if (server.listening) await new Promise((resolve) => void server.close(resolve));
      }
    }
  });
});
