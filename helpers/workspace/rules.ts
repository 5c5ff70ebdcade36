/*
 * What no operation may see: names that the product uses itself, and what the owner's ignore rules keep out (N-525).
 *
 * TRUST: the rules are the owner's, read and bounded by `daemon`; a path is judged by its text, as the owner wrote the rules.
 */
import ignore, { type Ignore } from 'ignore';

import { joinNames, type PathNames } from '../files/walk.ts';
import { toPathText } from '../protocol/path-text.ts';

const RESERVED_PREFIX = Buffer.from('.nessie-stage-');
/** The package remembers each path that it judged; a search through a large tree must not grow it without end. */
const REMEMBERED_LIMIT = 20_000;

function isReserved(name: Buffer): boolean {
  return name[0] === RESERVED_PREFIX[0] && name.subarray(0, RESERVED_PREFIX.length).equals(RESERVED_PREFIX);
}

/** The rules of one operation. */
export class Rules {
  readonly patterns: readonly string[];
  #matcher: Ignore | undefined;
  #judged = 0;

  constructor(patterns: readonly string[]) {
    this.patterns = patterns;
  }

  /** Whether a path, or any folder above it, is kept out. A path of unknown kind is judged as a file. */
  hide(names: PathNames, isDirectory: boolean): boolean {
    if (names.length === 0) return false;
    if (names.some(isReserved)) return true;
    if (this.patterns.length === 0) return false;
    return this.#fresh().ignores(toPathText(joinNames(names)) + (isDirectory ? '/' : ''));
  }

  /** Whether a name in a folder that is not hidden itself is kept out. */
  hideChild(folder: PathNames, name: Buffer, isDirectory: boolean): boolean {
    if (this.patterns.length > 0) return this.hide([...folder, name], isDirectory);
    return isReserved(name);
  }

  #fresh(): Ignore {
    this.#judged += 1;
    if (this.#matcher && this.#judged < REMEMBERED_LIMIT) return this.#matcher;
    this.#judged = 0;
    // names are compared as the file system compares them, so `Secret` does not stand for `secret`
    this.#matcher = ignore({ ignorecase: false, allowRelativePaths: true }).add(this.patterns);
    return this.#matcher;
  }
}
