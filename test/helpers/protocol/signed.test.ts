import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

import * as ed25519 from '@noble/ed25519';
import * as fc from 'fast-check';
import {
  admitKey,
  isSignedBy,
  KeyRefused,
  signedBytes,
  signPayload,
  statementDigest,
  STATEMENT_LIMIT_BYTES,
} from '../../../helpers/protocol/signed.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const ORDER = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;

function makeKey(): { privateKey: KeyObject; publicKey: Buffer } {
  const { privateKey } = generateKeyPairSync('ed25519');
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: Buffer.from(spki.subarray(-32)) };
}

function littleEndian(value: bigint): Buffer {
  return Buffer.from(hex(value.toString(16).padStart(64, '0')).toReversed());
}

/** Vectors of "Taming the Many EdDSAs" (Chalkias, Garillot, Nikolaenko; IACR eprint 2020/1244), cases 0 to 9. */
const SPECCHECK: readonly (readonly [message: string, publicKey: string, signature: string])[] = [
  [
    '8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a0000000000000000000000000000000000000000000000000000000000000000',
  ],
  [
    '9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04',
  ],
  [
    'aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab',
    'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e',
  ],
  [
    '9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79',
    'cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d',
    '9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009',
  ],
  [
    'e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c',
    'cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d',
    '160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09',
  ],
  [
    'e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c',
    'cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d',
    '21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405',
  ],
  [
    '85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40',
    '442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623',
    'e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514',
  ],
  [
    '85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40',
    '442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623',
    '8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa19427e71f98a473474f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e89a8c22',
  ],
  [
    'fdaebc429f4a735932a160da1301080c13280eea8bc280d1b392c6b9e6ba3a5a',
    'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f454d370c8d9fc323a41450f8d513eafeb5b0697390c1e505a0d4ddc71f566607',
  ],
  [
    '84b698d39be126ff55fe45079e6c8bf64a0d7db6994560b4e96b7021eb39c1a1',
    'f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f084d5b99c2a9463d9c8bd5026916996984eeec87ddf1d3be329006ace1b37b09',
  ],
];

/** Every spelling of a point of order 1, 2, 4 or 8, canonical or not (same paper, table 6). */
const SMALL_ORDER: readonly string[] = [
  `01${'00'.repeat(31)}`,
  `01${'00'.repeat(30)}80`,
  `ec${'ff'.repeat(30)}7f`,
  `ec${'ff'.repeat(31)}`,
  '00'.repeat(32),
  `${'00'.repeat(31)}80`,
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  `ed${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(31)}`,
  `ee${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(31)}`,
];

