import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { HelperGone, HelperRefused } from '../../../actors/helper-client.ts';
import { contentName } from '../../../helpers/files/draft.ts';
import type { PromoteReply } from '../../../helpers/promote/protocol.ts';
import { tryLock } from '../../../helpers/runtime/native-locks.ts';
import { asking, PromotionScene } from '../../fakes/promotion-scene.ts';
import type { Wanted } from '../../fakes/promotion-scene.ts';
import { installRows } from '../../fakes/real-row.ts';
import type { RealInstallation } from '../../fakes/real-row.ts';
import { skipBecause } from '../../skip.ts';

const isBusy = (error: unknown): boolean => error instanceof HelperRefused && error.code === 'BUSY';
const codeOf = (reply: PromoteReply<'promote.apply'>): string =>
  reply.outcome === 'promoted' ? 'promoted' : `${reply.outcome} ${reply.code}`;

describe('a promotion is refused, with nothing changed', function () {
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

  /** Applies and compares the whole tree, times included. */
  async function refuses(
    expected: string,
    body: Parameters<PromotionScene['apply']>[1] = { approval: scene.approve() },
  ): Promise<PromoteReply<'promote.apply'>> {
    const before = scene.listing();
    const reply = await scene.apply(installation, body);
    assert.equal(codeOf(reply), expected);
    assert.deepEqual(scene.listing(), before);
    assert.ok(!JSON.stringify(reply).includes(scene.folder), 'no host path in an answer');
    return reply;
  }

  it('the approval that these tests alter is taken when it is not altered', async () => {
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });

  const altered: readonly (readonly [string, string, () => Record<string, unknown>])[] = [
    ['another executor', 'PROMOTION_REJECTED', () => ({ executor: `exr_${'9'.repeat(32)}` })],
    ['another run', 'PROMOTION_REJECTED', () => ({ run: `run_${'9'.repeat(32)}` })],
    ['another manifest', 'PROMOTION_REVIEW_STALE', () => ({ manifestDigest: Buffer.alloc(32, 9) })],
    ['another root', 'PROMOTION_UNSAFE_ROOT', () => ({ rootIdentity: Buffer.alloc(32, 9) })],
    ['a time that has not come', 'PROMOTION_REJECTED', () => ({ notBefore: Date.now() + 120_000 })],
    ['a time that has passed', 'EXPIRED', () => ({ expiresAt: Date.now() - 1 })],
  ];
  for (const [sentence, code, changes] of altered) {
    it(`an approval with ${sentence}: ${code}`, async () => {
      await refuses(`refused ${code}`, { approval: scene.approve(changes()) });
    });
  }

  it('an approval of which any byte was changed after it was signed', async () => {
    const approval = scene.approve();
    for (const part of ['payload', 'signature'] as const) {
      for (let at = 0; at < approval[part].length; at += 127) {
        const bytes = Buffer.from(approval[part]);
        bytes[at] = (bytes[at] ?? 0) ^ 1;
        await refuses('refused PROMOTION_REJECTED', { approval: { ...approval, [part]: bytes } });
      }
    }
  });

  it('an approval that another key signed, and one that was signed for another purpose', async () => {
    const stranger = generateKeyPairSync('ed25519');
    await refuses('refused PROMOTION_REJECTED', { approval: scene.approve({}, stranger.privateKey) });
    await refuses('refused PROMOTION_REJECTED', { approval: scene.sign('control.command', scene.approve().payload) });
  });

  it('an approval that served once, and one that is older than the last', async () => {
    const older = scene.approve();
    const approval = scene.approve();
    assert.equal(codeOf(await scene.apply(installation, { approval })), 'promoted');
    scene.draftOf({ file: { file: 'newer' } });
    await refuses('refused PROMOTION_REJECTED', { approval });
    await refuses('refused PROMOTION_REJECTED', { approval: older });
    assert.equal(codeOf(await scene.apply(installation)), 'promoted');
  });

  it('an approval whose promotion was refused for a conflict serves no second time', async () => {
    const approval = scene.approve();
    fs.writeFileSync(scene.at('file'), 'edited');
    await refuses('refused PROMOTION_CONFLICT', { approval });
    fs.writeFileSync(scene.at('file'), 'old');
    await refuses('refused PROMOTION_REJECTED', { approval });
  });

  it('N-148 a draft that changed after its review: content, mode, an entry more', async () => {
    const approval = scene.approve();
    const content = path.join(scene.draft, String(contentName(1)));
    fs.writeFileSync(content, 'NEW');
    await refuses('rolled-back PROMOTION_REVIEW_STALE', { approval });
    const later: readonly Record<string, Wanted>[] = [
      { file: { file: 'new', mode: 0o755 }, other: { file: 'other' } },
      { file: { file: 'new' }, other: { file: 'other' }, more: { file: '' } },
    ];
    for (const wanted of later) {
      scene.draftOf({ file: { file: 'new' }, other: { file: 'other' } });
      const stale = scene.approve();
      scene.draftOf(wanted);
      await refuses('refused PROMOTION_REVIEW_STALE', { approval: stale });
    }
  });

  it('a draft whose content file is missing, is a link, or is longer than was reviewed', async () => {
    const content = path.join(scene.draft, String(contentName(1)));
    fs.unlinkSync(content);
    await refuses('rolled-back PROMOTION_REVIEW_STALE');
    fs.symlinkSync('/etc/hostname', content);
    await refuses('rolled-back PROMOTION_REVIEW_STALE');
    fs.unlinkSync(content);
    fs.writeFileSync(content, 'new and more');
    scene.give(content);
    await refuses('rolled-back PROMOTION_REVIEW_STALE');
  });

  it('S-144 a root that was replaced by another folder after the review', async () => {
    const approval = scene.approve();
    fs.renameSync(scene.root, `${scene.root}-moved`);
    fs.mkdirSync(scene.root);
    scene.give(scene.root);
    scene.put('file', 'old');
    await refuses('refused PROMOTION_UNSAFE_ROOT', { approval });
  });

  for (const [where, mode] of [
    ['', 0o755],
    [', below a folder that the root’s owner may not search', 0o700],
  ] as const) {
    it(`a root that contains a folder of the executor${where}`, async () => {
      const approval = scene.approve();
      const own = path.join(scene.root, 'own');
      Object.assign(scene, { own });
      fs.mkdirSync(own, { mode: 0o700 });
      scene.give(own);
      fs.chmodSync(scene.folder, mode);
      const reply = await scene.apply(installation, { approval });
      assert.equal(codeOf(reply), 'refused PROMOTION_UNSAFE_ROOT');
      assert.equal(fs.readFileSync(scene.at('file'), 'utf8'), 'old');
    });
  }

  it('a host file that was edited, removed, made a program or created since the review', async () => {
    const edits: readonly (() => void)[] = [
      () => scene.put('file', 'edited'),
      () => fs.unlinkSync(scene.at('file')),
      () => fs.chmodSync(scene.at('file'), 0o755),
      () => scene.put('other', 'mine'),
      () => scene.folderAt('other'),
    ];
    for (const edit of edits) {
      fs.rmSync(scene.at('other'), { force: true, recursive: true });
      scene.put('file', 'old');
      scene.draftOf({ file: { file: 'new' }, other: { file: 'other' } });
      const approval = scene.approve();
      edit();
      await refuses('refused PROMOTION_CONFLICT', { approval });
    }
  });

  it('a folder that is to go and holds something that was not reviewed', async () => {
    scene.folderAt('folder');
    scene.put('folder/seen', 'x');
    scene.draftOf({ folder: 'removed', 'folder/seen': 'removed' });
    scene.put('folder/unseen', 'mine');
    const reply = await refuses('refused PROMOTION_CONFLICT');
    assert.equal(reply.outcome === 'refused' && reply.path, 'folder/unseen');
  });

  describe('what stands at the path is not a plain file of the owner', () => {
    const UNSAFE = 'refused PROMOTION_UNSAFE_PATH';
    const traps: readonly (readonly [string, (where: string) => void])[] = [
      ['a link to a file', (where) => fs.symlinkSync('/etc/hostname', where)],
      ['a link to nothing', (where) => fs.symlinkSync('nowhere', where)],
      ['a link within the root', (where) => fs.symlinkSync('elsewhere', where)],
      ['a folder', (where) => fs.mkdirSync(where)],
      ['a FIFO', (where) => void spawnSync('mkfifo', [where])],
      [
        'a file with a second name',
        (where) => {
          fs.writeFileSync(where, 'old');
          fs.linkSync(where, `${where}-too`);
        },
      ],
    ];
    for (const [sentence, make] of traps) {
      it(sentence, async () => {
        const approval = scene.approve();
        fs.unlinkSync(scene.at('file'));
        make(String(scene.at('file')));
        if (sentence !== 'a link to a file') scene.give(scene.at('file'));
        const began = Date.now();
        const reply = await refuses(UNSAFE, { approval });
        assert.ok(Date.now() - began < 5000);
        assert.equal(reply.outcome === 'refused' && reply.path, 'file');
      });
    }

    const links: Readonly<Record<string, (at: string, outside: string) => string>> = {
      'to a folder outside': (_, outside) => outside,
      'by a relative way outside': (at, outside) => path.relative(path.dirname(String(scene.at(at))), outside),
      'to nothing': () => 'nowhere',
      'to another link': (_, outside) => {
        fs.symlinkSync(outside, scene.at('chain'));
        return String(scene.at('chain'));
      },
      'to itself': (at) => path.basename(at),
      'to a folder inside': () => String(scene.at('inside')),
    };
    for (const [sentence, targetOf] of Object.entries(links)) {
      it(`S-136 a link in the first, a middle and the last part of a path, ${sentence}`, async () => {
        for (const at of ['a', 'a/b', 'a/b/file']) {
          for (const name of ['a', 'chain', 'inside']) fs.rmSync(scene.at(name), { recursive: true, force: true });
          const outside = path.join(scene.folder, 'outside');
          fs.rmSync(outside, { recursive: true, force: true });
          for (const name of ['a', 'a/b', 'inside']) scene.folderAt(name);
          scene.put('a/b/file', 'old');
          scene.draftOf({ 'a/b/file': { file: 'new' } });
          const approval = scene.approve();
          fs.renameSync(scene.at(at), outside);
          fs.symlinkSync(targetOf(at, outside), scene.at(at));
          await refuses(UNSAFE, { approval });
          const kept = { a: 'b/file', 'a/b': 'file', 'a/b/file': '' }[at] ?? '';
          assert.equal(fs.readFileSync(path.join(outside, kept), 'utf8'), 'old');
        }
      });
    }

    it('a file that its owner may not write', async () => {
      scene.put('locked', 'old', 0o444);
      scene.draftOf({ locked: { file: 'new', mode: 0o444 } });
      await refuses(UNSAFE);
    });

    it('a file of another user', async function () {
      if (scene.uid === undefined) skipBecause(this, 'another user’s file can be made by root alone');
      scene.draftOf({ file: { file: 'new' } });
      const approval = scene.approve();
      fs.chownSync(scene.at('file'), 0, 0);
      await refuses(UNSAFE, { approval });
    });

    it('a mount: another file system, a bind of the same one, and a bind of one file', async function () {
      if (spawnSync('unshare', ['-m', 'true']).status !== 0) skipBecause(this, 'a mount needs CAP_SYS_ADMIN');
      scene.folderAt('below');
      scene.put('below/file', 'old');
      scene.folderAt('source');
      scene.put('source/file', 'old');
      const mounts: readonly (readonly string[])[] = [
        ['--bind', String(scene.at('source')), String(scene.at('below'))],
        ['--bind', String(scene.at('source/file')), String(scene.at('below/file'))],
        ['-t', 'tmpfs', 'tmpfs', String(scene.at('below'))],
      ];
      for (const options of mounts) {
        scene.draftOf({ 'below/file': { file: 'new' } });
        const approval = scene.approve();
        assert.equal(spawnSync('mount', [...options]).status, 0);
        try {
          const target = options.at(-1) ?? '';
          if (options[0] === '-t') fs.writeFileSync(path.join(target, 'file'), 'old');
          await refuses(UNSAFE, { approval });
        } finally {
          spawnSync('umount', [options.at(-1) ?? '']);
        }
      }
    });

    it('a file or its folder that an attribute freezes', async function () {
      const probe = spawnSync('chattr', ['+i', String(scene.at('file'))]);
      if (probe.status !== 0) skipBecause(this, 'chattr or a file system with its attributes');
      spawnSync('chattr', ['-i', String(scene.at('file'))]);
      for (const [name, flag] of [
        ['file', 'i'],
        ['file', 'a'],
        ['.', 'a'],
      ] as const) {
        scene.draftOf({ file: { file: 'new' } });
        const approval = scene.approve();
        spawnSync('chattr', [`+${flag}`, String(scene.at(name))]);
        try {
          await refuses(UNSAFE, { approval });
        } finally {
          spawnSync('chattr', [`-${flag}`, String(scene.at(name))]);
        }
      }
    });
  });

  it('S-146 new names that differ in case or normal form alone', async () => {
    for (const [one, two] of [
      ['Name', 'name'],
      ['\xc3\xa9', 'e\xcc\x81'],
    ] as const) {
      scene.draftOf({ [one]: { file: '1' }, [two]: { file: '2' } });
      await refuses('refused PROMOTION_MANIFEST_INVALID');
    }
  });

  it('the pin is missing, open to others, a link, or no pin', async () => {
    const pin = path.join(scene.owner, 'pin.json');
    const whole = fs.readFileSync(pin);
    const faults: readonly (() => void)[] = [
      () => fs.unlinkSync(pin),
      () => fs.chmodSync(pin, 0o666),
      () => {
        fs.renameSync(pin, `${pin}.real`);
        fs.symlinkSync('pin.json.real', pin);
      },
      () => fs.writeFileSync(pin, '{"version": 1}'),
      () => fs.writeFileSync(pin, 'not JSON'),
    ];
    for (const fault of faults) {
      const approval = scene.approve();
      fault();
      await assert.rejects(
        scene.apply(installation, { approval }),
        (error) =>
          error instanceof HelperRefused && error.code === 'PIN_INVALID' && !error.message.includes(scene.folder),
      );
      fs.rmSync(pin, { force: true });
      fs.writeFileSync(pin, whole, { mode: 0o600 });
      scene.give(pin);
    }
  });

  it('an apply before the recovery ends the process as a violation', async () => {
    const running = scene.start(installation);
    const asked = running.client.request('promote.apply', { approval: scene.approve() }, asking);
    await assert.rejects(asked, HelperGone);
    assert.deepEqual(await running.exited, { by: 'code', code: 64 });
  });

  it('a second promotion beside a first, of the same state folder or of the same root alone', async () => {
    const first = scene.start(installation);
    await first.client.request('promote.recover', { promotions: [] }, asking);
    await assert.rejects(scene.recover(installation), isBusy);
    const own = scene.own;
    Object.assign(scene, { own: path.join(scene.folder, 'other-own') });
    fs.mkdirSync(scene.own, { mode: 0o700 });
    scene.give(scene.own);
    const approval = scene.approve();
    const before = scene.listing();
    await assert.rejects(scene.apply(installation, { approval }), isBusy);
    assert.deepEqual(scene.listing(), before);
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    const reply = await scene.apply(installation, { approval });
    assert.equal(codeOf(reply), 'promoted', 'a refusal for want of the lock uses no approval up');
    Object.assign(scene, { own });
    assert.equal((await scene.recover(installation)).outcome, 'nothing-to-do');
  });

  it('a lock that a stranger holds on the root keeps promotions from it, and only what must be settled there waits for it', async () => {
    const stranger = fs.openSync(scene.root, 'r');
    assert.ok(tryLock(stranger));
    assert.equal((await scene.recover(installation)).outcome, 'nothing-to-do');
    await assert.rejects(scene.apply(installation), isBusy);
    fs.writeFileSync(path.join(scene.own, 'journal.prepared'), 'damaged', { mode: 0o600 });
    scene.give(path.join(scene.own, 'journal.prepared'));
    await assert.rejects(scene.recover(installation), isBusy);
    fs.closeSync(stranger);
    assert.equal((await scene.recover(installation)).outcome, 'needs-attention');
  });
});
