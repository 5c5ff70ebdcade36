/*
 * The index of one draft: an append-only file of checksummed records, from which the whole draft is known.
 *
 *   record = | length, uint32 BE | SHA-256(previous checksum | payload), 32 bytes | payload, msgpack of codec.ts |
 *
 * The first record is the header. A `changes` record is one step of a run and holds everything that the step changed, so a
 * step is whole or absent. The checksum of a record covers all records before it.
 *
 * INVARIANT 1  Content files are complete on disk before the record that names them, and are never written again.
 * INVARIANT 2  A record is on disk before anyone hears that its step succeeded.
 * INVARIANT 3  Only the last record may be torn, by a crash; it is no step then. Any other damage ends all use of the draft.
 */
import { createHash } from 'node:crypto';
import { fstatSync } from 'node:fs';

import { decode, encode } from '../protocol/codec.ts';
import { digestTextSchema, promotionIdSchema, runIdSchema, type PromotionId, type RunId } from '../protocol/ids.ts';
import { pread } from '../runtime/native-files.ts';

/** Raised by any change of a record. */
export const DRAFT_VERSION = 3;
/** Versions that are read: in 2 nothing was listed as lost, and `promote` refuses what was not listed. */
const READABLE: ReadonlySet<unknown> = new Set([2, DRAFT_VERSION]);
/** Largest payload of a record in bytes; a step that changes every file of a full draft fits. */
export const RECORD_LIMIT_BYTES = 33_554_432;

/** Path bytes as one character a byte: a key that sorts in byte order. */
export type PathKey = string;

/** What stood in the root when the draft first touched a path; `stamp` is its identity then (see stampOf), `lost` what a file in its place would not have (see lossesOf), absent for nothing. */
export type Base =
  | {
      readonly type: 'file';
      readonly bytes: number;
      readonly mode: number;
      readonly sha256: string;
      readonly stamp: string;
      readonly lost?: readonly string[];
    }
  | { readonly type: 'directory'; readonly mode: number; readonly stamp: string };

/** What stands at a path now. `content` is the number of a content file; 0 means that the base's content stays. */
export type Now =
  | {
      readonly type: 'file';
      readonly content: number;
      readonly bytes: number;
      readonly mode: number;
      readonly sha256: string;
    }
  | { readonly type: 'directory'; readonly mode: number }
  | { readonly type: 'removed' };

/** One touched path; a base of null means that nothing stood there. Modes are permission bits, the base's with set-id and sticky. */
export interface Entry {
  readonly base: Base | null;
  readonly now: Now;
  /** Time of the last step that changed it, ms since the Unix epoch. */
  readonly at: number;
}

/** One path of a step: its new entry, or null when the draft does not touch it any more. */
export interface Step {
  readonly path: PathKey;
  readonly entry: Entry | null;
}

/** Whose draft it is; `createdAt` in ms since the Unix epoch. */
export interface DraftHeader {
  readonly run: RunId;
  /** 64 hexadecimal digits. */
  readonly rootIdentity: string;
  readonly createdAt: number;
}

/** Everything that an index says, and where its next record goes. */
export interface IndexState {
  readonly header: DraftHeader;
  readonly entries: Map<PathKey, Entry>;
  /** Promotion that the draft is frozen for, null while it may be changed. */
  readonly frozenFor: PromotionId | null;
  readonly changedAt: number;
  readonly checksum: Buffer;
  /** Bytes of whole records; what follows them is torn. */
  readonly wholeBytes: number;
  readonly fileBytes: number;
}

/** An index that cannot be believed; `message` names the place and no path. */
export class DraftDamaged extends Error {
  override readonly name = 'DraftDamaged';
}

const HEADER_BYTES = 36;
const LENGTH_BYTES = 4;

const chain = (previous: Buffer, payload: Uint8Array): Buffer =>
  createHash('sha256').update(previous).update(payload).digest();

/** Bytes of a record and its checksum, which the next record needs. */
export interface Sealed {
  readonly bytes: Buffer;
  readonly checksum: Buffer;
}

