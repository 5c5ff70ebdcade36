import assert from 'node:assert/strict';
import {
  defaultPolicy,
  parsePolicy,
  permittedOperations,
  policyDigest,
  PolicyInvalid,
  widens,
} from '../../daemon/config.ts';
import { permits } from '../../helpers/protocol/policy.ts';
import type { Policy } from '../../helpers/protocol/policy.ts';
import { operations } from '../../helpers/protocol/operations.ts';

const base = defaultPolicy();
const text = (value: unknown) => JSON.stringify(value);

describe("the owner's policy", () => {
  it('survives being written and read', () => assert.deepEqual(parsePolicy(text(base)), base));

  it('written before history was a section of it has the defaults of that section, and the digest that was confirmed', () => {
    const { history, ...older } = base;
    const read = parsePolicy(text(older));
    assert.deepEqual(read.history, { ...history, why: '' });
    assert.deepEqual(policyDigest(read), policyDigest(base));
    assert.deepEqual(policyDigest({ ...base, history: { megabytes: 0, days: 0, why: '' } }), policyDigest(base));
  });

  it('permits every operation of the list and nothing that is only named', () => {
    for (const { key } of operations) assert.ok(permits(base, key), key);
    const named = { ...base, operations: { allow: ['command.run'], deny: [], why: '' } };
    assert.equal(permits(named, 'command.run'), false);
  });

  const mistakes: readonly (readonly [string, string, RegExp])[] = [
    ['is not JSON', '{', /not JSON/],
    ['is empty', '', /not JSON/],
    ['has an unknown key', text({ ...base, shell: true }), /shell/],
    [
      'names an unknown operation',
      text({ ...base, operations: { allow: ['file.exec'], why: '' } }),
      /operations\.allow\.0.*operation list/,
    ],
    [
      'sets a limit past its bound',
      text({ ...base, limits: { ...base.limits, runtimeMs: 300_001 } }),
      /limits\.runtimeMs/,
    ],
    ['keeps less than nothing', text({ ...base, history: { days: -1 } }), /history\.days/],
    ['has a version of the future', text({ ...base, version: 2 }), /version/],
    ['lacks a section', text({ ...base, promotion: undefined }), /promotion/],
  ];
  for (const [what, bytes, message] of mistakes) {
    it(`is refused when it ${what}, naming the place`, () => {
      assert.throws(
        () => parsePolicy(bytes),
        (error: unknown) => error instanceof PolicyInvalid && message.test(error.message),
      );
    });
  }

  it('R31 lets deny beat allow; an empty allow permits nothing, and an empty deny takes nothing away', () => {
    const deciding = (allow: string[], deny: string[]) =>
      permittedOperations(parsePolicy(text({ ...base, operations: { allow, deny, why: '' } })));
    assert.deepEqual(deciding(['file.read', 'file.list'], ['file.read']), ['file.list']);
    assert.deepEqual(deciding(['file.read'], ['file.read']), []);
    assert.deepEqual(deciding([], []), []);
    assert.deepEqual(deciding([], ['file.read']), []);
    assert.deepEqual(deciding(['file.read'], []), ['file.read']);
  });

  it('has one digest for one decision, whatever the reasons and the order', () => {
    const reordered = {
      ...base,
      operations: { ...base.operations, allow: base.operations.allow.toReversed(), why: 'because' },
    };
    assert.deepEqual(policyDigest(reordered), policyDigest(base));
  });

  const strict: Policy = {
    ...base,
    operations: { allow: ['file.read'], deny: [], why: '' },
    promotion: { confirm: 'machine', why: '' },
    difference: { shown: 'machine', why: '' },
    limits: { concurrentCommands: 1, runtimeMs: 1000, why: '' },
  };
  const changes: readonly (readonly [string, Policy, Policy, boolean])[] = [
    ['nothing changed', base, base, false],
    ['an operation is denied', base, { ...base, operations: { ...base.operations, deny: ['file.write'] } }, false],
    [
      'an operation is allowed',
      strict,
      { ...strict, operations: { allow: ['file.read', 'file.list'], deny: [], why: '' } },
      true,
    ],
    ['a denial is lifted', { ...base, operations: { ...base.operations, deny: ['file.write'] } }, base, true],
    ['the machine no longer confirms', strict, { ...strict, promotion: { confirm: 'page', why: '' } }, true],
    ['the machine confirms too', base, { ...base, promotion: { confirm: 'machine', why: '' } }, false],
    ['the page may see the difference', strict, { ...strict, difference: { shown: 'page', why: '' } }, true],
    ['an ignore rule goes', base, { ...base, ignore: { patterns: [], why: '' } }, true],
    [
      'an ignore rule comes',
      base,
      { ...base, ignore: { ...base.ignore, patterns: [...base.ignore.patterns, 'secret/'] } },
      false,
    ],
    [
      'an exception from an ignore rule comes',
      base,
      { ...base, ignore: { ...base.ignore, patterns: [...base.ignore.patterns, '!.env'] } },
      true,
    ],
    [
      'more runs side by side',
      strict,
      { ...strict, limits: { concurrentCommands: 2, runtimeMs: 1000, why: '' } },
      true,
    ],
    [
      'commands may run longer',
      strict,
      { ...strict, limits: { concurrentCommands: 1, runtimeMs: 1001, why: '' } },
      true,
    ],
  ];
  for (const [what, current, next, wider] of changes) {
    it(`${wider ? 'widens' : 'does not widen'} when ${what}`, () => assert.equal(widens(current, next), wider));
  }
});
