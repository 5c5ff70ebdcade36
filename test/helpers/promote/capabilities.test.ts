import assert from 'node:assert/strict';
import fs from 'node:fs';
import os, { constants } from 'node:os';
import path from 'node:path';

import { probe } from '../../../helpers/promote/capabilities.ts';
import { readRecords } from '../../../helpers/promote/journal-records.ts';
import type { PromoteReply } from '../../../helpers/promote/protocol.ts';
import { interpose, NativeError, syscall } from '../../../helpers/runtime/libc.ts';
import type { Argument, Interposer } from '../../../helpers/runtime/libc.ts';
import { O_TMPFILE, RENAME } from '../../../helpers/runtime/native-files.ts';
import { applyHere, liesIn } from '../../fakes/promote-here.ts';
import { timeless } from '../../fakes/promotion-scene.ts';
import type { PromotionScene } from '../../fakes/promotion-scene.ts';
import { twelveEntries } from '../../fakes/twelve-entries.ts';

const F_SETLEASE = 1024;

/** Answers the calls of a kind as a file system would that lacks it; undefined: the call is another one. */
type Lack = (name: string, args: readonly Argument[]) => number | undefined;

function refuse(call: string, errno: keyof typeof constants.errno): never {
  throw new NativeError(call, constants.errno[errno]);
}

const renames = (flags: number) => (name: string, args: readonly Argument[]) =>
  name === 'renameat2' && args[4] === flags;
/** The call as it is made where the flags are not known and not looked at. */
function plainly(args: readonly Argument[]): number {
  const [from = 0, fromName = null, to = 0, toName = null] = args;
  return syscall('renameat2', from, fromName, to, toName, 0);
}

const opensUnnamed = (name: string, args: readonly Argument[]): boolean => {
  const how = args[2];
  if (name !== 'openat2' || !Buffer.isBuffer(how)) return false;
  return (Number(how.readBigUInt64LE(0)) & O_TMPFILE) === O_TMPFILE;
};
const lacks: Readonly<Record<string, readonly [Lack, 'refused' | 'works', RegExp]>> = {
  'exchange is not known': [
    (name, args) => (renames(RENAME.EXCHANGE)(name, args) ? refuse(name, 'EINVAL') : undefined),
    'refused',
    /cannot exchange two files/,
  ],
  'exchange is a plain rename': [
    (name, args) => (renames(RENAME.EXCHANGE)(name, args) ? plainly(args) : undefined),
    'refused',
    /cannot exchange two files/,
  ],
  'no-replace is not known': [
    (name, args) => (renames(RENAME.NOREPLACE)(name, args) ? refuse(name, 'EINVAL') : undefined),
    'refused',
    /cannot rename a file without replacing/,
  ],
  'no-replace replaces': [
    (name, args) => (renames(RENAME.NOREPLACE)(name, args) ? plainly(args) : undefined),
    'refused',
    /cannot rename a file without replacing/,
  ],
  'the call is missing': [
    (name) => (name === 'renameat2' ? refuse(name, 'ENOSYS') : undefined),
    'refused',
    /cannot rename a file without replacing/,
  ],
  'there are no files without a name': [
    (name, args) => (opensUnnamed(name, args) ? refuse(name, 'EOPNOTSUPP') : undefined),
    'works',
    /no unnamed/,
  ],
  'a file without a name gets none': [
    (name) => (name === 'linkat' ? refuse(name, 'EPERM') : undefined),
    'works',
    /no unnamed/,
  ],
  'there are no leases': [
    (name, args) => (name === 'fcntl' && args[1] === F_SETLEASE ? refuse(name, 'EINVAL') : undefined),
    'works',
    /no leases/,
  ],
};

/** Lets the scene's root alone lie on a file system that lacks something. */
function lacking(scene: PromotionScene, lack: Lack): Interposer {
  let isOwnCall = false;
  return (name, args, make) => {
    const isRoot = name === 'linkat' ? liesIn(scene.root, args[2]) : liesIn(scene.root, args[0]);
    if (isOwnCall || !isRoot) return make();
    isOwnCall = true;
    try {
      return lack(name, args) ?? make();
    } finally {
      isOwnCall = false;
    }
  };
}

/** Puts a file of a stranger at a path once the promotion is prepared, when the path was looked at and found free. */
function meanwhile(scene: PromotionScene, name: string, then: Interposer): Interposer {
  let isPut = false;
  return (call, args, make, number) => {
    if (!isPut && fs.existsSync(path.join(scene.own, 'journal.prepared'))) {
      isPut = true;
      scene.put(name, 'a stranger’s');
    }
    return then(call, args, make, number);
  };
}

function foundIn(scene: PromotionScene): string {
  const rested = ['history', 'waiting'].flatMap((place) => {
    const folder = path.join(scene.own, place);
    return fs.existsSync(folder) ? fs.readdirSync(folder).map((id) => path.join(folder, id, 'journal')) : [];
  });
  const [journal = ''] = rested.filter((file) => fs.existsSync(file));
  const prepare = readRecords(fs.readFileSync(journal)).records.find(({ kind }) => kind === 'prepare');
  return (prepare?.kind === 'prepare' && prepare.fileSystem) || '';
}

const told = (reply: PromoteReply<'promote.apply'>): string => ('detail' in reply && reply.detail) || '';