describe('admission of a public key', () => {
  it('ordinary keys are admitted, and their fingerprint is the digest of their bytes', function () {
    this.timeout(60_000);
    for (let made = 0; made < 500; made += 1) {
      const { publicKey } = makeKey();
      const admitted = admitKey(publicKey);
      assert.deepEqual(Buffer.from(admitted.bytes), publicKey);
      assert.match(admitted.fingerprint, /^[0-9a-f]{64}$/);
    }
  });

  it('every spelling of a point of small order is refused', () => {
    for (const spelling of SMALL_ORDER) assert.throws(() => admitKey(hex(spelling)), KeyRefused, spelling);
  });

  it('a key with a part of small order is refused, for every such part', () => {
    const torsion = ed25519.Point.fromBytes(hex(SMALL_ORDER[6] ?? ''));
    for (let made = 0; made < 10; made += 1) {
      let mixed = ed25519.Point.fromBytes(makeKey().publicKey);
      for (let multiple = 1; multiple < 8; multiple += 1) {
        mixed = mixed.add(torsion);
        assert.throws(() => admitKey(mixed.toBytes()), /mixed order/);
      }
    }
  });

  it('bytes that are no canonical point are refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        try {
          const admitted = admitKey(bytes);
          assert.deepEqual(Buffer.from(ed25519.Point.fromBytes(admitted.bytes).toBytes()), Buffer.from(bytes));
        } catch (error) {
          assert.ok(error instanceof KeyRefused, String(error));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('S-189 a key of another kind, shape, encoding or length is refused', () => {
    const { privateKey, publicKey } = makeKey();
    const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
    const pem = Buffer.from(createPublicKey(privateKey).export({ format: 'pem', type: 'spki' }));
    const kinds = [
      generateKeyPairSync('rsa', { modulusLength: 2048 }),
      generateKeyPairSync('ec', { namedCurve: 'P-256' }),
      generateKeyPairSync('x25519'),
      generateKeyPairSync('ed448'),
    ].map((pair) => pair.publicKey.export({ format: 'der', type: 'spki' }));
    const others = [
      Buffer.alloc(0),
      publicKey.subarray(1),
      Buffer.concat([publicKey, publicKey]),
      Buffer.concat([publicKey, Buffer.alloc(1)]),
      // The raw halves of the other kinds are no shorter and no longer than their kind has them.
      ...kinds.slice(2).map((key) => key.subarray(key.length - 57)),
      Buffer.from(publicKey.toString('hex')),
      spki,
      pem,
      Buffer.concat([pem, Buffer.from('and more\n')]),
      Buffer.concat([pem, pem]),
      Buffer.concat([spki, spki]),
    ];
    for (const key of [...others, ...kinds]) assert.throws(() => admitKey(key), KeyRefused);
  });

  it('an admitted key keeps its own copy of the bytes', () => {
    const { privateKey, publicKey } = makeKey();
    const admitted = admitKey(publicKey);
    const signed = signPayload(privateKey, 'test.one', Buffer.from('x'));
    publicKey.fill(0);
    assert.ok(isSignedBy(admitted, 'test.one', signed));
    assert.notDeepEqual(Buffer.from(admitted.bytes), publicKey);
  });
});

describe('signatures of admitted keys', () => {
  it('node:crypto and noble decide alike over the published vectors, and keys that they would decide apart are never admitted', () => {
    let decided = 0;
    for (const [message, publicKey, signature] of SPECCHECK) {
      let admitted;
      try {
        admitted = admitKey(hex(publicKey));
      } catch (error) {
        assert.ok(error instanceof KeyRefused);
        continue;
      }
      decided += 1;
      const own = verify(null, hex(message), admitted.verifier, hex(signature));
      assert.equal(own, nobleVerify(hex(signature), hex(message), hex(publicKey)));
    }
    // The keys of the other eight are of small or of mixed order.
    assert.equal(decided, 2);
  });

  it('node:crypto and noble decide alike over changed signatures, and the same signature with S + L is refused', function () {
    this.timeout(60_000);
    for (let made = 0; made < 20; made += 1) {
      const { privateKey, publicKey } = makeKey();
      const key = admitKey(publicKey);
      const { payload, signature } = signPayload(privateKey, 'test.one', Buffer.from(`message ${made}`));
      assert.ok(isSignedBy(key, 'test.one', { payload, signature }));
      const half = BigInt(`0x${Buffer.from(signature.subarray(32).toReversed()).toString('hex')}`);
      const malleated = Buffer.concat([signature.subarray(0, 32), littleEndian(half + ORDER)]);
      const flipped = Buffer.from(signature);
      flipped[made] = (flipped[made] ?? 0) ^ 1;
      const zeroes = Buffer.alloc(64);
      const smallR = Buffer.concat([hex(SMALL_ORDER[made % SMALL_ORDER.length] ?? ''), signature.subarray(32)]);
      for (const other of [malleated, flipped, zeroes, smallR]) {
        assert.equal(isSignedBy(key, 'test.one', { payload, signature: other }), false);
        assert.equal(nobleVerify(other, signedBytes('test.one', payload), publicKey), false);
      }
    }
  });

  it('a signature is false for another key, domain or payload, and for odd lengths, and never throws', () => {
    const { privateKey, publicKey } = makeKey();
    const key = admitKey(publicKey);
    const { payload, signature } = signPayload(privateKey, 'test.one', Buffer.from('x'));
    assert.ok(isSignedBy(key, 'test.one', { payload, signature }));
    assert.equal(isSignedBy(admitKey(makeKey().publicKey), 'test.one', { payload, signature }), false);
    assert.equal(isSignedBy(key, 'test.two', { payload, signature }), false);
    assert.equal(isSignedBy(key, 'test.one', { payload: Buffer.from('y'), signature }), false);
    for (const length of [0, 1, 63, 65, 128]) {
      assert.equal(isSignedBy(key, 'test.one', { payload, signature: Buffer.alloc(length) }), false);
    }
    const long = signPayload(privateKey, 'test.one', Buffer.alloc(STATEMENT_LIMIT_BYTES + 1));
    assert.equal(isSignedBy(key, 'test.one', long), false);
  });

  it('no two pairs of domain and payload are signed as the same bytes', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '\0', '.') });
    fc.assert(
      fc.property(part, part, part, part, (domain, payload, otherDomain, otherPayload) => {
        const one = signedBytes(domain, Buffer.from(payload));
        const other = signedBytes(otherDomain, Buffer.from(otherPayload));
        const isSame = domain === otherDomain && payload === otherPayload;
        assert.equal(one.equals(other), isSame);
        assert.equal(
          statementDigest(domain, Buffer.from(payload)).equals(statementDigest(otherDomain, Buffer.from(otherPayload))),
          isSame,
        );
      }),
      { numRuns: 3000 },
    );
  });
});

function nobleVerify(signature: Buffer, message: Buffer, publicKey: Buffer): boolean {
  try {
    return ed25519.verify(signature, message, publicKey, { zip215: false });
  } catch {
    // noble throws for what node calls false.
    return false;
  }
}
