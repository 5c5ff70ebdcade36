/** One side of a change as the manifest states it; a folder has a mode alone. */
export interface Side {
  readonly mode: string;
  readonly bytes?: number;
  readonly sha256?: string;
}

/** One change of the draft under review; `path` is path text. */
export interface ManifestChange {
  readonly path: string;
  readonly kind: 'created' | 'modified' | 'deleted';
  readonly type: 'file' | 'directory';
  readonly before: Side | null;
  readonly after: Side | null;
}

const kinds = ['created', 'modified', 'deleted'] as const;
const types = ['file', 'directory'] as const;

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError('no object');
  return { ...value };
}

function oneOf<Value extends string>(values: readonly Value[], value: unknown): Value {
  const found = values.find((known) => known === value);
  if (found === undefined) throw new TypeError('not a known word');
  return found;
}

function sideOf(value: unknown, type: ManifestChange['type']): Side | null {
  if (value === null) return null;
  const { mode, bytes, sha256 } = fieldsOf(value);
  if (typeof mode !== 'string') throw new TypeError('no mode');
  if (type === 'directory') return { mode };
  if (typeof bytes !== 'number' || typeof sha256 !== 'string') throw new TypeError('no size or digest');
  return { mode, bytes, sha256 };
}

/** Reads manifest bytes that were hashed against the review. Throws TypeError or SyntaxError for what is none. */
export function readManifest(bytes: Uint8Array): readonly ManifestChange[] {
  const { changes } = fieldsOf(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)));
  if (!Array.isArray(changes)) throw new TypeError('no changes');
  return changes.map((value: unknown) => {
    const change = fieldsOf(value);
    const type = oneOf(types, change['type']);
    if (typeof change['path'] !== 'string') throw new TypeError('no path');
    return {
      path: change['path'],
      kind: oneOf(kinds, change['kind']),
      type,
      before: sideOf(change['before'], type),
      after: sideOf(change['after'], type),
    };
  });
}
