/*
 * Every decoder that reads bytes of a peer, a network, a disk or a person, with whole samples to begin from and the errors that
 * it may answer with. Records that are chained are also tried with a chain that fits, as whoever writes the disk could make it.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { defaultPolicy, parsePolicy } from '../../daemon/config.ts';
import type { MarkRecord } from '../../daemon/ledger/records.ts';
import { encodeRecord, readMark, readSegment } from '../../daemon/ledger/segment.ts';
import { readIndex, sealFrozen, sealHeader, sealSteps } from '../../helpers/files/draft-index.ts';
import { manifestBytes, parseManifest } from '../../helpers/files/manifest.ts';
import { readRecords, RecordWriter } from '../../helpers/promote/journal-records.ts';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { canonicalBytes, parseDescriptor } from '../../helpers/protocol/descriptor.ts';
import { decodeMessage, encodeMessage } from '../../helpers/protocol/envelope.ts';
import { encodeFrame, FrameReader } from '../../helpers/protocol/frame.ts';
import { executorIdSchema, promotionIdSchema, runIdSchema } from '../../helpers/protocol/ids.ts';
import { findOperation } from '../../helpers/protocol/operations.ts';
import { fromPathText, toPathText } from '../../helpers/protocol/path-text.ts';
import { readReceiptExport } from '../../helpers/protocol/receipt-chain.ts';
import { admitKey, sha256, signPayload } from '../../helpers/protocol/signed.ts';
import { encodeStatement, openStatement, readUnverified } from '../../helpers/protocol/statements.ts';
import { parseConfiguration } from '../../helpers/runtime/configuration.ts';
import { decodeOrder, decodeReport, encodeOrder } from '../../helpers/supervisor/request.ts';
import { readQuestion } from '../../server/channel/wire.ts';
import { answerSchema, pairingCalls } from '../../server/protocol.ts';

/** One decoder under fire. */
export interface Decoder {
  readonly name: string;
  readonly samples: readonly Buffer[];
  /** Names of the errors that it says it throws. */
  readonly refuses: readonly string[];
  decode(bytes: Buffer): void;
}

const SHAPE = ['CodecError', 'ZodError'] as const;
const run = runIdSchema.parse(`run_${'7'.repeat(32)}`);
const executor = executorIdSchema.parse(`exr_${'1'.repeat(32)}`);
const key = generateKeyPairSync('ed25519');
const admitted = admitKey(key.publicKey.export({ format: 'der', type: 'spki' }).subarray(12));
const signed = { payload: randomBytes(120), signature: randomBytes(64) };
const heartbeat = encodeStatement('machine.heartbeat', {
  guard: 1,
  at: 1,
  executor,
  epoch: 1,
  ledgerCount: 0,
  ledgerHead: Buffer.alloc(32),
});
const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

