import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { openKeyStore } from '../../../helpers/key-store/handlers.ts';
import type { KeyStoreHandlers } from '../../../helpers/key-store/handlers.ts';
import { keyStoreRequests } from '../../../helpers/key-store/protocol.ts';
import type { KeyStoreBody } from '../../../helpers/key-store/protocol.ts';
import { KeyStoreRefused } from '../../../helpers/key-store/store.ts';
import { executorIdSchema } from '../../../helpers/protocol/ids.ts';
import { admitKey } from '../../../helpers/protocol/signed.ts';
import { encodeStatement, machineStatements, openStatement } from '../../../helpers/protocol/statements.ts';

const own = process.getuid?.() ?? 0;
const EXECUTOR = `exr_${'a'.repeat(32)}`;
const PAIRING = `pair_${'b'.repeat(32)}`;
const digest = Buffer.alloc(32, 7);
const beat = {
  type: 'machine.heartbeat',
  fields: { at: 1, executor: EXECUTOR, epoch: 1, ledgerCount: 0, ledgerHead: digest },
} as const;

const refusedWith =
  (code: string, message = /./) =>
  (error: unknown): boolean =>
    error instanceof KeyStoreRefused && error.code === code && message.test(error.message);

const sign = (handlers: KeyStoreHandlers, ...statements: KeyStoreBody<'keystore.sign'>['statements']) =>
  handlers['keystore.sign']({ key: 'current', statements }).signed;

const rotationFields = (publicKey: Uint8Array, nextPublicKey: Uint8Array, rotation = 1) => ({
  at: 1,
  executor: EXECUTOR,
  oldPublicKey: publicKey,
  newPublicKey: nextPublicKey,
  rotation,
});

