/*
 * What `daemon` and the supervisor say to each other: records of 32 bytes, integers big endian, the rest zero.
 *
 *   order    version 1, order (1 start, 2 end), row, 0, slot u32, number u32
 *   report   version 1, report (1 started, 2 ended, 3 refused), row, meaning or reason, slot u32, number u32,
 *            code u32, wait ms u32, recent u16, signal, next
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
/** Sizes of the fields in bytes, in their order. */
const SIZES = [1, 1, 1, 1, 4, 4, 4, 4, 2, 1, 1] as const;

const ORDERS = ['start', 'end'] as const;
const REPORTS = ['started', 'ended', 'refused'] as const;
/** Why an order was not carried out. */
export const ORDER_REFUSALS = [
  'row may not be ordered',
  'already running',
  'not running',
  'slot has no folder',
  'installation altered',
  'could not be started',
] as const;
/** What happens to a row that ended: it ended for good, it starts again after `waitMs`, or it stays down after too many endings. */
export const NEXT = ['ended', 'restarting', 'down'] as const;

/** One reason of a refused order. */
export type OrderRefusal = (typeof ORDER_REFUSALS)[number];
type About = { readonly row: RowName; readonly slot: number };

/** A wish of the daemon: start or end a row; `slot` is the number of its draft folder, 0 for none. */
export type Order = About & { readonly order: (typeof ORDERS)[number]; readonly number: number };

/** A fact from the supervisor. `code` is the exit code, or undefined when a signal ended the row; `recent` counts endings within a minute. */
export type Report =
  | (About & { readonly report: 'started'; readonly number: number })
  | (About & { readonly report: 'refused'; readonly number: number; readonly reason: OrderRefusal })
  | (About & {
      readonly report: 'ended';
      readonly meaning: ExitMeaning;
      readonly code: number | undefined;
      readonly signal: NodeJS.Signals | undefined;
      readonly next: (typeof NEXT)[number];
      readonly recent: number;
      readonly waitMs: number;
    });

/** Bytes that are no record. */
export class RecordError extends Error {
  override readonly name = 'RecordError';
}

function pack(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(RECORD_BYTES);
  let offset = 0;
  for (const [index, size] of SIZES.entries()) offset = bytes.writeUIntBE(values[index] ?? 0, offset, size);
  return bytes;
}

function unpack(bytes: Buffer): number[] {
  if (bytes.length !== RECORD_BYTES) throw new RecordError(`expected ${RECORD_BYTES} bytes, found ${bytes.length}`);
  let offset = 0;
  const values = SIZES.map((size) => bytes.readUIntBE((offset += size) - size, size));
  if (values[0] !== VERSION || !pack(values).equals(bytes)) throw new RecordError('version or unused bytes are wrong');
  return values;
}

function at<T>(list: readonly T[], index: number | undefined, what: string): T {
  const found = list[index ?? -1];
  if (found === undefined) throw new RecordError(`${what} ${index} is unknown`);
  return found;
}

/** Writes an order. */
export function encodeOrder({ order, row, slot, number }: Order): Buffer {
  return pack([VERSION, ORDERS.indexOf(order) + 1, ROW_NAMES.indexOf(row), 0, slot, number]);
}

/** Reads an order of exactly 32 bytes; throws RecordError. */
export function decodeOrder(bytes: Buffer): Order {
  const [, order = 0, row, zero, slot = 0, number = 0, ...rest] = unpack(bytes);
  if (zero !== 0 || rest.some((value) => value !== 0)) throw new RecordError('fields of a report are set');
  return { order: at(ORDERS, order - 1, 'order'), row: at(ROW_NAMES, row, 'row'), slot, number };
}

/** Writes a report. */
export function encodeReport(report: Report): Buffer {
  const head = [VERSION, REPORTS.indexOf(report.report) + 1, ROW_NAMES.indexOf(report.row)];
  if (report.report === 'started') return pack([...head, 0, report.slot, report.number]);
  if (report.report === 'refused')
    return pack([...head, ORDER_REFUSALS.indexOf(report.reason), report.slot, report.number]);
  const { meaning, slot, code, waitMs, recent, signal, next } = report;
  const signalNumber = signal === undefined ? 0 : constants.signals[signal];
  return pack([
    ...head,
    EXIT_MEANINGS.indexOf(meaning),
    slot,
    0,
    code ?? 0,
    waitMs,
    recent,
    signalNumber,
    NEXT.indexOf(next),
  ]);
}

function signalOf(number: number | undefined): NodeJS.Signals | undefined {
  const names = Object.keys(constants.signals).filter((name): name is NodeJS.Signals => name in constants.signals);
  return names.find((name) => constants.signals[name] === number);
}

/** Reads a report of exactly 32 bytes; throws RecordError. */
export function decodeReport(bytes: Buffer): Report {
  const [
    ,
    kind = 0,
    rowNumber,
    detail,
    slot = 0,
    number = 0,
    code = 0,
    waitMs = 0,
    recent = 0,
    signalNumber,
    nextNumber,
  ] = unpack(bytes);
  const report = at(REPORTS, kind - 1, 'report');
  const row = at(ROW_NAMES, rowNumber, 'row');
  if (report === 'started') return { report, row, slot, number };
  if (report === 'refused') return { report, row, slot, number, reason: at(ORDER_REFUSALS, detail, 'reason') };
  const signal = signalOf(signalNumber);
  const meaning = at(EXIT_MEANINGS, detail, 'meaning');
  const next = at(NEXT, nextNumber, 'next');
  return { report, row, slot, meaning, code: signal === undefined ? code : undefined, signal, next, recent, waitMs };
}

/** Cuts a byte stream into records; holds less than one record of bytes. */
export class RecordReader {
  #rest = Buffer.alloc(0);

  /** Takes the next bytes and returns the records that they complete. */
  push(chunk: Buffer): Buffer[] {
    const all = Buffer.concat([this.#rest, chunk]);
    const count = Math.floor(all.length / RECORD_BYTES);
    this.#rest = all.subarray(count * RECORD_BYTES);
    return Array.from({ length: count }, (_, index) => all.subarray(index * RECORD_BYTES, (index + 1) * RECORD_BYTES));
  }
}
