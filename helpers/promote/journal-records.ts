/*
 * The records of a journal and their one spelling in bytes. Each record is
 *
 *   | length uint32 BE | payload, msgpack of codec.ts | chain, 32 bytes |
 *
 * chain(n) = SHA-256(chain(n-1) | length | payload), chain(0) = SHA-256 of the format's name. A record that was altered,
 * dropped, moved or taken from another journal breaks the chain at its place.
 */
import { decode, encode } from '../protocol/codec.ts';
import type { Plain } from '../protocol/codec.ts';
import { sha256 } from '../protocol/signed.ts';

/** Version of the records below; a journal of another version is left to the version that wrote it. */
export const JOURNAL_FORMAT = 2;
/** The first version knew no undo; its journals are read as those of promotions. */
const WITHOUT_UNDO = 1;

/** What a file or folder is, by which it is known again: `ino` and `mtimeNs` (ns since the Unix epoch) decimal, `sha256` 64 hexadecimal digits, empty for a folder. */
export interface Facts {
  readonly ino: string;
  readonly mode: number;
  readonly size: number;
  readonly mtimeNs: string;
  readonly sha256: string;
}

/** First record, on the disk before the stage folder is made. */
export interface Begin {
  readonly kind: 'begin';
  readonly format: number;
  readonly promotion: string;
  readonly executor: string;
  readonly run: string;
  /** Promotion that this one takes back, null where it applies a draft. */
  readonly undoes: string | null;
  /** 64 hexadecimal digits each, as the two below. */
  readonly manifestDigest: string;
  readonly approvalDigest: string;
  readonly rootIdentity: string;
  readonly rootIno: string;
  readonly rootDev: string;
  readonly rootMtimeNs: string;
  readonly bootId: string;
  /** Inode of the journal itself, decimal, by which a copy of it is known; absent in one of an earlier version. */
  readonly journalIno?: string | undefined;
  /** Name of the stage folder at the top of the root. */
  readonly stage: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
}

/** The stage folder as it was made. */
export interface Staging {
  readonly kind: 'staging';
  readonly stageIno: string;
  /** The root's modification time once the stage stood in it. */
  readonly rootMtimeNs: string;
}

/** One step: `slot` is its name in the stage folder. `before` is absent for what is created, `after` for what is deleted. */
export interface Step {
  readonly kind: 'step';
  readonly slot: number;
  readonly path: Uint8Array;
  readonly change: 'created' | 'modified' | 'deleted';
  readonly type: 'file' | 'directory';
  readonly before: Facts | null;
  readonly after: Facts | null;
}

/** A folder of the person that steps touch, as it was. */
export interface Folder {
  readonly kind: 'folder';
  readonly path: Uint8Array;
  readonly ino: string;
  readonly mtimeNs: string;
}

/** Last record of the preparation: from here on the tree may be a mix. `leases` tells whether the root's file system has them, `fileSystem` what else was found there, absent in journals of programs that did not look. */
export interface Prepare {
  readonly kind: 'prepare';
  readonly steps: number;
  readonly folders: number;
  readonly leases: boolean;
  readonly fileSystem?: string;
}

/** Every step is placed and every touched folder is on the disk. */
export interface Commit {
  readonly kind: 'commit';
  readonly at: number;
}

export type JournalRecord = Begin | Staging | Step | Folder | Prepare | Commit;

/** Bytes that are no journal of this version. */
export class JournalDamaged extends Error {
  override readonly name = 'JournalDamaged';
}

const FIRST_CHAIN = sha256(Buffer.from('nessie-executor promotion journal 1'));
const CHAIN_BYTES = 32;
const LENGTH_BYTES = 4;
const RECORD_LIMIT_BYTES = 65_536;

/** Spells records one after the other, each bound to all before it. */
export class RecordWriter {
  #chain = FIRST_CHAIN;

  constructor(chain: Buffer = FIRST_CHAIN) {
    this.#chain = chain;
  }