describe('key-store', () => {
  let folder: string;
  const open: number[] = [];

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'key-store-'));
  });
  afterEach(() => {
    for (const descriptor of open.splice(0)) fs.closeSync(descriptor);
    fs.rmSync(folder, { recursive: true });
  });

  function start(uid = own): KeyStoreHandlers {
    const descriptor = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    open.push(descriptor);
    return openKeyStore(descriptor, uid);
  }
  function startWithKey(purpose: 'machine' | 'control-plane' = 'machine'): {
    handlers: KeyStoreHandlers;
    publicKey: Uint8Array;
  } {
    const handlers = start();
    return { handlers, publicKey: handlers['keystore.generate']({ purpose }).publicKey };
  }
  const file = (name: string): string => path.join(folder, name);

  describe('private storage', () => {
    it('a generated key lies in plain files of mode 0600 that belong to this user, whatever the umask', () => {
      const before = process.umask(0);
      try {
        startWithKey();
      } finally {
        process.umask(before);
      }
      assert.deepEqual(fs.readdirSync(folder).toSorted(), ['guards', 'key']);
      for (const name of ['guards', 'key']) {
        const stat = fs.lstatSync(file(name));
        assert.deepEqual([stat.isFile(), stat.mode & 0o7777, stat.uid, stat.nlink], [true, 0o600, own, 1]);
      }
    });

    const loosened: Record<string, [RegExp, () => void]> = {
      'a key that the group may read': [/mode 640/, () => fs.chmodSync(file('key'), 0o640)],
      'a key that everybody may read': [/mode 604/, () => fs.chmodSync(file('key'), 0o604)],
      'guards that the group may write': [/mode 620/, () => fs.chmodSync(file('guards'), 0o620)],
      'a folder that others may enter': [/folder has mode 711/, () => fs.chmodSync(folder, 0o711)],
      'a second name of the key': [/2 names/, () => fs.linkSync(file('key'), `${folder}-link`)],
      'a link in place of the key': [
        /link/,
        () => {
          fs.renameSync(file('key'), `${folder}-moved`);
          fs.symlinkSync(`${folder}-moved`, file('key'));
        },
      ],
      'a folder in place of the guards': [
        /another kind/,
        () => {
          fs.rmSync(file('guards'));
          fs.mkdirSync(file('guards'), { mode: 0o700 });
        },
      ],
      'an entry that no key-store writes': [/entry/, () => fs.writeFileSync(file('key.backup'), 'x', { mode: 0o600 })],
      'a key whose guards are gone': [/guards is missing/, () => fs.rmSync(file('guards'))],
      'a next key without a current one': [/no current/, () => fs.renameSync(file('key'), file('next'))],
      'a key of other bytes': [/damaged/, () => fs.writeFileSync(file('key'), 'x')],
      'a key whose public half does not fit': [
        /damaged/,
        () => {
          const record = fs.readFileSync(file('key'));
          const at = record.indexOf('seed') + 8;
          record[at] = (record[at] ?? 0) ^ 1;
          fs.writeFileSync(file('key'), record);
        },
      ],
    };
    for (const [what, [message, spoil]] of Object.entries(loosened)) {
      it(`${what} refuses every request and names the rule, never a path`, () => {
        startWithKey();
        spoil();
        const handlers = start();
        for (const type of Object.keys(handlers)) {
          const ask = handlers[type as 'keystore.status'] as (body: unknown) => unknown;
          assert.throws(() => ask({ statements: [] }), refusedWith('STORE_UNSAFE', message));
        }
        assert.throws(
          () => handlers['keystore.status']({}),
          (error) => error instanceof Error && !error.message.includes(folder),
        );
        fs.rmSync(`${folder}-link`, { force: true });
        fs.rmSync(`${folder}-moved`, { force: true });
      });
    }

    it('a folder of another user refuses every request', () => {
      startWithKey();
      assert.throws(() => start(own + 1)['keystore.status']({}), refusedWith('STORE_UNSAFE', /another user/));
    });

    it('what an interrupted write left is removed at the start', () => {
      const { publicKey } = startWithKey();
      fs.writeFileSync(file('.new-0123456789abcdef'), 'half', { mode: 0o600 });
      const status = start()['keystore.status']({});
      assert.deepEqual(status, { state: 'ready', purpose: 'machine', publicKey, rotation: 0 });
      assert.deepEqual(fs.readdirSync(folder).toSorted(), ['guards', 'key']);
    });

    it('a record is on disk, file and folder flushed, before the answer, and never half there', () => {
      const log: string[] = [];
      const names = ['openSync', 'writeFileSync', 'fsyncSync', 'renameSync'] as const;
      const real = names.map((name) => fs[name]);
      for (const [index, name] of names.entries()) {
        Object.assign(fs, {
          [name]: (...input: never[]) => {
            log.push(name.replace('Sync', ''));
            return (real[index] as (...all: never[]) => unknown)(...input);
          },
        });
      }
      try {
        start()['keystore.generate']({ purpose: 'machine' });
      } finally {
        Object.assign(fs, Object.fromEntries(names.map((name, index) => [name, real[index]])));
      }
      const one = ['open', 'writeFile', 'fsync', 'rename', 'fsync'];
      assert.deepEqual(log.slice(-2 * one.length), [...one, ...one]);
    });
  });

  describe('signing', () => {
    it('several statements are signed in order by the key, with rising guards, and survive a restart', () => {
      const { handlers, publicKey } = startWithKey();
      const key = admitKey(publicKey);
      const guards: number[] = [];
      for (const keys of [handlers, start()]) {
        for (const signed of sign(keys, beat, beat, beat))
          guards.push(openStatement('machine.heartbeat', key, signed)?.statement.guard ?? -1);
      }
      assert.deepEqual(guards, [0, 1, 2, 1024, 1025, 1026]);
    });

    it('what is signed has the one spelling that statements.ts gives these fields', () => {
      const { handlers } = startWithKey();
      const [signed] = sign(handlers, {
        type: beat.type,
        fields: Object.fromEntries(Object.entries(beat.fields).toReversed()),
      });
      const fields = { ...beat.fields, executor: executorIdSchema.parse(EXECUTOR), guard: 0 };
      assert.deepEqual(Buffer.from(signed?.payload ?? []), encodeStatement('machine.heartbeat', fields));
    });

    it('without a key nothing is signed, rotated or committed', () => {
      const handlers = start();
      assert.deepEqual(handlers['keystore.status']({}), { state: 'empty' });
      assert.throws(() => sign(handlers, beat), refusedWith('KEY_ABSENT'));
      assert.throws(() => handlers['keystore.rotate-prepare']({}), refusedWith('KEY_ABSENT'));
      assert.throws(() => handlers['keystore.rotate-commit']({ nextPublicKey: digest }), refusedWith('KEY_ABSENT'));
    });

    it('there is one key: a second one is refused', () => {
      const { handlers } = startWithKey();
      assert.throws(() => handlers['keystore.generate']({ purpose: 'machine' }), refusedWith('KEY_EXISTS'));
    });

    it('the purpose is fixed when the key is made: every statement of the other purpose is refused, after a restart too', () => {
      const { handlers } = startWithKey('control-plane');
      for (const keys of [handlers, start()]) {
        for (const type of Object.keys(machineStatements)) {
          const statement = { type: type as 'machine.heartbeat', fields: {} };
          assert.throws(() => sign(keys, statement), refusedWith('PURPOSE_MISMATCH'));
        }
      }
    });

    const malformed: Record<string, object> = {
      'a missing field': { at: 1, executor: EXECUTOR, epoch: 1, ledgerCount: 0 },
      'a field too many': { ...beat.fields, more: 1 },
      'a guard of the asker': { ...beat.fields, guard: 5 },
      'a field of another type': { ...beat.fields, epoch: '1' },
      'an id of another kind': { ...beat.fields, executor: `cmd_${'a'.repeat(32)}` },
      'a digest of another length': { ...beat.fields, ledgerHead: Buffer.alloc(31) },
    };
    for (const [what, fields] of Object.entries(malformed)) {
      it(`${what} is refused, signs none of its batch and uses up no guard`, () => {
        const { handlers, publicKey } = startWithKey();
        const statement = { type: beat.type, fields: fields as Record<string, unknown> };
        assert.throws(() => sign(handlers, beat, statement), refusedWith('STATEMENT_INVALID'));
        const [signed] = sign(handlers, beat);
        assert.ok(signed);
        assert.equal(openStatement('machine.heartbeat', admitKey(publicKey), signed)?.statement.guard, 0);
      });
    }

    it('a statement that names a public key must name this one: nobody enrols a key that this store does not hold', () => {
      const { handlers, publicKey } = startWithKey();
      const fields = { at: 1, requestId: `req_${'c'.repeat(32)}`, machineName: 'box', descriptorDigest: digest };
      const start = (key: Uint8Array) =>
        sign(handlers, { type: 'machine.pair-start', fields: { ...fields, publicKey: key } });
      assert.throws(() => start(digest), refusedWith('STATEMENT_INVALID', /publicKey/));
      assert.equal(start(publicKey).length, 1);
    });
  });

  describe('rotation', () => {
    it('one statement is signed by both keys over the same bytes, and then the next key is the only one', () => {
      const { handlers, publicKey } = startWithKey();
      const { nextPublicKey, rotation } = handlers['keystore.rotate-prepare']({});
      const fields = rotationFields(publicKey, nextPublicKey, rotation);
      const { current, next } = handlers['keystore.rotate-sign']({ type: 'machine.rotation', fields });
      assert.deepEqual(current.payload, next.payload);
      const opened = openStatement('machine.rotation', admitKey(publicKey), current);
      assert.ok(opened && openStatement('machine.rotation', admitKey(nextPublicKey), next));
      assert.deepEqual(handlers['keystore.rotate-commit']({ nextPublicKey }).publicKey, nextPublicKey);
      assert.deepEqual(handlers['keystore.rotate-commit']({ nextPublicKey }).publicKey, nextPublicKey);
      const [signed] = sign(handlers, beat);
      assert.ok(signed);
      const beaten = openStatement('machine.heartbeat', admitKey(nextPublicKey), signed);
      assert.ok(
        (beaten?.statement.guard ?? 0) > opened.statement.guard,
        'guards of the next key go on where both signed',
      );
      assert.equal(openStatement('machine.heartbeat', admitKey(publicKey), signed), undefined);
    });

    it('no asker gets a rotation signed by one key, to a foreign key, or under another number', () => {
      const { handlers, publicKey } = startWithKey();
      const sole = { type: 'machine.rotation', fields: rotationFields(publicKey, digest) } as const;
      assert.throws(() => sign(handlers, sole), refusedWith('STATEMENT_INVALID', /both keys/));
      assert.throws(() => handlers['keystore.rotate-sign'](sole), refusedWith('ROTATION_ABSENT'));
      const { nextPublicKey } = handlers['keystore.rotate-prepare']({});
      const ask = (fields: Record<string, unknown>) => () =>
        handlers['keystore.rotate-sign']({ type: 'machine.rotation', fields });
      assert.throws(ask(rotationFields(publicKey, digest)), refusedWith('STATEMENT_INVALID', /newPublicKey/));
      assert.throws(ask(rotationFields(digest, nextPublicKey)), refusedWith('STATEMENT_INVALID', /oldPublicKey/));
      assert.throws(ask(rotationFields(publicKey, nextPublicKey, 2)), refusedWith('STATEMENT_INVALID', /rotation/));
      const control = { type: 'control.rotation' as const, fields: {} };
      assert.throws(() => handlers['keystore.rotate-sign'](control), refusedWith('PURPOSE_MISMATCH'));
    });

    it('the next key signs what pairs it anew or proves that it was taken, and nothing else', () => {
      const { handlers, publicKey } = startWithKey();
      const asked = (
        type: 'machine.pair-poll' | 'machine.heartbeat' | 'machine.session',
        fields: Record<string, unknown>,
      ) => handlers['keystore.sign']({ key: 'next', statements: [{ type, fields }] }).signed[0];
      assert.throws(() => asked('machine.pair-poll', { at: 1, pairing: PAIRING }), refusedWith('ROTATION_ABSENT'));
      const { nextPublicKey } = handlers['keystore.rotate-prepare']({});
      const poll = asked('machine.pair-poll', { at: 1, pairing: PAIRING });
      assert.ok(poll && openStatement('machine.pair-poll', admitKey(nextPublicKey), poll));
      assert.throws(() => asked('machine.heartbeat', beat.fields), refusedWith('STATEMENT_INVALID', /next key/));
      const session = {
        at: 1,
        executor: EXECUTOR,
        challenge: digest,
        nonce: digest,
        ledgerHead: digest,
        ledgerCount: 0,
        acknowledgedHead: digest,
        acknowledgedCount: 0,
        capabilityRevision: 1,
        repaired: false,
      };
      const proof = asked('machine.session', session);
      assert.ok(proof && openStatement('machine.session', admitKey(nextPublicKey), proof));
      const fields = {
        at: 1,
        pairing: PAIRING,
        oldExecutor: EXECUTOR,
        oldPublicKey: publicKey,
        newPublicKey: nextPublicKey,
      };
      assert.ok(handlers['keystore.rotate-sign']({ type: 'machine.replace', fields }));
    });

    it('a prepared rotation is the same one until it is abandoned, and a foreign key is never committed', () => {
      const { handlers, publicKey } = startWithKey();
      const first = handlers['keystore.rotate-prepare']({});
      assert.deepEqual(start()['keystore.rotate-prepare']({}), first);
      assert.throws(
        () => handlers['keystore.rotate-commit']({ nextPublicKey: digest }),
        refusedWith('ROTATION_ABSENT'),
      );
      handlers['keystore.rotate-abandon']({});
      handlers['keystore.rotate-abandon']({});
      assert.deepEqual(handlers['keystore.status']({}), { state: 'ready', purpose: 'machine', publicKey, rotation: 0 });
      assert.notDeepEqual(handlers['keystore.rotate-prepare']({}).nextPublicKey, first.nextPublicKey);
    });
  });

  it('erasing leaves no key, and the guards go on', () => {
    const { handlers } = startWithKey();
    handlers['keystore.rotate-prepare']({});
    handlers['keystore.erase']({});
    assert.deepEqual(handlers['keystore.status']({}), { state: 'empty' });
    assert.deepEqual(fs.readdirSync(folder), ['guards']);
    assert.throws(() => sign(handlers, beat), refusedWith('KEY_ABSENT'));
  });

  it('a disk that cannot be written refuses what must be on it, and signs on within the reserved block', () => {
    const { handlers } = startWithKey();
    const real = fs.openSync;
    Object.assign(fs, {
      openSync: (...input: Parameters<typeof fs.openSync>) => {
        if (typeof input[1] === 'number' && (input[1] & fs.constants.O_CREAT) !== 0)
          throw new Error('ENOSPC: injected');
        return real(...input);
      },
    });
    try {
      assert.throws(() => handlers['keystore.rotate-prepare']({}), refusedWith('STORE_UNWRITABLE'));
      for (let signed = 0; signed < 1024; signed += 1) assert.equal(sign(handlers, beat).length, 1);
      assert.throws(() => sign(handlers, beat), refusedWith('GUARD_UNWRITABLE'));
    } finally {
      fs.openSync = real;
    }
    assert.equal(sign(handlers, beat).length, 1);
  });

  it('every answer has the shape of protocol.ts', () => {
    const { handlers } = startWithKey();
    const shapes = keyStoreRequests;
    shapes['keystore.status'].reply.parse(handlers['keystore.status']({}));
    shapes['keystore.sign'].reply.parse({ signed: sign(handlers, beat) });
    shapes['keystore.rotate-prepare'].reply.parse(handlers['keystore.rotate-prepare']({}));
    shapes['keystore.status'].reply.parse(handlers['keystore.status']({}));
    shapes['keystore.erase'].reply.parse(handlers['keystore.erase']({}));
    shapes['keystore.status'].reply.parse(handlers['keystore.status']({}));
  });
});