describe('a file system that lacks something', function () {
  this.timeout(60_000);
  let scene: PromotionScene;
  beforeEach(() => {
    scene = twelveEntries({ asCaller: true });
  });
  afterEach(() => scene.remove());

  it('what the file system has is recorded in the journal, with its name', async () => {
    assert.equal((await applyHere(scene)).outcome, 'promoted');
    assert.match(foundIn(scene), /^[a-z0-9]+: exchange, no-replace, unnamed, leases, (?:no )?reflink$/);
  });

  it('S-178 without exchange, no-replace, unnamed files or leases it is refused by name or done by a way that is as careful: no stranger’s file is overwritten, and what was found is recorded', async () => {
    for (const [sentence, [lack, verdict, says]] of Object.entries(lacks)) {
      scene.remove();
      scene = twelveEntries({ asCaller: true });
      const before = scene.listing();
      const without = lacking(scene, lack);
      const raced = await applyHere(scene, meanwhile(scene, 'made', without));
      assert.ok(raced.outcome === 'rolled-back', `${sentence}: ${JSON.stringify(raced)}`);
      if (verdict === 'refused') {
        assert.equal(raced.code, 'PROMOTION_UNSUPPORTED', sentence);
        assert.match(told(raced), says);
        assert.match(told(raced), /^[a-z0-9]+, where the workspace root lies/, 'the file system is named');
        assert.deepEqual(scene.listing(), before, sentence);
        continue;
      }
      assert.equal(raced.code, 'PROMOTION_CONFLICT', sentence);
      assert.equal(fs.readFileSync(scene.at('made'), 'utf8'), 'a stranger’s', sentence);
      fs.unlinkSync(scene.at('made'));
      assert.deepEqual(timeless(scene.listing()), timeless(before), sentence);
      assert.equal((await applyHere(scene, without)).outcome, 'promoted', sentence);
      assert.match(foundIn(scene), says);
    }
  });

  it('what replaces nothing needs no exchange', async () => {
    scene.draftOf({ gone: 'removed', more: { file: 'more' } });
    const [lack] = lacks['exchange is not known'] ?? [];
    assert.ok(lack);
    assert.equal((await applyHere(scene, lacking(scene, lack))).outcome, 'promoted');
    assert.equal(fs.readFileSync(scene.at('more'), 'utf8'), 'more');
  });

  it('a file system that begins to ignore the flag after it was tried overwrites a stranger’s file: trying it is what protects', async () => {
    const [lack] = lacks['no-replace replaces'] ?? [];
    assert.ok(lack);
    const without = lacking(scene, lack);
    const late: Interposer = (name, args, make, number) =>
      fs.existsSync(path.join(scene.own, 'journal.prepared')) ? without(name, args, make, number) : make();
    scene.draftOf({ more: { file: 'more' } });
    assert.equal((await applyHere(scene, meanwhile(scene, 'more', late))).outcome, 'promoted');
    assert.equal(fs.readFileSync(scene.at('more'), 'utf8'), 'more');
  });

  it('what a call answers is believed only by what it did to the names', () => {
    const found = Object.entries(lies).map(([sentence, [nth, lie, missing]]) => {
      const probed = probedWith(nth, lie);
      assert.equal(probed[missing], false, sentence);
      return sentence;
    });
    assert.equal(found.length, 7);
    const honest = probedWith(0, () => undefined);
    assert.ok(honest.noReplace && honest.exchange && honest.unnamed);
  });
});

type Lie = (at: (name: string) => string) => void;

const taken = (): never => refuse('renameat2', 'EEXIST');
/** What the nth rename that is tried, or the link of a file without a name, does instead, and what is then not there. */
const lies: Readonly<Record<string, readonly [number | 'link', Lie, 'noReplace' | 'exchange' | 'unnamed']>> = {
  'a name that is taken is kept, and the other one lost': [
    1,
    (at) => {
      fs.renameSync(at('probe-one'), at('probe-free'));
      taken();
    },
    'noReplace',
  ],
  'a name that is said to be kept is given': [
    1,
    (at) => {
      fs.rmSync(at('probe-two'));
      fs.linkSync(at('probe-one'), at('probe-two'));
      taken();
    },
    'noReplace',
  ],
  'a free name is said to be given': [2, () => undefined, 'noReplace'],
  'and the way back is said to be done': [3, () => undefined, 'noReplace'],
  'two files are said to be exchanged': [4, () => undefined, 'exchange'],
  'one of two files that are exchanged is lost': [
    4,
    (at) => fs.renameSync(at('probe-two'), at('probe-one')),
    'exchange',
  ],
  'another file gets the name of one without': ['link', (at) => fs.writeFileSync(at('probe-one'), ''), 'unnamed'],
};

function probedWith(nth: number | 'link', lie: Lie): ReturnType<typeof probe> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'probed-'));
  const stage = fs.openSync(folder, 'r');
  let renamed = 0;
  interpose((name, _args, make) => {
    if (name === 'renameat2') renamed += 1;
    const isLie = name === 'linkat' ? nth === 'link' : name === 'renameat2' && renamed === nth;
    if (!isLie) return make();
    lie((file) => path.join(folder, file));
    return 0;
  });
  try {
    return probe(stage);
  } finally {
    interpose(undefined);
    fs.closeSync(stage);
    fs.rmSync(folder, { recursive: true });
  }
}
