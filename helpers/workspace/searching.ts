/*
 * Search below a folder, in a thread of the pool: folders in byte order, files line by line, each bound asked between pieces.
 *
 * THREAT: an agent gives a pattern whose matching grows without end, or points the search at a huge tree. Patterns are RE2
 * (linear time, no look-around, no back-references), lines and files are cut into pieces, and matches, bytes and seconds are
 * bounded; the answer says which bound ended it. test/helpers/workspace/search.test.ts runs the public hostile patterns.
 */
import { closeSync, readSync } from 'node:fs';

import { RE2JS, RE2JSException } from 're2js';

import type { Overlay } from './view.ts';
import { openListed, pathTextOf, splitPath, type EntryKind, type PathNames } from '../files/walk.ts';
import type { OperationArguments, OperationSuccess } from '../protocol/operations.ts';
import { toPathText } from '../protocol/path-text.ts';
import { Ending, monotonicMs, type EndingMark } from './ending.ts';
import { denied, failureOf } from './failures.ts';
import { Rules } from './rules.ts';
import { View, type Child, type Place } from './view.ts';

/** What a thread of the pool needs for one search; descriptors are those of the process. */
export interface SearchTask {
  readonly root: number;
  readonly overlay: Overlay | undefined;
  readonly ignore: readonly string[];
  readonly arguments: OperationArguments<'file.search'>;
  readonly start: Uint8Array;
  readonly ending: EndingMark;
  readonly limits: SearchLimits;
}

/** Bounds of one search. */
export interface SearchLimits {
  readonly bytes: number;
  readonly ms: number;
}

type Found = OperationSuccess<'file.search'>;
type Match = Found['matches'][number];

const CHUNK_BYTES = 1_048_576;
/** A longer line is searched in pieces: no bound is asked within one, and a large counted pattern takes 100 µs a character. */
const LINE_LIMIT_BYTES = 16_384;
/** Names of a folder that are held and sorted; the rest of a larger one comes in the order of the file system. */
const SORTED_LIMIT = 50_000;
const TEXT_LIMIT = 400;
const TEXT_BEFORE = 100;
/** Encoded matches of one answer, bytes; the rest of a result's limit is for its frame. */
const ANSWER_LIMIT_BYTES = 60_000;
const PATH_LIMIT = 1024;
const NEW_LINE = 10;

/** Finds where a text matches; -1 when it does not. */
type Finder = (text: string) => number;

/** A finder for a query. Throws OperationFailed for a pattern that RE2 does not know. */
export function finderOf({ query, syntax, ignoreCase }: OperationArguments<'file.search'>): Finder {
  if (syntax === 'literal' && !ignoreCase) return (text) => text.indexOf(query);
  const pattern = syntax === 'literal' ? RE2JS.quote(query) : query;
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause;
    throw denied(`the pattern is not RE2 syntax: ${cause.message.slice(0, 200)}`);
  }
  return (text) => {
    // the test alone runs on the fast automaton; the place is asked for lines that match
    if (!compiled.test(text)) return -1;
    const matcher = compiled.matcher(text);
    return matcher.find() ? matcher.start() : -1;
  };
}

class Search {
  readonly #task: SearchTask;
  readonly #view: View;
  readonly #find: Finder;
  readonly #ending: Ending;
  readonly #untilMs: number;
  readonly #wholePath: boolean;
  readonly matches: Match[] = [];
  filesSearched = 0;
  bytesSearched = 0;
  stopped: Found['stopped'] = 'complete';
  #answerBytes = 0;
  readonly #memory = Buffer.allocUnsafe(CHUNK_BYTES + LINE_LIMIT_BYTES);

  constructor(task: SearchTask) {
    this.#task = task;
    this.#view = new View(task.root, overlayOf(task.overlay), new Rules(task.ignore));
    this.#find = finderOf(task.arguments);
    this.#ending = new Ending(task.ending);
    this.#untilMs = monotonicMs() + Math.min(task.limits.ms, this.#ending.remainingMs - 1000);
    this.#wholePath = task.arguments.query.includes('/');
  }