  /** Bytes of the next record. */
  next(record: JournalRecord): Buffer {
    const payload = encode(record);
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(payload.length, 0);
    this.#chain = sha256(this.#chain, length, payload);
    return Buffer.concat([length, payload, this.#chain]);
  }
}

/** What stands in the bytes of a journal: the unbroken records from the start, where they end, and whether that is the end of the file. */
export interface ReadRecords {
  readonly records: readonly JournalRecord[];
  readonly chain: Buffer;
  readonly endBytes: number;
  readonly whole: boolean;
}

/** Reads records up to the first that is not unbroken. Throws JournalDamaged for an unbroken record that has another shape: another program wrote it. */
export function readRecords(content: Buffer): ReadRecords {
  const records: JournalRecord[] = [];
  let chain = FIRST_CHAIN;
  let at = 0;
  while (content.length - at >= LENGTH_BYTES) {
    const length = content.readUInt32BE(at);
    const end = at + LENGTH_BYTES + length + CHAIN_BYTES;
    if (length === 0 || length > RECORD_LIMIT_BYTES || end > content.length) break;
    const payload = content.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length);
    const expected = sha256(chain, content.subarray(at, at + LENGTH_BYTES), payload);
    if (!expected.equals(content.subarray(end - CHAIN_BYTES, end))) break;
    records.push(readRecord(plainOf(payload)));
    chain = expected;
    at = end;
  }
  return { records, chain, endBytes: at, whole: at === content.length };
}

function plainOf(payload: Buffer): Plain {
  try {
    return decode(payload);
  } catch (cause) {
    throw new JournalDamaged('a record that is no msgpack value', { cause });
  }
}

type Field = 'text' | 'text or null' | 'text or absent' | 'count' | 'bytes' | 'flag' | 'facts' | 'change' | 'type';
const shapes: { readonly [Kind in JournalRecord['kind']]: Readonly<Record<string, Field>> } = {
  begin: {
    format: 'count',
    promotion: 'text',
    executor: 'text',
    run: 'text',
    undoes: 'text or null',
    manifestDigest: 'text',
    approvalDigest: 'text',
    rootIdentity: 'text',
    rootIno: 'text',
    rootDev: 'text',
    rootMtimeNs: 'text',
    bootId: 'text',
    journalIno: 'text or absent',
    stage: 'text',
    at: 'count',
  },
  staging: { stageIno: 'text', rootMtimeNs: 'text' },
  step: { slot: 'count', path: 'bytes', change: 'change', type: 'type', before: 'facts', after: 'facts' },
  folder: { path: 'bytes', ino: 'text', mtimeNs: 'text' },
  prepare: { steps: 'count', folders: 'count', leases: 'flag', fileSystem: 'text or absent' },
  commit: { at: 'count' },
};
const factsShape: Readonly<Record<string, Field>> = {
  ino: 'text',
  mode: 'count',
  size: 'count',
  mtimeNs: 'text',
  sha256: 'text',
};

type PlainFields = { [key: string]: Plain };

function readRecord(value: Plain): JournalRecord {
  if (!isObject(value) || typeof value['kind'] !== 'string' || !Object.hasOwn(shapes, value['kind']))
    throw new JournalDamaged('a record of unknown kind');
  // The line above found the key itself in `shapes`.
  const shape = shapes[value['kind'] as JournalRecord['kind']];
  const record = value['kind'] === 'begin' ? inThisFormat(value) : value;
  const { kind: _kind, ...fields } = record;
  if (!fits(fields, shape)) throw new JournalDamaged(`a ${value['kind']} record with other fields`);
  // `fits` compared every field with the shape of this kind.
  return record as unknown as JournalRecord;
}

function inThisFormat(begin: PlainFields): PlainFields {
  if (begin['format'] === WITHOUT_UNDO && begin['undoes'] === undefined)
    return { ...begin, format: JOURNAL_FORMAT, undoes: null };
  if (begin['format'] !== JOURNAL_FORMAT) throw new JournalDamaged('a journal of another version');
  return begin;
}

function fits(value: { readonly [key: string]: Plain }, shape: Readonly<Record<string, Field>>): boolean {
  const isKnown = Object.keys(value).every((key) => Object.hasOwn(shape, key));
  return isKnown && Object.entries(shape).every(([key, field]) => isField(value[key], field));
}

function isField(value: Plain | undefined, field: Field): boolean {
  switch (field) {
    case 'text or absent':
      return value === undefined || typeof value === 'string';
    case 'text':
      return typeof value === 'string';
    case 'text or null':
      return value === null || typeof value === 'string';
    case 'count':
      return typeof value === 'number' && Number.isInteger(value) && value >= 0;
    case 'bytes':
      return value instanceof Uint8Array;
    case 'flag':
      return typeof value === 'boolean';
    case 'change':
      return value === 'created' || value === 'modified' || value === 'deleted';
    case 'type':
      return value === 'file' || value === 'directory';
    case 'facts':
      return value === null || (isObject(value) && fits(value, factsShape));
  }
}

function isObject(value: Plain | undefined): value is PlainFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
