/*
 * The ledger: the authority on this machine about what was accepted, started and ended.
 *
 * INVARIANT 1: `append` resolves only after its records and everything before them are on disk (fdatasync).
 * INVARIANT 2: a failed write or sync is final: the file's tail is no longer known, so nothing is appended or accepted again
 *   until a person has run `repair` and the daemon has read the ledger anew.
 * INVARIANT 3: `low-mark` names a count that was durable once. A ledger shorter than that was cut.
 * INVARIANT 4: a segment begins with a mark that carries every command that is not expired, so older segments may go.
 *
 * Records that arrive while a sync runs share the next one.
 */
import fs from 'node:fs';
import { encodeRecord, LedgerDamaged, readMark, readSegment } from './segment.ts';
import { LedgerMemory } from './memory.ts';
import type { LedgerRecord, MarkRecord } from './records.ts';

/** Segment size, past twice its mark, at which the next one is begun, in bytes. */
export const SEGMENT_LIMIT_BYTES = 4_194_304;
/** How long a finished command is remembered past its expiry: clock skew that a session tolerates, twice. */
const FORGET_MARGIN_MS = 120_000;
const HEADS_IN_MARK = 1024;

interface Waiting {
  readonly records: readonly LedgerRecord[];
  readonly resolve: () => void;
  readonly reject: (error: LedgerDamaged) => void;
}

/** Where the ledger stands: what signed statements name. */
export interface LedgerHead {
  readonly count: number;
  readonly head: Uint8Array;
}

/** One open ledger; a folder has at most one at a time, which the supervisor's state lock sees to. */
export class Ledger {
  readonly memory = new LedgerMemory();
  readonly #folder: string;
  #descriptor = -1;
  #segment = 0;
  #segmentBytes = 0;
  #markBytes = 0;
  #count = 0;
  #head: Uint8Array = new Uint8Array(32);
  #lowMark = -1;
  #queue: Waiting[] = [];
  #syncing = false;
  #damage: LedgerDamaged | undefined;

  readonly #damaged: () => void;

  private constructor(folder: string, damaged: () => void) {
    this.#folder = folder;
    this.#damaged = damaged;
  }

  /**
   * Opens or begins the ledger in a folder that only the daemon may write.
   * `damaged` hears once that nothing can be appended any more, whoever was refused by it.
   * Throws LedgerDamaged: LEDGER_CUT, LEDGER_ALTERED, LEDGER_ABSENT (a low mark without segments) or LEDGER_UNWRITABLE.
   */
  static open(folder: string, damaged: () => void = () => undefined): Ledger {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    const ledger = new Ledger(folder, damaged);
    ledger.#read();
    return ledger;
  }

