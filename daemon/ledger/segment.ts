/*
 * A segment file: records one after another, each chained to everything before it.
 *
 *   +------------------+-----------------+-------------------------------------------+
 *   | length uint32 BE | payload msgpack | head = SHA-256(previous head | payload)   |
 *   +------------------+-----------------+-------------------------------------------+
 *
 * INVARIANT 1: a record counts only when it is whole and its head fits. Bytes after the last whole record are a write that a
 *   crash cut: nothing was ever permitted by it.
 * INVARIANT 2: a head that does not fit anywhere before the end is damage, never repaired silently.
 */
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import { recordSchema } from './records.ts';
import type { LedgerRecord, MarkRecord } from './records.ts';

const LENGTH_BYTES = 4;
const HEAD_BYTES = 32;
/** Largest record, in bytes: a mark with every unexpired command of a busy day. */
export const RECORD_LIMIT_BYTES = 67_108_864;

/** Closed codes of a damaged ledger. */
export type LedgerDamage = 'LEDGER_CUT' | 'LEDGER_ALTERED' | 'LEDGER_UNWRITABLE' | 'LEDGER_ABSENT';

/** The ledger's bytes contradict themselves, are cut, or cannot be written. */
export class LedgerDamaged extends Error {
  override readonly name = 'LedgerDamaged';
  /** Closed code that `doctor` explains. */
  readonly code: LedgerDamage;

  constructor(code: LedgerDamage, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** One record with its place in the chain. */
export interface Placed {
  readonly record: LedgerRecord;
  readonly head: Buffer;
}

/** Bytes of one record and the head after it. */
export function encodeRecord(previousHead: Uint8Array, record: LedgerRecord): { bytes: Buffer; head: Buffer } {
  const payload = encode(record);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(payload.length, 0);
  const head = sha256(previousHead, payload);
  return { bytes: Buffer.concat([length, payload, head]), head };
}

/** The mark that opens a segment, its place in the chain not yet checked; undefined when a crash cut it. */
export function readMark(bytes: Buffer): MarkRecord | undefined {
  if (bytes.length < LENGTH_BYTES) return undefined;
  const end = LENGTH_BYTES + bytes.readUInt32BE(0);
  if (end + HEAD_BYTES > bytes.length) return undefined;
  const record = parseRecord(bytes.subarray(LENGTH_BYTES, end), 0);
  if (record.kind !== 'mark') throw new LedgerDamaged('LEDGER_ALTERED', 'segment does not begin with a mark');
  return record;
}

/** Reads every whole record; `wholeBytes` is where a cut write begins. Throws LedgerDamaged LEDGER_ALTERED. */
export function readSegment(bytes: Buffer, previousHead: Uint8Array): { placed: Placed[]; wholeBytes: number } {
  const placed: Placed[] = [];
  let head = previousHead;
  let at = 0;
  while (bytes.length - at >= LENGTH_BYTES + HEAD_BYTES) {
    const length = bytes.readUInt32BE(at);
    const end = at + LENGTH_BYTES + length + HEAD_BYTES;
    if (length === 0 || length > RECORD_LIMIT_BYTES) throw altered(placed.length);
    if (end > bytes.length) break;
    const payload = bytes.subarray(at + LENGTH_BYTES, end - HEAD_BYTES);
    const expected = sha256(head, payload);
    if (!expected.equals(bytes.subarray(end - HEAD_BYTES, end))) throw altered(placed.length);
    placed.push({ record: parseRecord(payload, placed.length), head: expected });
    head = expected;
    at = end;
  }
  return { placed, wholeBytes: at };
}

function parseRecord(payload: Buffer, index: number): LedgerRecord {
  try {
    return recordSchema.parse(decode(payload));
  } catch (cause) {
    throw new LedgerDamaged(
      'LEDGER_ALTERED',
      `record ${index + 1} of the segment has no shape that this version knows`,
      { cause },
    );
  }
}

function altered(index: number): LedgerDamaged {
  return new LedgerDamaged('LEDGER_ALTERED', `record ${index + 1} of the segment does not continue the chain`);
}
