import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { openKeyStore } from '../../../helpers/key-store/handlers.ts';
import type { KeyStoreBody } from '../../../helpers/key-store/protocol.ts';
import { KeyStoreRefused } from '../../../helpers/key-store/store.ts';
import { statementDigest } from '../../../helpers/protocol/signed.ts';
import type { Signed } from '../../../helpers/protocol/signed.ts';
import { readUnverified } from '../../../helpers/protocol/statements.ts';

type Statements = KeyStoreBody<'keystore.sign'>['statements'];

const EXECUTOR = `exr_${'a'.repeat(32)}`;
const digest = Buffer.alloc(32, 7);
const fields = { at: 1, executor: EXECUTOR, command: `cmd_${'c'.repeat(32)}`, epoch: 1, envelopeDigest: digest };
const beat = {
  type: 'machine.heartbeat',
  fields: { at: 1, executor: EXECUTOR, epoch: 1, ledgerCount: 0, ledgerHead: digest },
} as const;

describe('statements of one request that name each other', () => {
  let folder: string;
  let descriptor: number;
  let sign: (...statements: Statements) => Signed[];
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'signer-'));
    descriptor = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    const handlers = openKeyStore(descriptor, process.getuid?.() ?? 0);
    handlers['keystore.generate']({ purpose: 'machine' });
    sign = (...statements) => handlers['keystore.sign']({ key: 'current', statements }).signed;
  });
  afterEach(() => {
    fs.closeSync(descriptor);
    fs.rmSync(folder, { recursive: true });
  });

  it('a statement is linked to the one before it by the digest that its verifier will compute', () => {
    const [accepted, started] = sign(
      { type: 'machine.accepted', fields: { ...fields, previous: digest } },
      { type: 'machine.started', fields, linked: true },
    );
    assert.ok(accepted && started);
    const { previous, guard } = readUnverified('machine.started', started);
    assert.deepEqual(Buffer.from(previous), statementDigest('machine.accepted', accepted.payload));
    assert.equal(guard, readUnverified('machine.accepted', accepted).guard + 1);
  });

  const wrong: Record<string, Statements> = {
    'a link of the first statement': [{ type: 'machine.started', fields, linked: true }],
    'a link beside a digest of the asker': [
      beat,
      { type: 'machine.started', fields: { ...fields, previous: digest }, linked: true },
    ],
    'a link of a statement that has none': [beat, { ...beat, linked: true }],
  };
  for (const [what, statements] of Object.entries(wrong)) {
    it(`${what} is refused and signs nothing`, () => {
      assert.throws(
        () => sign(...statements),
        (error) => error instanceof KeyStoreRefused && error.code === 'STATEMENT_INVALID',
      );
      const [signed] = sign(beat);
      assert.equal(signed && readUnverified('machine.heartbeat', signed).guard, 0);
    });
  }
});