const protocolDecoders: readonly Decoder[] = [
  {
    name: 'frame',
    samples: [
      encodeFrame(encode({ a: [1, 'b', null] })),
      Buffer.concat([encodeFrame(randomBytes(40)), encodeFrame(randomBytes(3))]),
    ],
    refuses: ['FrameError'],
    decode: (bytes) => void new FrameReader().push(bytes),
  },
  {
    name: 'codec',
    samples: [
      encode({ a: [1, -2, 1.5, 'text', null, true], b: { c: randomBytes(9) } }),
      encode(Array.from({ length: 40 }, (_, n) => ({ [`k${n}`]: n }))),
    ],
    refuses: ['CodecError'],
    decode: (bytes) => void decode(bytes),
  },
  {
    name: 'envelope',
    samples: [
      encodeMessage({ kind: 'request', version: 1, id: 1, type: 'keystore.sign', key: 'k', body: { a: 1 } }),
      encodeMessage({ kind: 'refusal', id: 1, code: 'BUSY', message: 'm' }),
    ],
    refuses: SHAPE,
    decode: (bytes) => void decodeMessage(bytes),
  },
  {
    name: 'statement, not signed',
    samples: [heartbeat],
    refuses: SHAPE,
    decode: (bytes) => void readUnverified('machine.heartbeat', { payload: bytes, signature: signed.signature }),
  },
  {
    name: 'statement, signed',
    samples: [heartbeat],
    refuses: SHAPE,
    decode: (bytes) =>
      void openStatement('machine.heartbeat', admitted, signPayload(key.privateKey, 'machine.heartbeat', bytes)),
  },
  {
    name: 'channel question',
    samples: [
      encode({ kind: 'question', id: 1, epoch: 1, sequence: 1, type: 'control', body: { nonce: randomBytes(32) } }),
      encode({
        kind: 'question',
        id: 2,
        epoch: 1,
        sequence: 2,
        type: 'receipts',
        body: { receipts: [signed], late: false },
      }),
    ],
    refuses: ['ChannelViolation'],
    decode: (bytes) => void readQuestion(bytes),
  },
  {
    name: 'channel answer',
    samples: [
      encode({ kind: 'answer', id: 1, epoch: 1, body: { commands: [{ envelope: signed, leased: signed }] } }),
      encode({ kind: 'refusal', id: 1, epoch: 1, code: 'PROOF_INVALID', message: 'm' }),
    ],
    refuses: SHAPE,
    decode: (bytes) => void answerSchema.parse(decode(bytes)),
  },
  {
    name: 'pairing call',
    samples: [
      encode({
        requestId: `req_${'a'.repeat(32)}`,
        machineName: 'm',
        publicKey: randomBytes(32),
        descriptor: randomBytes(50),
        descriptorSigned: signed,
        proof: signed,
      }),
    ],
    refuses: SHAPE,
    decode: (bytes) => void pairingCalls.start.body.parse(decode(bytes)),
  },
  {
    name: 'arguments',
    samples: [encode({ path: 'a/b', offset: 1, maxBytes: 9 })],
    refuses: SHAPE,
    decode: (bytes) => void findOperation('file.read')?.arguments.parse(decode(bytes)),
  },
  {
    name: 'supervisor record',
    samples: [encodeOrder({ order: 'start', row: 'promote', slot: 3, number: 9 })],
    refuses: ['RecordError'],
    decode: (bytes) => {
      decodeOrder(bytes);
      decodeReport(bytes);
    },
  },
  {
    name: 'path text',
    samples: [Buffer.from(toPathText(Buffer.from('dir/ä\xff%\n', 'latin1')))],
    refuses: ['PathTextError'],
    decode: (bytes) => void fromPathText(bytes.toString('utf8')),
  },
];

const mark: MarkRecord = {
  kind: 'mark',
  version: 1,
  segment: 1,
  count: 0,
  previousHead: new Uint8Array(32),
  highAt: 1,
  highFence: 0,
  commands: [],
  heads: [],
};
const first = encodeRecord(new Uint8Array(32), mark);
const second = encodeRecord(first.head, { kind: 'session', at: 2, session: signed });
const header = sealHeader({ run, rootIdentity: 'a'.repeat(64), createdAt: 1000 });
const steps = sealSteps(header.checksum, 1001, [
  {
    path: 'a/\xff',
    entry: { base: null, now: { type: 'file', content: 1, bytes: 3, mode: 0o644, sha256: 'b'.repeat(64) }, at: 1001 },
  },
]);
const promotion = promotionIdSchema.parse(`prm_${'8'.repeat(32)}`);
const index = Buffer.concat([header.bytes, steps.bytes, sealFrozen(steps.checksum, 1002, promotion).bytes]);
const staging = new RecordWriter().next({ kind: 'staging', stageIno: '12', rootMtimeNs: '1' });
/** What the first record of a journal is bound to (helpers/promote/journal-records.ts). */
const FIRST_CHAIN = sha256(Buffer.from('nessie-executor promotion journal 1'));
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'decoders-'));
process.once('exit', () => fs.rmSync(scratch, { recursive: true, force: true }));

