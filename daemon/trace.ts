/*
 * Lines of the public trace format, made while the machines run: written behind, never consulted to decide, redacted before
 * they exist. A line that cannot be written is lost and said to be lost.
 */
import fs from 'node:fs';
import type { InspectionEvent } from 'xstate';
import { formatLine } from '../machines/trace/format.ts';
import { emptyRecording, recordInspection } from '../machines/trace/record.ts';
import type { Recording } from '../machines/trace/record.ts';
import { sha256 } from '../helpers/protocol/signed.ts';

/**
 * How long events are gathered before their lines are computed, in ms: behind the step that they tell of, and no longer, since what
 * is held outlives a collection of young objects and is copied by it.
 */
const RECORD_AFTER_MS = 5;
const KEPT_LINES = 20_000;
const FILE_LIMIT_BYTES = 8_388_608;

/** The trace of this process: its newest lines in memory, all of them behind in a bounded file. */
export class TraceLog {
  readonly #folder: string;
  #recording: Recording = emptyRecording;
  #lines: string[] = [];
  #first = 0;
  #unwritten: string[] = [];
  #bytes = 0;
  #willFlush = false;
  #heard: InspectionEvent[] = [];
  #willRecord = false;
  /** Sentences of the recorder where a live actor was not where its machine says; 0 in a sound system. */
  disagreements = 0;
  /** Lines that could not be written. */
  lost = 0;

  /** `folder` is the daemon's own. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The hook for `createActor`. */
  readonly inspect = (event: InspectionEvent): void => {
    this.#heard.push(event);
    if (this.#willRecord) return;
    this.#willRecord = true;
    setTimeout(() => this.#record(), RECORD_AFTER_MS).unref();
  };

  /** Lines are computed behind the work: what was heard is immutable, so it gives the same lines later. */
  #record(): void {
    this.#willRecord = false;
    const heard = this.#heard;
    this.#heard = [];
    for (const event of heard) this.#recordOne(event);
  }

  #recordOne(event: InspectionEvent): void {
    const recorded = recordInspection(this.#recording, event, (text) =>
      sha256(Buffer.from(text, 'utf8')).toString('hex'),
    );
    this.#recording = recorded.recording;
    if (recorded.disagreement !== undefined) this.disagreements += 1;
    if (recorded.line) this.#keep(formatLine(recorded.line).trimEnd());
  }

  /** Lines from `after` on, at most `limit`, and where to go on. */
  lines(after: number, limit: number): { lines: string[]; next: number } {
    this.#record();
    const from = Math.max(0, after - this.#first);
    const lines = this.#lines.slice(from, from + limit);
    return { lines, next: this.#first + from + lines.length };
  }

  #keep(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > KEPT_LINES * 2) {
      this.#first += this.#lines.length - KEPT_LINES;
      this.#lines = this.#lines.slice(-KEPT_LINES);
    }
    this.#unwritten.push(line);
    if (this.#willFlush) return;
    this.#willFlush = true;
    setTimeout(() => this.#flush(), 250).unref();
  }

  #flush(): void {
    this.#willFlush = false;
    const text = `${this.#unwritten.join('\n')}\n`;
    this.#unwritten = [];
    const file = `${this.#folder}/trace.jsonl`;
    try {
      if (this.#bytes + text.length > FILE_LIMIT_BYTES) {
        fs.renameSync(file, `${this.#folder}/trace.earlier.jsonl`);
        this.#bytes = 0;
      }
      this.#bytes += text.length;
      const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW } = fs.constants;
      const descriptor = fs.openSync(file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
      try {
        fs.writeSync(descriptor, text);
      } finally {
        fs.closeSync(descriptor);
      }
    } catch {
      // A trace is derived: a full disk costs lines of it and nothing else, and `lost` says how many.
      this.lost += text.split('\n').length - 1;
    }
  }
}