  /** Number of records ever written and the chain's head after them. */
  get standing(): LedgerHead {
    return { count: this.#count, head: this.#head };
  }

  /** Why nothing can be appended any more; undefined while all is well. */
  get damage(): LedgerDamaged | undefined {
    return this.#damage;
  }

  /** Makes records durable, in order and together. Rejects with LedgerDamaged; see invariant 2. */
  append(...records: readonly LedgerRecord[]): Promise<void> {
    if (this.#damage) return Promise.reject(this.#damage);
    return new Promise((resolve, reject) => {
      this.#queue.push({ records, resolve, reject });
      if (!this.#syncing) this.#flush();
    });
  }

  /** Closes the file after what was appended is durable. */
  async close(): Promise<void> {
    if (!this.#damage && this.#queue.length > 0) await this.append();
    fs.closeSync(this.#descriptor);
    fs.closeSync(this.#lowMark);
    this.#damage = new LedgerDamaged('LEDGER_UNWRITABLE', 'ledger is closed');
  }

  #flush(): void {
    const batch = this.#queue;
    this.#queue = [];
    this.#syncing = true;
    const written: { record: LedgerRecord; head: Buffer; count: number }[] = [];
    try {
      const bytes: Buffer[] = [];
      for (const record of batch.flatMap((waiting) => waiting.records)) {
        const encoded = encodeRecord(this.#head, record);
        this.#head = encoded.head;
        this.#count += 1;
        bytes.push(encoded.bytes);
        written.push({ record, head: encoded.head, count: this.#count });
      }
      this.#write(Buffer.concat(bytes));
    } catch (cause) {
      this.#fail(batch, cause);
      return;
    }
    fs.fdatasync(this.#descriptor, (error) => {
      if (error) {
        this.#fail(batch, error);
        return;
      }
      for (const { record, head, count } of written) this.memory.apply(record, count, head);
      this.#noteLowMark();
      this.#syncing = false;
      for (const waiting of batch) waiting.resolve();
      if (this.#segmentBytes > this.#markBytes * 2 + SEGMENT_LIMIT_BYTES) this.#beginSegment();
      if (this.#queue.length > 0 && !this.#damage) this.#flush();
    });
  }

  #write(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) at += fs.writeSync(this.#descriptor, bytes, at);
    this.#segmentBytes += bytes.length;
  }

  #fail(batch: readonly Waiting[], cause: unknown): void {
    // Whatever was thrown, an errno name is all that may be told of it.
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    this.#damage = new LedgerDamaged('LEDGER_UNWRITABLE', `ledger cannot be written: ${code}`, { cause });
    this.#syncing = false;
    for (const waiting of [...batch, ...this.#queue]) waiting.reject(this.#damage);
    this.#queue = [];
    this.#damaged();
  }

  #segmentName(segment: number): string {
    return `${this.#folder}/${String(segment).padStart(8, '0')}.log`;
  }

  #read(): void {
    const segments = fs
      .readdirSync(this.#folder)
      .filter((name) => /^\d{8}\.log$/.test(name))
      .map((name) => Number(name.slice(0, 8)))
      .toSorted((a, b) => a - b);
    const lowMark = this.#readLowMark();
    if (segments.length === 0 && lowMark > 0)
      throw new LedgerDamaged('LEDGER_ABSENT', `ledger of ${lowMark} records is gone`);
    // A crash may have cut the newest segment before its mark was whole: the one before it is still there, or nothing was durable yet.
    const usable = segments.filter((segment, index) => {
      return this.#readOne(segment, index === segments.length - 1 && (index > 0 || lowMark === 0));
    });
    if (this.#count < lowMark)
      throw new LedgerDamaged('LEDGER_CUT', `ledger has ${this.#count} records, ${lowMark} were durable`);
    const newest = usable.at(-1);
    if (newest === undefined) this.#beginSegment();
    else {
      this.#segment = newest;
      this.#descriptor = fs.openSync(
        this.#segmentName(newest),
        fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_NOFOLLOW,
      );
      for (const segment of segments) if (segment < newest) fs.unlinkSync(this.#segmentName(segment));
    }
  }

  /** Reads one segment; false when a crash cut it before its mark was whole, where that can be. */
  #readOne(segment: number, mayBeCut: boolean): boolean {
    const name = this.#segmentName(segment);
    const bytes = readWhole(name);
    const mark = readMark(bytes);
    if (mark === undefined) {
      if (!mayBeCut) throw new LedgerDamaged('LEDGER_ALTERED', `segment ${segment} does not begin with a mark`);
      fs.unlinkSync(name);
      return false;
    }
    if (this.#count > 0 && (mark.count !== this.#count || Buffer.compare(mark.previousHead, this.#head) !== 0)) {
      throw new LedgerDamaged('LEDGER_ALTERED', `segment ${segment} does not continue the one before it`);
    }
    const { placed, wholeBytes } = readSegment(bytes, mark.previousHead);
    if (wholeBytes < bytes.length) fs.truncateSync(name, wholeBytes);
    this.#count = mark.count;
    for (const { record, head } of placed) {
      this.#count += 1;
      this.#head = head;
      this.memory.apply(record, this.#count, head);
    }
    this.#segmentBytes = wholeBytes;
    return true;
  }

  /** Begins the next segment with a mark of all that is not expired; the one before it goes once the mark is durable. */
  #beginSegment(): void {
    this.memory.forgetExpired(FORGET_MARGIN_MS);
    try {
      const previous = this.#segment;
      const mark = this.#mark();
      const descriptor = fs.openSync(this.#segmentName(mark.segment), 'ax', 0o600);
      const { bytes, head } = encodeRecord(this.#head, mark);
      for (let at = 0; at < bytes.length;) at += fs.writeSync(descriptor, bytes, at);
      fs.fdatasyncSync(descriptor);
      this.#syncFolder();
      if (this.#descriptor >= 0) fs.closeSync(this.#descriptor);
      this.#descriptor = descriptor;
      this.#segment = mark.segment;
      this.#segmentBytes = bytes.length;
      this.#markBytes = bytes.length;
      this.#count += 1;
      this.#head = head;
      this.memory.apply(mark, this.#count, head);
      this.#noteLowMark();
      if (previous > 0) fs.unlinkSync(this.#segmentName(previous));
    } catch (cause) {
      this.#fail([], cause);
      if (this.#descriptor < 0 && this.#damage) throw this.#damage;
    }
  }

  #mark(): MarkRecord {
    const commands = this.memory.recorded();
    return {
      kind: 'mark',
      version: 1,
      segment: this.#segment + 1,
      count: this.#count,
      previousHead: this.#head,
      highAt: this.memory.highAt,
      highFence: this.memory.highFence,
      commands,
      heads: this.memory.newestHeads(HEADS_IN_MARK),
    };
  }

  #syncFolder(): void {
    const folder = fs.openSync(this.#folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    try {
      fs.fsyncSync(folder);
    } finally {
      fs.closeSync(folder);
    }
  }

  #readLowMark(): number {
    this.#lowMark = fs.openSync(
      `${this.#folder}/low-mark`,
      fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW,
      0o600,
    );
    const bytes = Buffer.alloc(8);
    return fs.readSync(this.#lowMark, bytes, 0, 8, 0) === 8 ? Number(bytes.readBigUInt64BE(0)) : 0;
  }

  /** Written behind: a process that dies loses nothing of it, a power cut leaves an older count, which is still a lower bound. */
  #noteLowMark(): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(this.#count), 0);
    fs.writeSync(this.#lowMark, bytes, 0, 8, 0);
  }
}

function readWhole(name: string): Buffer {
  const descriptor = fs.openSync(name, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    return fs.readFileSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}
