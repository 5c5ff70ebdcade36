/*
 * What `daemon` and the supervisor say to each other: records of 32 bytes, integers big endian, unused bytes zero.
 *
 *   order    | 1 | 1 start, 2 end              | row | 0       | slot u32 | number u32 | zero ...                                    |
 *   report   | 1 | 1 started, 2 ended, 3 refused | row | meaning | slot u32 | number u32 | code u32 | signal | next | recent u16 | wait ms u32 | zero |
 *
 * `number` is the daemon's own count of its orders; a report that answers none carries 0. TRUST: the supervisor believes
 * nothing in an order but a row that may be ordered and a slot; whatever else arrives ends the executor as a violation.
 */
import { constants } from 'node:os';

import { EXIT_MEANINGS, type ExitMeaning } from '../runtime/exits.ts';
import { ROW_NAMES, type RowName } from '../runtime/privileges.ts';

/** Bytes of every record in both directions. */
export const RECORD_BYTES = 32;

const VERSION = 1;
const ORDERS = ['start', 'end'] as const;

/** A wish of the daemon: start or end a row; `slot` is the number of its draft folder, 0 for none. */
export type Order = {
  readonly order: (typeof ORDERS)[number];
  readonly row: RowName;
  readonly slot: number;
  readonly number: number;
};

/** Why an order was not carried out. */
export const ORDER_REFUSALS = [
  'row may not be ordered',
  'already running',
  'not running',
  'slot has no folder',
  'installation altered',
] as const;
/** One reason of a refused order. */
export type OrderRefusal = (typeof ORDER_REFUSALS)[number];

/** What happens to a row that ended: it starts again after `waitMs`, it stays down after too many endings, or it ended for good. */
export const NEXT = ['ended', 'restarting', 'down'] as const;

/** A fact from the supervisor. `code` is the exit code, or undefined when a signal ended the row; `recent` counts endings within a minute. */
export type Report =
  | { readonly report: 'started'; readonly row: RowName; readonly slot: number; readonly number: number }
  | {
      readonly report: 'refused';
      readonly row: RowName;
      readonly slot: number;
      readonly number: number;
      readonly reason: OrderRefusal;
    }
  | {
      readonly report: 'ended';
      readonly row: RowName;
      readonly slot: number;
      readonly meaning: ExitMeaning;
      readonly code: number | undefined;
      readonly signal: NodeJS.Signals | undefined;
      readonly next: (typeof NEXT)[number];
      readonly recent: number;
      readonly waitMs: number;
    };

/** Bytes that are no record. */
export class RecordError extends Error {
  override readonly name = 'RecordError';
}

function at<T>(list: readonly T[], index: number, what: string): T {
  const found = list[index];
  if (found === undefined) throw new RecordError(`${what} ${index} is unknown`);
  return found;
}

function head(kind: number, row: RowName, detail: number, slot: number, number: number): Buffer {
  const bytes = Buffer.alloc(RECORD_BYTES);
  bytes.set([VERSION, kind, ROW_NAMES.indexOf(row), detail]);
  bytes.writeUInt32BE(slot, 4);
  bytes.writeUInt32BE(number, 8);
  return bytes;
}

/** Writes an order. */
export function encodeOrder(order: Order): Buffer {
  return head(ORDERS.indexOf(order.order) + 1, order.row, 0, order.slot, order.number);
}

/** Reads an order of exactly 32 bytes; throws RecordError. */
export function decodeOrder(bytes: Buffer): Order {
  if (bytes.length !== RECORD_BYTES || bytes[0] !== VERSION) throw new RecordError('length or version is wrong');
  const order = at(ORDERS, bytes.readUInt8(1) - 1, 'order');
  const row = at(ROW_NAMES, bytes.readUInt8(2), 'row');
  const decoded: Order = { order, row, slot: bytes.readUInt32BE(4), number: bytes.readUInt32BE(8) };
  if (!encodeOrder(decoded).equals(bytes)) throw new RecordError('unused bytes are not zero');
  return decoded;
}

const REPORTS = ['started', 'ended', 'refused'] as const;

/** Writes a report. */
export function encodeReport(report: Report): Buffer {
  const kind = REPORTS.indexOf(report.report) + 1;
  if (report.report === 'started') return head(kind, report.row, 0, report.slot, report.number);
  if (report.report === 'refused') {
    return head(kind, report.row, ORDER_REFUSALS.indexOf(report.reason), report.slot, report.number);
  }
  const bytes = head(kind, report.row, EXIT_MEANINGS.indexOf(report.meaning), report.slot, 0);
  bytes.writeUInt32BE(report.code ?? 0, 12);
  bytes.writeUInt8(report.signal === undefined ? 0 : constants.signals[report.signal], 16);
  bytes.writeUInt8(NEXT.indexOf(report.next), 17);
  bytes.writeUInt16BE(report.recent, 18);
  bytes.writeUInt32BE(report.waitMs, 20);
  return bytes;
}

function signalOf(number: number): NodeJS.Signals | undefined {
  if (number === 0) return undefined;
  const names = Object.keys(constants.signals).filter((name): name is NodeJS.Signals => name in constants.signals);
  return names.find((name) => constants.signals[name] === number);
}

/** Reads a report of exactly 32 bytes; throws RecordError. */
export function decodeReport(bytes: Buffer): Report {
  if (bytes.length !== RECORD_BYTES || bytes[0] !== VERSION) throw new RecordError('length or version is wrong');
  const report = at(REPORTS, bytes.readUInt8(1) - 1, 'report');
  const row = at(ROW_NAMES, bytes.readUInt8(2), 'row');
  const slot = bytes.readUInt32BE(4);
  const number = bytes.readUInt32BE(8);
  if (report === 'started') return { report, row, slot, number };
  if (report === 'refused')
    return { report, row, slot, number, reason: at(ORDER_REFUSALS, bytes.readUInt8(3), 'reason') };
  const signal = signalOf(bytes.readUInt8(16));
  const meaning = at(EXIT_MEANINGS, bytes.readUInt8(3), 'meaning');
  const next = at(NEXT, bytes.readUInt8(17), 'next');
  const code = signal === undefined ? bytes.readUInt32BE(12) : undefined;
  return {
    report,
    row,
    slot,
    meaning,
    code,
    signal,
    next,
    recent: bytes.readUInt16BE(18),
    waitMs: bytes.readUInt32BE(20),
  };
}

/** Cuts a byte stream into records; holds less than one record of bytes. */
export class RecordReader {
  #rest = Buffer.alloc(0);

  /** Takes the next bytes and returns the records that they complete. */
  push(chunk: Buffer): Buffer[] {
    const all = Buffer.concat([this.#rest, chunk]);
    const whole = all.length - (all.length % RECORD_BYTES);
    this.#rest = all.subarray(whole);
    return Array.from({ length: whole / RECORD_BYTES }, (_, index) =>
      all.subarray(index * RECORD_BYTES, (index + 1) * RECORD_BYTES),
    );
  }
}