const diskDecoders: readonly Decoder[] = [
  {
    name: 'ledger segment',
    samples: [Buffer.concat([first.bytes, second.bytes])],
    refuses: ['LedgerDamaged'],
    decode: (bytes) => {
      readMark(bytes);
      readSegment(bytes, new Uint8Array(32));
    },
  },
  {
    name: 'ledger record whose chain fits',
    samples: [encode(mark), encode({ kind: 'session', at: 2, session: signed })],
    refuses: ['LedgerDamaged'],
    decode: (bytes) => void readSegment(chained(bytes, sha256(new Uint8Array(32), bytes)), new Uint8Array(32)),
  },
  {
    name: 'journal',
    samples: [staging],
    refuses: ['JournalDamaged'],
    decode: (bytes) => void readRecords(bytes),
  },
  {
    name: 'journal record whose chain fits',
    samples: [encode({ kind: 'staging', stageIno: '12', rootMtimeNs: '1' })],
    refuses: ['JournalDamaged'],
    decode: (bytes) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      readRecords(chained(bytes, sha256(FIRST_CHAIN, length, bytes)));
    },
  },
  {
    name: 'draft index',
    samples: [index],
    refuses: ['DraftDamaged'],
    decode: (bytes) => {
      const file = path.join(scratch, 'index');
      fs.writeFileSync(file, bytes);
      const descriptor = fs.openSync(file, 'r');
      try {
        readIndex(descriptor);
      } finally {
        fs.closeSync(descriptor);
      }
    },
  },
];

const descriptor = {
  protocolVersion: 1,
  daemonVersion: '0.1.0',
  revision: 1,
  profiles: ['workspace'],
  platform: { architecture: 'x64', system: 'linux', majorVersion: 6 },
  supervisor: 'foreground',
  sandbox: { backend: 'none', reason: 'no-guest-support' },
  rootName: 'root',
  operations: ['file.read'],
  catalogueDigest: 'a'.repeat(64),
  policyDigest: 'b'.repeat(64),
  promotion: 'page',
  difference: 'page',
  limits: { resultBytes: 1, runtimeMs: 1000, concurrentCommands: 1 },
};
const side = { bytes: 1, mode: '644', sha256: 'c'.repeat(64) };
const exported = {
  format: 'nessie-executor.receipts.v1',
  executor,
  command: `cmd_${'2'.repeat(32)}`,
  statements: [{ type: 'control.command', payload: 'AAAA', signature: 'AAAA' }],
};

const textDecoders: readonly Decoder[] = [
  {
    name: 'descriptor',
    samples: [canonicalBytes(descriptor)],
    refuses: ['ZodError', 'SyntaxError'],
    decode: (bytes) => void parseDescriptor(bytes),
  },
  {
    name: 'manifest',
    samples: [
      manifestBytes({
        version: 2,
        run,
        rootIdentity: 'a'.repeat(64),
        changes: [{ path: 'a', type: 'file', kind: 'created', before: null, after: side }],
      }),
    ],
    refuses: ['ManifestError'],
    decode: (bytes) => void parseManifest(bytes),
  },
  {
    name: 'receipt export',
    samples: [text(exported)],
    refuses: ['ZodError', 'SyntaxError'],
    decode: (bytes) => void readReceiptExport(bytes.toString('utf8')),
  },
  {
    name: 'policy',
    samples: [text(defaultPolicy())],
    refuses: ['PolicyInvalid'],
    decode: (bytes) => void parsePolicy(bytes.toString('utf8')),
  },
  {
    name: 'supervisor configuration',
    samples: [text({ version: 1, root: '/r', configDir: '/c', stateDir: '/s', origin: 'https://host' })],
    refuses: ['StartRefusal'],
    decode: (bytes) => void parseConfiguration(bytes.toString('utf8')),
  },
];

/** All of them. */
export const decoders: readonly Decoder[] = [...protocolDecoders, ...diskDecoders, ...textDecoders];

function chained(payload: Buffer, checksum: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(payload.length);
  return Buffer.concat([length, payload, checksum]);
}
