import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';

import * as z from 'zod';
import { CodecError, encode } from '../../../helpers/protocol/codec.ts';
import { FrameError, FrameReader } from '../../../helpers/protocol/frame.ts';
import { admitKey, sha256, signPayload, statementDigest } from '../../../helpers/protocol/signed.ts';
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

  it('S-193 what a sender says of keys and algorithms decides nothing: beside a signature it is not read, inside it is refused', () => {
    const stranger = generateKeyPairSync('ed25519');
    const theirs = stranger.publicKey.export({ format: 'der', type: 'spki' });
    const jwk = stranger.publicKey.export({ format: 'jwk' });
    const claims = { alg: 'none', kid: 'any', key: theirs, jwk, jku: 'https://a.example/key', publicKey: theirs };
    for (const type of types) {
      const payload = encodeSample(type);
      const forged = signPayload(stranger.privateKey, type, payload);
      assert.equal(openStatement(type, key, { ...forged, ...claims }), undefined, type);
      assert.equal(openStatement(type, key, { ...claims, payload, signature: new Uint8Array(0) }), undefined, type);
      assert.ok(openStatement(type, key, { ...sign(type, payload), ...claims }), type);
      for (const [name, claim] of Object.entries(claims)) {
        if (name in statements[type].shape) continue;
        const claiming = sign(type, encode({ ...sample(type), [name]: claim }));
        assert.throws(() => openStatement(type, key, claiming), z.ZodError, `${type} with ${name}`);
      }
    }
  });

  it('S-197 a key twice, an unknown or missing one, a value of another type and the names of every object are refused at any depth', () => {
    const refuses = (type: StatementType, payload: Uint8Array, what: string): void =>
      assert.throws(
        () => openStatement(type, key, sign(type, payload)),
        (error) => error instanceof CodecError || error instanceof z.ZodError,
        `${type} ${what}`,
      );
    let depths = 0;
    for (const type of types) {
      const whole = sample(type);
      assert.ok(openStatement(type, key, sign(type, written(whole))), type);
      for (const [map, depth] of mapsIn(whole)) {
        depths = Math.max(depths, depth);
        const first = Object.keys(map)[0] ?? '';
        refuses(type, written(whole, map, [[first, map[first]]]), `with ${first} twice`);
        for (const name of ['__proto__', 'constructor', 'prototype', 'more']) {
          refuses(type, written(whole, map, [[name, { polluted: 1 }]]), `with ${name}`);
        }
        for (const [name, value] of Object.entries(map)) {
          const isOptional = name === 'agent' || (depth === 0 && isLeftOut(type, name));
          if (!isOptional) refuses(type, written(whole, map, [], name), `without ${name}`);
          refuses(
            type,
            written(whole, map, [[name, typeof value === 'boolean' ? 1 : true]], name),
            `with an odd ${name}`,
          );
        }
      }
    }
    assert.equal(depths, 1, 'statements with maps inside were among them');
    assert.equal('polluted' in {}, false);
  });

  it('S-198 a number of a statement is an integer of the safe range in its one spelling', () => {
    const spellings: Record<string, string> = {
      '1.0': 'cb3ff0000000000000',
      '1e3': 'cb408f400000000000',
      '-0': 'cb8000000000000000',
      '01': 'cc01',
      '0001': 'cd0001',
      '1e400': 'cb7ff0000000000000',
      'no number': 'cb7ff8000000000000',
      '2^53 as an integer': 'cf0020000000000000',
      '2^53 as a float': 'cb4340000000000000',
      'the largest integer': 'cfffffffffffffffff',
      '1.5': 'cb3ff8000000000000',
      'minus one': 'ff',
      'minus two to the 63rd': 'd38000000000000000',
      'a single float': 'ca3f800000',
      'text of digits': 'a131',
    };
    let tried = 0;
    for (const type of types) {
      const whole = sample(type);
      for (const [name, value] of Object.entries(whole)) {
        if (typeof value !== 'number') continue;
        for (const [what, spelling] of Object.entries(spellings)) {
          // -1 is an integer of the safe range; that no version is negative is the gate's to say.
          if (name === 'protocolVersion' && what === 'minus one') continue;
          const raw = Buffer.from(spelling, 'hex');
          assert.throws(
            () => openStatement(type, key, sign(type, written(whole, whole, [[name, raw]], name, true))),
            (error) => error instanceof CodecError || error instanceof z.ZodError,
            `${name} of ${type} as ${what}`,
          );
          tried += 1;
        }
      }
    }
    assert.ok(tried > 500, `${tried} were tried`);
  });

  it('S-200 ten thousand levels, ten megabytes and a million keys are refused at once and in little memory', () => {
    const levels = Buffer.alloc(10_000, 0x91);
    const large = Buffer.alloc(10_485_760, 0xc0);
    const keys = Buffer.alloc(6_000_005, 0xc0);
    keys.writeUInt8(0xdf, 0);
    keys.writeUInt32BE(1_000_000, 1);
    for (let at = 0; at < 1_000_000; at += 1)
      keys.write(`\xa4${at.toString(36).padStart(4, '0')}`, 5 + at * 6, 'latin1');
    const most = keys.subarray(0, 60_000);
    const signed = [levels, large, keys, most].map((payload) => sign('control.command', payload));
    const framed = [large, keys].map(({ length }) =>
      Buffer.from([0, 0, 0, 0].map((_, at) => (length >>> (24 - 8 * at)) & 255)),
    );
    const tries = [
      ...signed.map((one) => () => assert.ok(isRefused(() => openStatement('control.command', key, one)))),
      ...framed.map((header) => () => assert.throws(() => new FrameReader().push(header), FrameError)),
    ];
    for (const [index, attempt] of tries.entries()) {
      const before = process.memoryUsage();
      const ms = Math.min(...[1, 2, 3].map(() => millisecondsOf(attempt)));
      const after = process.memoryUsage();
      assert.ok(ms < 50, `try ${index} took ${ms} ms`);
      const grown = after.heapTotal + after.arrayBuffers - before.heapTotal - before.arrayBuffers;
      assert.ok(grown < 67_108_864, `try ${index} took ${grown} bytes`);
    }
  });

  it('R20 R21 the digest of a command changes with every field of its envelope, and with every argument', () => {
    const whole = sample('control.command');
    const digestOf = (fields: Record<string, unknown>): string =>
      statementDigest('control.command', encodeStatement('control.command', fields as never)).toString('hex');
    const others: Record<string, unknown> = {
      executor: `exr_${'b'.repeat(32)}`,
      command: `cmd_${'b'.repeat(32)}`,
      run: `run_${'b'.repeat(32)}`,
      binding: `bnd_${'b'.repeat(32)}`,
      origin: { ...(whole['origin'] as object), conversation: 'd' },
      operation: 'file.list',
      mode: 'background',
      idempotencyKey: 'l',
    };
    const seen = new Set([digestOf(whole)]);
    const names = Object.keys(statements['control.command'].shape);
    for (const name of names) {
      const value = whole[name];
      const other = others[name] ?? (typeof value === 'number' ? value + 1 : Buffer.alloc(32, 2));
      seen.add(digestOf({ ...whole, [name]: other }));
    }
    assert.equal(seen.size, names.length + 1, 'no two of them are equal');
    assert.equal(digestOf(Object.fromEntries(Object.entries(whole).toReversed())), digestOf(whole));

    const input = { path: 'a', content: 'b', overwrite: true };
    const inputs = [input, { ...input, path: 'b' }, { ...input, content: 'c' }, { ...input, overwrite: false }];
    const { overwrite: _, ...fewer } = input;
    const digests = [...inputs, fewer].map((one) => digestOf({ ...whole, argumentsDigest: sha256(encode(one)) }));
    assert.equal(new Set(digests).size, digests.length);
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

/** Every map of a value with its depth, itself first. */
function mapsIn(value: unknown, depth = 0): [map: Record<string, unknown>, depth: number][] {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array || Array.isArray(value)) return [];
  const map = value as Record<string, unknown>;
  return [[map, depth], ...Object.values(map).flatMap((inner) => mapsIn(inner, depth + 1))];
}

/**
 * The msgpack of `whole`, by hand: in the map `changed` the key `without` is left out and `added` stands at its end, whatever keys are
 * there already. `isRaw` says that the values of `added` are msgpack themselves.
 */
function written(
  whole: Record<string, unknown>,
  changed?: Record<string, unknown>,
  added: readonly (readonly [string, unknown])[] = [],
  without?: string,
  isRaw = false,
): Buffer {
  const entries = Object.entries(whole)
    .filter(([name]) => whole !== changed || name !== without)
    .map(([name, value]) => {
      const isMap = mapsIn(value).length > 0;
      return [
        name,
        isMap ? written(value as Record<string, unknown>, changed, added, without) : encode(value),
      ] as const;
    });
  if (whole === changed) {
    for (const [name, value] of added) entries.push([name, isRaw ? (value as Buffer) : encode(value)]);
  }
  const header = entries.length < 16 ? [0x80 | entries.length] : [0xde, 0, entries.length];
  return Buffer.concat([
    Buffer.from(header),
    ...entries.flatMap(([name, value]) => [Buffer.from([0xa0 | name.length]), Buffer.from(name), value]),
  ]);
}

/** Whether a statement of this type is whole without this field. */
function isLeftOut(type: StatementType, name: string): boolean {
  return (statements[type].shape as Record<string, z.ZodType>)[name]?.safeParse(undefined).success ?? false;
}

function isRefused(open: () => unknown): boolean {
  try {
    return open() === undefined;
  } catch (error) {
    return error instanceof CodecError || error instanceof z.ZodError;
  }
}

function millisecondsOf(work: () => void): number {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}
