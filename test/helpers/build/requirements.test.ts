import assert from 'node:assert/strict';
import { join } from 'node:path';

import { checkRequirements, compare, idsIn, readRequirements } from '../../../helpers/build/requirements.ts';

const root = join(import.meta.dirname, '../../..');

const numbers = (prefix: string, digits: number, ...ranges: readonly [number, number][]): string[] =>
  ranges.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, index) => `${prefix}${String(first + index).padStart(digits, '0')}`),
  );

describe('requirements', () => {
  it('N-555 every id of the catalogue has a line and a state, and an id in a title without an entry fails', async () => {
    const requirements = await readRequirements(root);
    const expected = [
      ...numbers('N-', 3, [1, 245], [501, 556]),
      ...numbers('R', 1, [1, 12], [20, 29], [30, 40], [50, 63], [70, 83], [90, 94]),
      ...numbers('F-', 2, [1, 50]),
    ];
    assert.deepEqual(
      expected.filter((id) => !(id in requirements)),
      [],
    );
    assert.equal(Object.keys(requirements).filter((id) => id.startsWith('S-')).length, 211);
    assert.equal(Object.keys(requirements).length, expected.length + 211);
    const stranger = ['N', '999'].join('-');
    assert.match(compare(requirements, [`${stranger} promises nothing`])[0] ?? '', /N-999 .* is no requirement/);
    assert.deepEqual(await checkRequirements(root), []);
  });

  it('an id that says shown and is in no title fails, and so does one in a title whose state lags behind', () => {
    const list = { 'N-001': { line: 'a', state: 'shown' }, 'N-002': { line: 'b', state: 'not yet: guests' } };
    const [unshown, lagging] = compare(list, ['N-002 is here']);
    assert.match(unshown ?? '', /^N-001 is "shown", but no test title carries it/);
    assert.match(lagging ?? '', /^N-002 has a test and its state is "not yet: guests"/);
    assert.deepEqual(compare(list, ['N-001 is here']), []);
  });

  it('a state that is none of the three is refused, and so is an empty line', () => {
    assert.match(
      compare({ 'N-001': { line: 'a', state: 'done' } }, [])[0] ?? '',
      /expected a line and a state, found "done"/,
    );
    assert.match(compare({ 'N-001': { line: ' ', state: 'not yet: guests' } }, [])[0] ?? '', /^N-001: expected a line/);
  });

  it('ids are read from titles whole, and words that look like one are not', () => {
    assert.deepEqual(idsIn('R30 and S-136, N-131 (F-06) hold'), ['R30', 'S-136', 'N-131', 'F-06']);
    assert.deepEqual(idsIn('SHA-256 of P-256 in IR30 and UTF-8'), []);
  });
});
