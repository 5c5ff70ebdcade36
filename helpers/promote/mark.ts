/*
 * What promote remembers of approvals: the highest sequence that it has seen, the promotions that were begun, the confirmations
 * of this machine that they used up, and the command keys that followed the pinned one. It is on the disk before anything that an
 * approval permits is done.
 */
import { decode, encode } from '../protocol/codec.ts';
import type { Plain } from '../protocol/codec.ts';
import { sha256 } from '../protocol/signed.ts';
import { dropUnfinished, ownTrust, readTrusted, replaceOwn } from './own-folder.ts';

/** A change of command key that both keys signed; 64 hexadecimal digits each. */
export interface Succession {
  readonly oldKey: string;
  readonly newKey: string;
}

/** A confirmation that a promotion used up: its manifest, 64 hexadecimal digits, and when it was given, in ms since the Unix epoch. */
export interface Spent {
  readonly manifestDigest: string;
  readonly at: number;
}

/** The mark. `used` holds the latest promotions, in order; older ones lie below `sequence`. `spent` holds the latest confirmations, one a manifest. */
export interface Mark {
  readonly sequence: number;
  readonly used: readonly string[];
  readonly spent: readonly Spent[];
  readonly successions: readonly Succession[];
}

/** A mark that cannot be believed: no approval is taken any more. */
export class MarkDamaged extends Error {
  override readonly name = 'MarkDamaged';
}

const NAME = 'mark';
const VERSION = 2;
/** The first version knew no confirmation: none was ever used up. */
const WITHOUT_SPENT = 1;
const LIMIT_BYTES = 1_048_576;
const USED_KEPT = 1024;
/** A confirmation that fell out is older than any that still holds: this many in an hour are no person's. */
const SPENT_KEPT = 1024;
const DIGEST_BYTES = 32;

/** Reads the mark; where none was written yet, nothing was ever seen. Throws MarkDamaged, UntrustedFile. */
export function readMark(own: number): Mark {
  const content = readTrusted(own, NAME, LIMIT_BYTES, ownTrust());
  if (content === undefined) return { sequence: 0, used: [], spent: [], successions: [] };
  const payload = content.subarray(DIGEST_BYTES);
  if (content.length < DIGEST_BYTES || !sha256(payload).equals(content.subarray(0, DIGEST_BYTES))) {
    throw new MarkDamaged('the mark of seen approvals is damaged');
  }
  return markOf(plainOf(payload));
}

function plainOf(payload: Uint8Array): Plain {
  try {
    return decode(payload);
  } catch (cause) {
    throw new MarkDamaged('the mark of seen approvals is no msgpack value', { cause });
  }
}

/** Writes the mark; it is on the disk when this returns. */
export function writeMark(own: number, mark: Mark): void {
  const [used, spent] = [mark.used.slice(-USED_KEPT), mark.spent.slice(-SPENT_KEPT)];
  const payload = encode({ version: VERSION, ...mark, used, spent: spent.map((one) => ({ ...one })) });
  replaceOwn(own, NAME, Buffer.concat([sha256(payload), payload]));
}

/** Removes what a cut write of the mark left. Throws NativeError. */
export function dropUnfinishedMark(own: number): void {
  dropUnfinished(own, NAME);
}

function markOf(value: Plain): Mark {
  if (!isFields(value) || (value['version'] !== VERSION && value['version'] !== WITHOUT_SPENT))
    throw new MarkDamaged('the mark of seen approvals is of another version');
  const { sequence, used, successions } = value;
  const spent = value['version'] === WITHOUT_SPENT ? [] : value['spent'];
  if (typeof sequence !== 'number' || !isTexts(used) || !Array.isArray(spent) || !Array.isArray(successions)) {
    throw new MarkDamaged('the mark of seen approvals has other fields');
  }
  return { sequence, used, spent: spent.map(spentOf), successions: successions.map(successionOf) };
}

function spentOf(value: Plain): Spent {
  const { manifestDigest, at } = isFields(value) ? value : {};
  if (typeof manifestDigest !== 'string' || typeof at !== 'number')
    throw new MarkDamaged('a confirmation that was used up has other fields');
  return { manifestDigest, at };
}

function successionOf(value: Plain): Succession {
  const { oldKey, newKey } = isFields(value) ? value : {};
  if (typeof oldKey !== 'string' || typeof newKey !== 'string')
    throw new MarkDamaged('a change of key has other fields');
  return { oldKey, newKey };
}

function isTexts(value: Plain | undefined): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isFields(value: Plain): value is { [key: string]: Plain } {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