function seal(previous: Buffer, value: unknown): Sealed {
  const payload = encode(value);
  if (payload.length > RECORD_LIMIT_BYTES)
    throw new RangeError(`record of ${payload.length} bytes, allowed are ${RECORD_LIMIT_BYTES}`);
  const checksum = chain(previous, payload);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(payload.length);
  return { bytes: Buffer.concat([length, checksum, payload]), checksum };
}

const NOTHING_BEFORE = Buffer.alloc(32);

/** First record of an index. */
export function sealHeader(header: DraftHeader): Sealed {
  return seal(NOTHING_BEFORE, { record: 'draft', version: DRAFT_VERSION, ...header });
}

/** Record of one step; `at` in ms since the Unix epoch. */
export function sealSteps(previous: Buffer, at: number, steps: readonly Step[]): Sealed {
  const packed = steps.map(({ path, entry }) => ({ path: Buffer.from(path, 'latin1'), entry }));
  return seal(previous, { record: 'changes', at, steps: packed });
}

/** Record of a draft that is frozen for a promotion, or may be changed again. */
export function sealFrozen(previous: Buffer, at: number, frozenFor: PromotionId | null): Sealed {
  return seal(previous, { record: 'frozen', at, promotion: frozenFor });
}

interface Replay {
  header?: DraftHeader;
  readonly entries: Map<PathKey, Entry>;
  frozenFor: PromotionId | null;
  changedAt: number;
}

/** Reads a whole index from an open file. Throws DraftDamaged. */
export function readIndex(descriptor: number): IndexState {
  const fileBytes = fstatSync(descriptor).size;
  const replay: Replay = { entries: new Map(), frozenFor: null, changedAt: 0 };
  let checksum: Buffer = NOTHING_BEFORE;
  let wholeBytes = 0;
  while (wholeBytes < fileBytes) {
    const record = readRecord(descriptor, wholeBytes, fileBytes, checksum);
    if (!record) break;
    apply(replay, record.payload);
    checksum = record.checksum;
    wholeBytes += HEADER_BYTES + record.payload.length;
  }
  const { header, entries, frozenFor, changedAt } = replay;
  if (!header) throw new DraftDamaged('draft index has no whole header');
  return { header, entries, frozenFor, changedAt, checksum, wholeBytes, fileBytes };
}

interface ReadRecord {
  readonly payload: Buffer;
  readonly checksum: Buffer;
}

function readRecord(descriptor: number, at: number, fileBytes: number, previous: Buffer): ReadRecord | undefined {
  const rest = fileBytes - at;
  if (rest < HEADER_BYTES) return undefined;
  const header = readExactly(descriptor, at, HEADER_BYTES);
  const length = header.readUInt32BE(0);
  const end = HEADER_BYTES + length;
  if (length === 0 || length > RECORD_LIMIT_BYTES) return tornOrDamaged(descriptor, at, fileBytes);
  if (end > rest) return undefined;
  const payload = readExactly(descriptor, at + HEADER_BYTES, length);
  const checksum = chain(previous, payload);
  if (checksum.equals(header.subarray(LENGTH_BYTES))) return { payload, checksum };
  return end === rest ? undefined : tornOrDamaged(descriptor, at, fileBytes);
}

/** A crash can leave a file longer than what was written to it, and then the rest reads as zeros. */
function tornOrDamaged(descriptor: number, at: number, fileBytes: number): undefined {
  const rest = readExactly(descriptor, at, Math.min(fileBytes - at, RECORD_LIMIT_BYTES));
  if (rest.every((byte) => byte === 0)) return undefined;
  throw new DraftDamaged(`draft index is damaged at byte ${at}`);
}

function readExactly(descriptor: number, at: number, length: number): Buffer {
  const memory = Buffer.allocUnsafe(length);
  for (let done = 0; done < length;) {
    const count = pread(descriptor, memory.subarray(done), at + done);
    if (count === 0) throw new DraftDamaged('draft index became shorter while it was read');
    done += count;
  }
  return memory;
}

