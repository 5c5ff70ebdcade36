import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';

import * as z from 'zod';
import { CodecError, encode } from '../../../helpers/protocol/codec.ts';
import { admitKey, signPayload } from '../../../helpers/protocol/signed.ts';
import {
  controlStatements,
  encodeStatement,
  machineStatements,
  openStatement,
  readUnverified,
  statements,
} from '../../../helpers/protocol/statements.ts';
import type { StatementType } from '../../../helpers/protocol/statements.ts';

const { privateKey } = generateKeyPairSync('ed25519');
const key = admitKey(createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32));
const types = Object.keys(statements) as StatementType[];

const digest = Buffer.alloc(32, 1);
const id = (prefix: string): string => `${prefix}_${'a'.repeat(32)}`;
/** A value for each field that any statement has. */
const values: Record<string, unknown> = {
  guard: 7,
  at: 1,
  epoch: 1,
  revision: 1,
  capabilityRevision: 1,
  protocolVersion: 1,
  ledgerCount: 1,
  acknowledgedCount: 1,
  rotation: 1,
  fence: 1,
  sequence: 1,
  confirmedRevision: 1,
  maximumRuntimeMs: 1000,
  notBefore: 1,
  expiresAt: 2,
  requestId: id('req'),
  executor: id('exr'),
  oldExecutor: id('exr'),
  command: id('cmd'),
  run: id('run'),
  binding: id('bnd'),
  pairing: id('pair'),
  promotion: id('prm'),
  review: id('rev'),
  person: id('per'),
  agent: id('agt'),
  machineName: 'box',
  operation: 'file.read',
  mode: 'foreground',
  idempotencyKey: 'k',
  code: 'POLICY_STALE',
  answer: 'confirm',
  outcome: 'succeeded',
  standing: 'accepting',
  cancel: [],
  endedRuns: [],
  origin: { person: id('per'), conversation: 'c', project: id('prj') },
  repaired: false,
};
const verdicts: Partial<Record<StatementType, string>> = {
  'control.acknowledged': 'settled',
  'control.session': 'online',
};

function sample(type: StatementType): Record<string, unknown> {
  const shape: Record<string, z.ZodType> = statements[type].shape;
  return Object.fromEntries(
    Object.keys(shape).map((name) => [name, name === 'verdict' ? verdicts[type] : (values[name] ?? digest)]),
  );
}
const sign = (type: StatementType, payload: Uint8Array) => signPayload(privateKey, type, payload);
const encodeSample = (type: StatementType): Buffer => encodeStatement(type, sample(type) as never);

function openHeartbeat(fields: object) {
  return openStatement('machine.heartbeat', key, sign('machine.heartbeat', encode(fields)));
}

describe('statements', () => {
  for (const type of types) {
    it(`${type} is opened as it was signed`, () => {
      const signed = sign(type, encodeSample(type));
      const opened = openStatement(type, key, signed);
      assert.deepEqual(encode(opened?.statement), Buffer.from(signed.payload));
      assert.equal(opened?.digest.length, 32);
    });
  }

  it('S-194 a statement signed for one purpose is refused for every other, all pairs', () => {
    for (const type of types) {
      const signed = sign(type, encodeSample(type));
      for (const other of types)
        assert.equal(openStatement(other, key, signed) !== undefined, other === type, `${type} as ${other}`);
    }
  });

  it('every statement carries a guard, and no type is both a machine’s and a control plane’s', () => {
    for (const type of types) assert.ok('guard' in statements[type].shape, type);
    assert.equal(types.length, Object.keys(machineStatements).length + Object.keys(controlStatements).length);
    for (const type of Object.keys(machineStatements)) assert.match(type, /^machine\./);
    for (const type of Object.keys(controlStatements)) assert.match(type, /^control\./);
  });

  it('a field too many, a field missing and a field of another type are refused in every statement', () => {
    for (const type of types) {
      const whole = sample(type);
      const open = (fields: object) => openStatement(type, key, sign(type, encode(fields)));
      assert.throws(() => open({ ...whole, more: 1 }), z.ZodError, `${type} with more`);
      for (const name of Object.keys(whole)) {
        const { [name]: _left, ...rest } = whole;
        if (!(statements[type].shape as Record<string, z.ZodType>)[name]?.safeParse(undefined).success) {
          assert.throws(() => open(rest), z.ZodError, `${type} without ${name}`);
        }
        assert.throws(() => open({ ...whole, [name]: { odd: true } }), z.ZodError, `${type} with an odd ${name}`);
      }
    }
  });

  it('a payload whose signature fails is never parsed: what would break a parser has no effect', () => {
    const hostile = [Buffer.from([0xc1]), Buffer.alloc(0), Buffer.alloc(60_000, 0x91), encode({ guard: 'x' })];
    for (const payload of hostile) {
      for (const type of types) {
        assert.equal(openStatement(type, key, { payload, signature: Buffer.alloc(64) }), undefined);
      }
      const signed = sign('machine.heartbeat', payload);
      assert.throws(
        () => openStatement('machine.heartbeat', key, signed),
        (error) => error instanceof CodecError || error instanceof z.ZodError,
      );
    }
  });

  it('reading without verifying still refuses another shape', () => {
    const signed = { payload: encodeSample('machine.heartbeat'), signature: Buffer.alloc(64) };
    assert.equal(readUnverified('machine.heartbeat', signed).guard, 7);
    assert.throws(() => readUnverified('machine.session', signed), z.ZodError);
  });

  it('a time, counter or id that is not one is refused', () => {
    const whole = sample('machine.heartbeat');
    for (const at of [-1, 1.5, '1', null]) assert.throws(() => openHeartbeat({ ...whole, at }), z.ZodError);
    for (const executor of [
      'exr_',
      `exr_${'A'.repeat(32)}`,
      `exr_${'a'.repeat(33)}`,
      `cmd_${'a'.repeat(32)}`,
      `exr_${'a'.repeat(32)}\n`,
    ]) {
      assert.throws(() => openHeartbeat({ ...whole, executor }), z.ZodError);
    }
  });
});
