import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { EQUIVALENT } from '../../faults/mutants/equivalents.ts';
import { allMutants } from '../../faults/mutants/list.ts';
import { mutated } from '../../faults/mutants/mutant.ts';
import type { Mutant } from '../../faults/mutants/mutant.ts';
import { Copy } from '../../faults/mutants/play.ts';
import { readSource, TOP } from '../../faults/mutants/source.ts';

/** A mutant of a file that one fast test looks at. */
function planted(text: string, replacement: string): Mutant {
  const file = 'helpers/promote/plan.ts';
  const start = readSource(file).indexOf(text);
  assert.ok(start > 0, text);
  return { id: text, kind: 'order', file, start, end: start + text.length, replacement };
}

describe('the mutants of the promotion protocol', function () {
  this.timeout(120_000);

  it('fit the source as it stands, each changes it, and each has a name of its own', () => {
    const mutants = allMutants();
    const kinds = new Set(mutants.map(({ kind }) => kind));
    assert.deepEqual(kinds, new Set(['sync', 'order', 'check', 'flag']));
    assert.equal(new Set(mutants.map(({ id }) => id)).size, mutants.length);
    for (const mutant of mutants) assert.notEqual(mutated(mutant), readSource(mutant.file), mutant.id);
  });

  it('that are said to change nothing are in the list', () => {
    const ids = new Set(allMutants().map(({ id }) => id));
    assert.deepEqual(
      Object.keys(EQUIVALENT).filter((id) => !ids.has(id)),
      [],
    );
  });

  it('are killed by a test that fails, and survive where none does; the work tree stays as it is', async () => {
    const copy = new Copy();
    const onDisk = (): string => fs.readFileSync(path.join(TOP, 'helpers/promote/plan.ts'), 'utf8');
    const source = onDisk();
    try {
      const tests = ['test/helpers/promote/plan.test.ts'];
      const killed = await copy.play(planted('-order : order', 'order : order'), tests);
      assert.equal(killed.outcome, 'killed');
      assert.match(killed.by, /the order of a promotion’s steps/);
      const same = await copy.play(planted('/** Most changes of one promotion. */', '/** The most. */'), tests);
      assert.equal(same.outcome, 'survived');
    } finally {
      copy.remove();
    }
    assert.equal(onDisk(), source);
  });
});
