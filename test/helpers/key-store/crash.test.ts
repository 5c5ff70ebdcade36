import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { buildSync } from 'esbuild';
import { openKeyStore } from '../../../helpers/key-store/handlers.ts';
import type { KeyStoreHandlers } from '../../../helpers/key-store/handlers.ts';
import { admitKey } from '../../../helpers/protocol/signed.ts';
import { openStatement } from '../../../helpers/protocol/statements.ts';

const EXECUTOR = `exr_${'a'.repeat(32)}`;
const heartbeat = ['keystore.sign', { key: 'current', statements: [beat()] }] as const;

function beat() {
  const fields = { at: 1, executor: EXECUTOR, epoch: 1, ledgerCount: 0, ledgerHead: '00'.repeat(32) };
  return { type: 'machine.heartbeat', fields };
}

const guardsOf = (answers: Record<string, unknown>[], publicKey: Uint8Array): number[] =>
  answers.flatMap((answer) =>
    ((answer['signed'] ?? []) as { payload: string; signature: string }[]).map(({ payload, signature }) => {
      const signed = { payload: Buffer.from(payload, 'hex'), signature: Buffer.from(signature, 'hex') };
      const opened = openStatement('machine.heartbeat', admitKey(publicKey), signed);
      assert.ok(opened, 'signed by the key of the store');
      return opened.statement.guard;
    }),
  );

describe('key-store, ended at any call', () => {
  let scratch: string;
  let program: string;
  let folder: string;
  let count = 0;

  before(() => {
    scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'key-store-'));
    program = path.join(scratch, 'ended.mjs');
    buildSync({
      entryPoints: ['test/fixtures/key-store-ended.ts'],
      outfile: program,
      bundle: true,
      platform: 'node',
      format: 'esm',
      banner: { js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);" },
    });
  });
  beforeEach(() => {
    count += 1;
    folder = path.join(scratch, `store-${count}`);
    fs.mkdirSync(folder, { mode: 0o700 });
  });
  after(() => fs.rmSync(scratch, { recursive: true }));

  function run(endBefore: number, script: readonly unknown[]): { ended: boolean; answers: Record<string, unknown>[] } {
    const child = spawnSync(process.execPath, [program, folder, String(endBefore), JSON.stringify(script)], {
      encoding: 'utf8',
    });
    assert.ok(
      child.signal === 'SIGKILL' || child.status === 0,
      `${String(child.signal)} ${String(child.error)} ${child.stderr}`,
    );
    const answers = child.stdout.split('\n').filter(Boolean);
    return {
      ended: child.signal === 'SIGKILL',
      answers: answers.map((line) => JSON.parse(line) as Record<string, unknown>),
    };
  }

  function openFolder(): { handlers: KeyStoreHandlers; close: () => void } {
    const descriptor = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    return { handlers: openKeyStore(descriptor, process.getuid?.() ?? 0), close: () => fs.closeSync(descriptor) };
  }

  it('a key-store killed before each file call of a rotation goes on with exactly one usable key, and the rotation can be resumed', () => {
    const rotation = [
      ['keystore.rotate-prepare', {}],
      ['keystore.rotate-commit', { nextPublicKey: 'prepared' }],
    ];
    let ended = true;
    let step = 0;
    while (ended) {
      step += 1;
      fs.rmSync(folder, { recursive: true });
      fs.mkdirSync(folder, { mode: 0o700 });
      const [generated] = run(0, [['keystore.generate', { purpose: 'machine' }]]).answers;
      const result = run(step, rotation);
      ended = result.ended;
      const { handlers, close } = openFolder();
      const status = handlers['keystore.status']({});
      assert.ok(status.state !== 'empty', `a key is there after step ${step}`);
      const told = result.answers[0]?.['nextPublicKey'];
      const first = generated?.['publicKey'];
      const now = Buffer.from(status.publicKey).toString('hex');
      assert.ok(now === first || now === told, `the key is the old one or the prepared one after step ${step}`);
      if (result.answers.length > 1) assert.equal(now, told, 'an answered commit is durable');
      if (status.state === 'rotating' && told !== undefined) {
        assert.equal(Buffer.from(status.nextPublicKey).toString('hex'), told, 'a told next key is kept');
      }
      if (now === first) {
        const { nextPublicKey } = handlers['keystore.rotate-prepare']({});
        if (told !== undefined) assert.equal(Buffer.from(nextPublicKey).toString('hex'), told);
        assert.deepEqual(handlers['keystore.rotate-commit']({ nextPublicKey }).publicKey, nextPublicKey);
      } else {
        assert.deepEqual(
          handlers['keystore.rotate-commit']({ nextPublicKey: status.publicKey }).publicKey,
          status.publicKey,
        );
      }
      const after = handlers['keystore.status']({});
      assert.ok(after.state === 'ready' && after.rotation === 1);
      assert.deepEqual(fs.readdirSync(folder).toSorted(), ['guards', 'key']);
      close();
    }
    assert.ok(step > 8, `ended at ${step - 1} calls`);
  });

  it('a key-store killed before each file call of generate and erase is empty or whole', () => {
    for (let step = 1, ended = true; ended; step += 1) {
      fs.rmSync(folder, { recursive: true });
      fs.mkdirSync(folder, { mode: 0o700 });
      ended = run(step, [
        ['keystore.generate', { purpose: 'machine' }],
        ['keystore.rotate-prepare', {}],
        ['keystore.erase', {}],
      ]).ended;
      const { handlers, close } = openFolder();
      if (handlers['keystore.status']({}).state === 'empty') handlers['keystore.generate']({ purpose: 'machine' });
      handlers['keystore.erase']({});
      assert.deepEqual(handlers['keystore.status']({}), { state: 'empty' });
      close();
    }
  });

  it('a guard never repeats and only rises, whenever the process is killed', () => {
    const [generated] = run(0, [['keystore.generate', { purpose: 'machine' }]]).answers;
    const publicKey = Buffer.from(String(generated?.['publicKey']), 'hex');
    const many = [[...heartbeat, 700]];
    const guards: number[] = [];
    for (let step = 1, ended = true; ended; step += 1) {
      const result = run(step, many);
      ended = result.ended;
      guards.push(...guardsOf(result.answers, publicKey));
    }
    assert.ok(guards.length > 700);
    for (let at = 1; at < guards.length; at += 1) assert.ok((guards[at] ?? 0) > (guards[at - 1] ?? 0), 'rises');
  });
});
