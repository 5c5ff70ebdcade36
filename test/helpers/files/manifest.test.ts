import assert from 'node:assert/strict';

import {
  manifestBytes,
  manifestDigest,
  ManifestError,
  parseManifest,
  type Manifest,
} from '../../../helpers/files/manifest.ts';
import { canonicalBytes } from '../../../helpers/protocol/descriptor.ts';
import { runIdSchema } from '../../../helpers/protocol/ids.ts';

const digest = (digit: string): string => digit.repeat(64);
const side = (digit: string, mode = '644') => ({ bytes: 3, mode, sha256: digest(digit) });

const manifest: Manifest = {
  version: 2,
  run: runIdSchema.parse(`run_${'0'.repeat(32)}`),
  rootIdentity: digest('a'),
  changes: [
    { path: 'a', type: 'directory', kind: 'created', before: null, after: { mode: '755' } },
    { path: 'a/new', type: 'file', kind: 'created', before: null, after: side('1') },
    { path: 'b', type: 'file', kind: 'deleted', before: side('2', '4755'), after: null },
    { path: 'b', type: 'directory', kind: 'created', before: null, after: { mode: '755' } },
    { path: 'c', type: 'file', kind: 'modified', before: side('3'), after: side('3', '755') },
    { path: 'd\\xff', type: 'directory', kind: 'deleted', before: { mode: '755' }, after: null },
    { path: 'é', type: 'file', kind: 'modified', before: { ...side('3'), lost: ['group'] }, after: side('4') },
  ],
};

// tests build values that the types forbid
type Loose = Record<string, unknown> & { changes: Record<string, unknown>[] };
const altered = (change: (value: Loose) => void): Buffer => {
  const value = structuredClone(manifest) as unknown as Loose;
  change(value);
  return canonicalBytes(value);
};
const at = (value: Loose, index: number): Record<string, unknown> => value.changes[index] ?? {};

describe('manifest', () => {
  it('is read back as it was written, and its digest is of exactly these bytes', () => {
    const bytes = manifestBytes(manifest);
    assert.deepEqual(parseManifest(bytes), manifest);
    assert.equal(manifestDigest(bytes), manifestDigest(manifestBytes(parseManifest(bytes))));
    assert.notEqual(manifestDigest(bytes), manifestDigest(manifestBytes({ ...manifest, rootIdentity: digest('b') })));
  });

  const refused: Readonly<Record<string, (value: Loose) => void>> = {
    'another version': (value) => (value['version'] = 1),
    'no run': (value) => delete value['run'],
    'a run that is none': (value) => (value['run'] = 'run_1'),
    'an unknown key': (value) => (value['more'] = 1),
    'an unknown key of a change': (value) => (at(value, 0)['more'] = 1),
    'an unknown key of a side': (value) => (at(value, 1)['after'] = { ...side('1'), more: 1 }),
    'a path that climbs': (value) => (at(value, 6)['path'] = 'é/../x'),
    'an absolute path': (value) => (at(value, 0)['path'] = '/a'),
    'another spelling of a path': (value) => (at(value, 6)['path'] = '\\xc3\\xa9'),
    'changes out of order': (value) => (value.changes = value.changes.toReversed()),
    'a path that stands twice': (value) => value.changes.splice(1, 0, { ...at(value, 1) }),
    'created before deleted': (value) => value.changes.splice(2, 2, at(value, 3), at(value, 2)),
    'a created change with a before': (value) => (at(value, 1)['before'] = side('1')),
    'a deleted change with an after': (value) => (at(value, 2)['after'] = side('1')),
    'a modified change that changes nothing': (value) => (at(value, 4)['after'] = side('3')),
    'a modified folder': (value) => Object.assign(at(value, 5), { kind: 'modified', after: { mode: '700' } }),
    'set-id bits after': (value) => (at(value, 1)['after'] = side('1', '4755')),
    'a mode that is not octal': (value) => (at(value, 0)['after'] = { mode: '888' }),
    'a negative size': (value) => (at(value, 1)['after'] = { ...side('1'), bytes: -1 }),
    'a digest that is none': (value) => (at(value, 1)['after'] = { ...side('1'), sha256: 'x' }),
    'losses that are no names': (value) => (at(value, 6)['before'] = { ...side('3'), lost: [1] }),
    'a list of no losses': (value) => (at(value, 6)['before'] = { ...side('3'), lost: [] }),
    'a deleted file that loses something': (value) => (at(value, 2)['before'] = { ...side('2'), lost: ['group'] }),
    'an unknown kind': (value) => (at(value, 0)['kind'] = 'moved'),
    'an unknown type': (value) => (at(value, 0)['type'] = 'link'),
  };
  for (const [what, change] of Object.entries(refused)) {
    it(`${what} is refused`, () => assert.throws(() => parseManifest(altered(change)), ManifestError));
  }

  it('another spelling of the same value is refused', () => {
    const text = manifestBytes(manifest).toString();
    assert.throws(() => parseManifest(Buffer.from(` ${text}`)), ManifestError);
    assert.throws(() => parseManifest(Buffer.from(text.replace('"run":', '"run" :'))), ManifestError);
    assert.throws(
      () => parseManifest(Buffer.from(text.replace('"version":2', '"version":2,"version":2'))),
      ManifestError,
    );
    assert.throws(() => parseManifest(Buffer.from([0xff])), ManifestError);
  });

  it('no flipped bit is read as the same manifest', () => {
    const bytes = manifestBytes(manifest);
    const whole = manifestDigest(bytes);
    for (let bit = 0; bit < bytes.length * 8; bit += 5) {
      const other = Buffer.from(bytes);
      other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      let read: Manifest | undefined;
      try {
        read = parseManifest(other);
      } catch (error) {
        assert.ok(error instanceof ManifestError, String(error));
      }
      if (read) assert.notEqual(manifestDigest(manifestBytes(read)), whole);
    }
  });
});