  /** Searches one path and all below it; false when a bound ended it. */
  visit(names: PathNames, kind: EntryKind, inDraft = true): boolean {
    if (!this.#goesOn()) return false;
    if (this.#task.arguments.in === 'names') this.#matchName(names);
    else if (kind === 'file') this.#searchFile(names, inDraft);
    if (this.stopped !== 'complete') return false;
    return kind !== 'directory' || this.#visitFolder(names);
  }

  #visitFolder(names: PathNames): boolean {
    const children = this.#view.children(names, this.#tolerating(() => this.#view.place(names)) ?? NOWHERE);
    try {
      const first = this.#tolerating(() => take(children, SORTED_LIMIT)) ?? [];
      first.sort((one, two) => Buffer.compare(one.name, two.name));
      const visit = ({ name, kind, inDraft }: Child): boolean => this.visit([...names, name], kind, inDraft);
      if (!first.every(visit)) return false;
      for (const child of children) if (!visit(child)) return false;
      return true;
    } finally {
      children.return(undefined);
    }
  }

  #goesOn(): boolean {
    if (this.#ending.remainingMs > 0) this.#ending.check();
    if (monotonicMs() >= this.#untilMs) this.stopped = 'time';
    else if (this.bytesSearched >= this.#task.limits.bytes) this.stopped = 'bytes';
    return this.stopped === 'complete';
  }

  #matchName(names: PathNames): void {
    const name = names.at(-1);
    if (!name) return;
    const text = this.#wholePath ? pathTextOf(names) : toPathText(name);
    if (this.#find(text) !== -1) this.#add({ path: pathTextOf(names) });
  }

  #add(match: Match): void {
    // no operation takes a longer path, so naming it would help nobody
    if (match.path.length > PATH_LIMIT) return;
    this.#answerBytes += Buffer.byteLength(JSON.stringify(match)) + 1;
    if (this.matches.length >= this.#task.arguments.maxMatches || this.#answerBytes > ANSWER_LIMIT_BYTES) {
      this.stopped = 'matches';
      return;
    }
    this.matches.push(match);
  }

  #searchFile(names: PathNames, inDraft: boolean): void {
    const descriptor = this.#tolerating(() =>
      inDraft ? this.#view.open(names).descriptor : openListed(this.#task.root, names),
    );
    if (descriptor === undefined) return;
    try {
      this.#searchOpen(descriptor, names);
    } finally {
      closeSync(descriptor);
    }
  }

  /** A file that vanished or may not be read while others are searched is none of the matches. */
  #tolerating<Value>(open: () => Value): Value | undefined {
    try {
      return open();
    } catch (error) {
      if (failureOf(error)) return undefined;
      throw error;
    }
  }

  #searchOpen(descriptor: number, names: PathNames): void {
    const memory = this.#memory;
    let kept = 0;
    let offset = 0;
    let line = 1;
    for (;;) {
      const count = readSync(descriptor, memory, kept, CHUNK_BYTES, offset);
      const held = memory.subarray(0, kept + count);
      // text has no NUL; what has one is skipped as binary
      if (offset === 0 && held.subarray(0, 8192).includes(0)) return;
      offset += count;
      this.bytesSearched += count;
      const { rest, nextLine } = this.#searchLines(held, names, line, count === 0);
      line = nextLine;
      if (count === 0 || !this.#goesOn()) break;
      kept = rest.copy(memory, 0);
    }
    this.filesSearched += 1;
  }

  #searchLines(held: Buffer, names: PathNames, firstLine: number, atEnd: boolean): { rest: Buffer; nextLine: number } {
    let start = 0;
    let line = firstLine;
    while (start < held.length && this.stopped === 'complete') {
      const end = held.indexOf(NEW_LINE, start);
      const isWhole = end !== -1 && end - start <= LINE_LIMIT_BYTES;
      const isLong = !isWhole && held.length - start > LINE_LIMIT_BYTES;
      if (!isWhole && !isLong && !atEnd) break;
      const stop = isWhole ? end : Math.min(held.length, start + LINE_LIMIT_BYTES);
      this.#searchLine(held.toString('utf8', start, stop), names, line);
      start = isWhole ? stop + 1 : stop;
      if (isWhole) line += 1;
    }
    return { rest: held.subarray(start), nextLine: line };
  }

  #searchLine(text: string, names: PathNames, line: number): void {
    const ending = text.endsWith('\r') ? text.slice(0, -1) : text;
    const at = this.#find(ending);
    if (at === -1) return;
    const column = Array.from(ending.slice(0, at)).length + 1;
    this.#add({ path: pathTextOf(names), line, column, text: around(ending, at) });
  }
}

const NOWHERE: Place = { of: 'nothing', base: null };

function take<Value>(values: Generator<Value>, count: number): Value[] {
  const taken: Value[] = [];
  while (taken.length < count) {
    const next = values.next();
    if (next.done) break;
    taken.push(next.value);
  }
  return taken;
}

/** At most 400 characters of a line with the place in them, cut between characters. */
function around(text: string, at: number): string {
  if (text.length <= TEXT_LIMIT) return text;
  let start = Math.max(0, Math.min(at - TEXT_BEFORE, text.length - TEXT_LIMIT));
  if (isLowSurrogate(text, start)) start += 1;
  let end = Math.min(text.length, start + TEXT_LIMIT);
  if (isLowSurrogate(text, end)) end -= 1;
  return text.slice(start, end);
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function overlayOf(overlay: Overlay | undefined): Overlay | undefined {
  return overlay && { folder: overlay.folder, entries: new Map(overlay.entries) };
}

/** Runs one search. Throws OperationFailed (a pattern that is none, CANCELLED) or WalkRefused (the folder cannot be opened). */
export function searchBelow(task: SearchTask): Found {
  const search = new Search(task);
  const names = task.start.length === 0 ? [] : splitPath(Buffer.from(task.start));
  const view = new View(task.root, overlayOf(task.overlay), new Rules(task.ignore));
  const place = view.place(names);
  if (place.of !== 'nothing') search.visit(names, place.kind);
  const { matches, filesSearched, bytesSearched, stopped } = search;
  return { success: true, matches, filesSearched, bytesSearched, stopped };
}
