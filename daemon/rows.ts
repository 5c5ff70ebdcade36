/*
 * The daemon's word with the supervisor: 32-byte records on descriptor 3. The daemon may ask for a row to start or end and is
 * told how rows ended; nothing else can be said.
 */
import type { Duplex } from 'node:stream';
import { decodeReport, encodeOrder, RecordReader } from '../helpers/supervisor/request.ts';
import type { Report } from '../helpers/supervisor/request.ts';

/** The channel to the supervisor. Its end ends the daemon. */
export class Rows {
  readonly #channel: Duplex;
  #orders = 0;

  /** `report` hears every record in order; `end` is called when the supervisor is gone or spoke nonsense. */
  constructor(channel: Duplex, report: (report: Report) => void, end: () => void) {
    this.#channel = channel;
    const reader = new RecordReader();
    channel.on('data', (chunk: Buffer) => {
      try {
        for (const record of reader.push(chunk)) report(decodeReport(record));
      } catch {
        // The supervisor is our own code: a record that cannot be read is a bug or a break-in.
        end();
      }
    });
    channel.on('close', end);
    channel.on('error', end);
  }

  /** Asks for a promote on one draft's slot; 0 is recovery alone. */
  startPromote(slot: number): void {
    this.#orders += 1;
    this.#channel.write(encodeOrder({ order: 'start', row: 'promote', slot, number: this.#orders }));
  }
}
