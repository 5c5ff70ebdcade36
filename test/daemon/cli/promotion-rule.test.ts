import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { defaultPolicy } from '../../../daemon/config.ts';
import { placesIn } from '../../../daemon/cli/places.ts';
import type { Places } from '../../../daemon/cli/places.ts';
import { promotionRule, ruleOfNewPin } from '../../../daemon/cli/promotion-rule.ts';
import { writePin, writePolicy, writeSetUp } from '../../../daemon/cli/set-up.ts';
import type { PairedState } from '../../../daemon/cli/set-up.ts';

type Confirm = 'page' | 'machine';

describe('who confirms a promotion, read from pin and policy', () => {
  let folder: string;
  let places: Places;

  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rule-'));
    places = placesIn(path.join(folder, 'executor'));
    const root = path.join(folder, 'root');
    fs.mkdirSync(root);
    writeSetUp({ places, origin: 'https://a.example', root });
  });
  afterEach(() => fs.rmSync(folder, { recursive: true }));

  const policySays = (confirm: Confirm): void =>
    writePolicy(places, { ...defaultPolicy(), promotion: { confirm, why: '' } });
  const pinSays = (confirm: Confirm): void => {
    const pin = { executor: `exr_${'a'.repeat(32)}`, commandKey: Buffer.alloc(32), rootIdentity: Buffer.alloc(32) };
    // No more of a pairing is needed for a pin.
    writePin({ places, paired: pin as unknown as PairedState, confirm });
  };

  it('before pairing there is none, and the first pin says what the policy says', () => {
    assert.equal(promotionRule(places), undefined);
    for (const confirm of ['page', 'machine'] as const) {
      policySays(confirm);
      assert.equal(ruleOfNewPin(places), confirm);
    }
  });

  const cases: readonly (readonly [pin: Confirm, policy: Confirm, inForce: Confirm, named: boolean])[] = [
    ['page', 'page', 'page', false],
    ['page', 'machine', 'machine', true],
    ['machine', 'page', 'machine', true],
    ['machine', 'machine', 'machine', false],
  ];
  for (const [pin, policy, inForce, named] of cases) {
    it(`a pin of ${pin} and a policy of ${policy}: ${inForce}, also for a pairing that replaces this one`, () => {
      policySays(policy);
      pinSays(pin);
      const rule = promotionRule(places);
      assert.equal(rule?.inForce, inForce);
      assert.equal(rule.difference !== null, named);
      assert.equal(ruleOfNewPin(places), inForce);
    });
  }

  const unusable: Record<string, (file: string) => void> = {
    'that is missing': (file) => fs.rmSync(file),
    'that is no policy': (file) => fs.writeFileSync(file, '{}'),
    'that others may write': (file) => fs.chmodSync(file, 0o664),
    'that is a link': (file) => {
      fs.renameSync(file, `${file}.real`);
      fs.symlinkSync(`${file}.real`, file);
    },
  };
  for (const [what, damage] of Object.entries(unusable)) {
    it(`with a policy ${what} nobody promotes, with a remedy`, () => {
      pinSays('page');
      damage(path.join(places.configDir, 'policy.json'));
      const rule = promotionRule(places);
      assert.equal(rule?.inForce, 'nobody');
      assert.ok(rule.difference?.remedy);
    });
  }
});
