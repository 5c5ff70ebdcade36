import assert from 'node:assert/strict';

import * as fc from 'fast-check';

import type { Entry, IndexState } from '../../../helpers/files/draft-index.ts';
import { manifestOf } from '../../../helpers/files/draft.ts';
import { runIdSchema } from '../../../helpers/protocol/ids.ts';
import { planOf } from '../../../helpers/promote/plan.ts';
import type { Planned } from '../../../helpers/promote/plan.ts';
import { Stopped } from '../../../helpers/promote/stop.ts';

const digest = '0'.repeat(64);
const base = { type: 'file', bytes: 1, mode: 0o644, sha256: digest, stamp: '' } as const;
const file = { type: 'file', content: 1, bytes: 2, mode: 0o644, sha256: '1'.repeat(64) } as const;
const folderBase = { type: 'directory', mode: 0o755, stamp: '' } as const;
const folder = { type: 'directory', mode: 0o755 } as const;
const removed = { type: 'removed' } as const;

const entries: Readonly<Record<string, Entry>> = {
  'file made': { base: null, now: file, at: 0 },
  'file changed': { base, now: file, at: 0 },
  'file removed': { base, now: removed, at: 0 },
  'folder made': { base: null, now: folder, at: 0 },
  'folder removed': { base: folderBase, now: removed, at: 0 },
  'file to folder': { base, now: folder, at: 0 },
  'folder to file': { base: folderBase, now: file, at: 0 },
};

function plan(changes: Readonly<Record<string, keyof typeof entries>>): Planned[] {
  const state = {
    header: { run: runIdSchema.parse(`run_${'a'.repeat(32)}`), rootIdentity: digest, createdAt: 1 },
    entries: new Map(
      Object.entries(changes).flatMap(([path, kind]) => (entries[kind] ? [[path, entries[kind]] as const] : [])),
    ),
  };
  // only the header and the entries of an index are read
  return planOf(manifestOf(state), state as IndexState);
}

const shown = (steps: readonly Planned[]): string[] =>
  steps.map(({ path, change, type }) => `${change} ${type} ${String(path)}`);

/** Plays steps on a model of a tree: path to kind. Throws where a step finds no folder, or something in its way. */
function play(tree: ReadonlyMap<string, 'file' | 'directory'>, steps: readonly Planned[]): Map<string, string> {
  const now = new Map<string, 'file' | 'directory'>(tree);
  for (const { path, change, type } of steps) {
    const name = String(path);
    const parent = name.includes('/') ? name.slice(0, name.lastIndexOf('/')) : undefined;
    if (parent !== undefined) assert.equal(now.get(parent), 'directory', `${name} finds its folder`);
    if (change === 'created') assert.ok(!now.has(name), `${name} is free`);
    else assert.equal(now.get(name), type, `${name} is there`);
    if (change !== 'deleted') now.set(name, type);
    else {
      assert.ok(![...now.keys()].some((other) => other.startsWith(`${name}/`)), `${name} is empty`);
      now.delete(name);
    }
  }
  return now;
}

const isUnsafe = (error: unknown): boolean => error instanceof Stopped && error.code === 'PROMOTION_UNSAFE_PATH';

const inOrder = (tree: ReadonlyMap<string, string>): [string, string][] =>
  [...tree].toSorted(([one], [two]) => (one < two ? -1 : 1));

describe('the order of a promotion’s steps', () => {
  it('takes away from the leaves up, then makes folders from the root down, then files, then changes', () => {
    const steps = plan({
      a: 'file changed',
      b: 'folder made',
      'b/c': 'folder made',
      'b/c/d': 'file made',
      e: 'folder removed',
      'e/f': 'folder removed',
      'e/f/g': 'file removed',
      h: 'file to folder',
      'h/i': 'file made',
      j: 'folder to file',
    });
    assert.deepEqual(shown(steps), [
      'deleted directory j',
      'deleted file h',
      'deleted file e/f/g',
      'deleted directory e/f',
      'deleted directory e',
      'created directory b',
      'created directory b/c',
      'created directory h',
      'created file b/c/d',
      'created file h/i',
      'created file j',
      'modified file a',
    ]);
    assert.deepEqual(
      steps.map(({ slot }) => slot),
      [...steps.keys()],
    );
  });

  it('S-149 from any tree to any other, every step finds its folder and its place free, and back again', () => {
    const names = ['a', 'b', 'a/a', 'a/b', 'b/a', 'a/a/a', 'a/b/a'];
    const tree = fc
      .array(fc.constantFrom('file', 'directory', 'none'), { minLength: names.length, maxLength: names.length })
      .map((kinds) => {
        const made = new Map<string, 'file' | 'directory'>();
        for (const [index, name] of names.entries()) {
          const kind = kinds[index];
          const parent = name.includes('/') ? made.get(name.slice(0, -2)) : 'directory';
          if (parent === 'directory' && (kind === 'file' || kind === 'directory')) made.set(name, kind);
        }
        return made;
      });
    fc.assert(
      fc.property(tree, tree, (from, to) => {
        const changes: Record<string, string> = {};
        for (const name of names) {
          const [old, fresh] = [from.get(name), to.get(name)];
          if (old === undefined && fresh !== undefined) changes[name] = fresh === 'file' ? 'file made' : 'folder made';
          else if (old !== undefined && fresh === undefined)
            changes[name] = old === 'file' ? 'file removed' : 'folder removed';
          else if (old !== fresh) changes[name] = old === 'file' ? 'file to folder' : 'folder to file';
          else if (old === 'file') changes[name] = 'file changed';
        }
        fc.pre(Object.keys(changes).length > 0);
        assert.deepEqual(inOrder(play(from, plan(changes))), inOrder(to));
      }),
    );
  });

  const refused: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ['a file below a file that is made', { a: 'file made', 'a/b': 'file made' }],
    ['a file in a folder that goes away', { a: 'folder removed', 'a/b': 'file made' }],
    ['names that differ in case alone', { 'a/Read': 'file made', 'a/read': 'file made' }],
    ['a draft without a change', {}],
  ];
  for (const [sentence, changes] of refused) {
    it(`${sentence} is no plan`, () => {
      assert.throws(
        () => plan(changes),
        (error) => error instanceof Stopped && error.code === 'PROMOTION_MANIFEST_INVALID',
      );
    });
  }

  it('a rename that changes the case alone is one', () => {
    assert.deepEqual(shown(plan({ README: 'file removed', readme: 'file made' })), [
      'deleted file README',
      'created file readme',
    ]);
  });

  it('a name of a stage folder is none of an agent’s', () => {
    assert.throws(() => plan({ '.nessie-stage-1/x': 'file made' }), isUnsafe);
  });
});
