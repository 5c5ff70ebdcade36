/*
 * The only file that imports msgpackr. What crosses a process boundary is plain: null, booleans, safe integers, finite
 * numbers, strings, bytes, arrays, and objects with string keys.
 *
 * THREAT: msgpackr on its own rebuilds Date, Set, Error and RegExp from a peer's bytes, decodes record definitions with
 * records off, keeps the last of duplicate keys, and turns invalid UTF-8 into U+FFFD. `decode` therefore walks the value
 * and then encodes it again: bytes that are not exactly what this encoder writes are refused, so one value has one spelling.
 */
import { Packr, RESET_BUFFER_MODE } from 'msgpackr';

/** A value that survives the boundary unchanged. */
export type Plain = null | boolean | number | string | Uint8Array | Plain[] | { [key: string]: Plain };

/** Deepest nesting that is decoded. */
export const DEPTH_LIMIT = 32;

/** Bytes that are not the one spelling of a plain value. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
}

const packr = new Packr({
  useRecords: false,
  mapsAsObjects: true,
  variableMapSize: true,
  int64AsType: 'number',
  moreTypes: false,
});

const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(['__proto__', '__proto_', 'constructor', 'prototype']);

/** What encoding `value` would lose is refused; true where an object has a key without a value, which has no spelling. */
function hasUndefined(value: unknown, depth: number): boolean {
  if (depth > DEPTH_LIMIT) throw new CodecError(`value nested deeper than ${DEPTH_LIMIT}`);
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return false;
  if (typeof value === 'number') {
    if (!Number.isFinite(value) || Object.is(value, -0))
      throw new CodecError('number is not finite or is negative zero');
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new CodecError('integer outside the safe range');
    return false;
  }
  if (value instanceof Uint8Array) return false;
  let found = false;
  if (Array.isArray(value)) {
    for (const item of value) if (hasUndefined(item, depth + 1)) found = true;
    return found;
  }
  if (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype) {
    throw new CodecError(`${typeof value} is not a plain value`);
  }
  for (const [key, item] of Object.entries(value)) {
    if (FORBIDDEN_KEYS.has(key)) throw new CodecError('object key is reserved');
    if (item === undefined || hasUndefined(item, depth + 1)) found = true;
  }
  return found;
}

/** Writes one plain value as msgpack; keys whose value is undefined are left out. Throws CodecError. */
export function encode(value: unknown): Buffer {
  const plain = hasUndefined(value, 0) ? withoutUndefined(value) : value;
  // The packer's buffer is written over by the next value.
  return Buffer.from(packr.pack(plain, RESET_BUFFER_MODE));
}

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, withoutUndefined(item)]));
}

/** Reads exactly one plain value. Throws CodecError for anything else, whatever msgpackr made of it. */
export function decode(bytes: Uint8Array): Plain {
  let value: unknown;
  try {
    value = packr.unpack(bytes);
  } catch (cause) {
    throw new CodecError('bytes are not one msgpack value', { cause });
  }
  if (hasUndefined(value, 0)) throw new CodecError('undefined is not a plain value');
  const again: Uint8Array = packr.pack(value, RESET_BUFFER_MODE);
  if (Buffer.compare(again, bytes) !== 0) throw new CodecError('bytes are not the one spelling of their value');
  // hasUndefined refused everything that is not plain.
  return value as Plain;
}