function apply(replay: Replay, payload: Buffer): void {
  const value = readFields(() => decode(payload));
  if (!replay.header) {
    replay.header = headerOf(value);
    replay.changedAt = replay.header.createdAt;
    return;
  }
  replay.changedAt = wholeNumber(value['at']);
  if (value['record'] === 'frozen') replay.frozenFor = promotionOf(value['promotion']);
  else if (value['record'] === 'changes' && Array.isArray(value['steps'])) {
    for (const step of value['steps'])
      applyStep(
        replay.entries,
        readFields(() => step),
      );
  } else throw new DraftDamaged('draft index has a record of another version');
}

function promotionOf(value: unknown): PromotionId | null {
  if (value === null) return null;
  const parsed = promotionIdSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new DraftDamaged('draft index is frozen for what is no promotion');
}

function applyStep(entries: Map<PathKey, Entry>, step: Record<string, unknown>): void {
  const path = step['path'];
  if (!(path instanceof Uint8Array) || path.length === 0)
    throw new DraftDamaged('draft index has a step without a path');
  const key = Buffer.from(path).toString('latin1');
  if (step['entry'] === null) entries.delete(key);
  else entries.set(key, entryOf(readFields(() => step['entry'])));
}

function headerOf(value: Record<string, unknown>): DraftHeader {
  if (value['record'] !== 'draft' || !READABLE.has(value['version'])) {
    throw new DraftDamaged(`draft is not of version ${[...READABLE].join(' or ')}`);
  }
  return {
    run: readFields(() => ({ run: runIdSchema.parse(value['run']) })).run,
    rootIdentity: digestText(value['rootIdentity']),
    createdAt: wholeNumber(value['createdAt']),
  };
}

function entryOf(value: Record<string, unknown>): Entry {
  const base = value['base'] === null ? null : baseOf(readFields(() => value['base']));
  return { base, now: nowOf(readFields(() => value['now'])), at: wholeNumber(value['at']) };
}

function baseOf(value: Record<string, unknown>): Base {
  const stamp = value['stamp'];
  if (typeof stamp !== 'string') throw new DraftDamaged('draft index has a base without its stamp');
  const mode = wholeNumber(value['mode']);
  if (value['type'] === 'directory') return { type: 'directory', mode, stamp };
  if (value['type'] !== 'file') throw new DraftDamaged('draft index has a base of unknown type');
  const base = { type: 'file' as const, bytes: wholeNumber(value['bytes']), mode, stamp };
  const sha256 = digestText(value['sha256']);
  return value['lost'] === undefined ? { ...base, sha256 } : { ...base, sha256, lost: texts(value['lost']) };
}

function texts(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0 && value.every((text) => typeof text === 'string')) return value;
  throw new DraftDamaged('draft index has losses that are no list of names');
}

function nowOf(value: Record<string, unknown>): Now {
  if (value['type'] === 'removed') return { type: 'removed' };
  const mode = wholeNumber(value['mode']);
  if (value['type'] === 'directory') return { type: 'directory', mode };
  if (value['type'] !== 'file') throw new DraftDamaged('draft index has an entry of unknown type');
  const content = wholeNumber(value['content']);
  return { type: 'file', content, bytes: wholeNumber(value['bytes']), mode, sha256: digestText(value['sha256']) };
}

/** An object with string keys, from a reader that may throw. */
function readFields<Value>(read: () => Value): Value & Record<string, unknown> {
  let value: unknown;
  try {
    value = read();
  } catch (cause) {
    throw new DraftDamaged('draft index has a record that cannot be read', { cause });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Uint8Array) {
    throw new DraftDamaged('draft index has a value where an object was expected');
  }
  // the line above leaves nothing but an object, which any string key may be asked of
  return value as Value & Record<string, unknown>;
}

function wholeNumber(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new DraftDamaged('draft index has a number that is not a count');
}

function digestText(value: unknown): string {
  const parsed = digestTextSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new DraftDamaged('draft index has a digest that is none');
}
