import assert from 'node:assert/strict';

import { addresses, addressOf, placeOf } from '../../../server/page/router.tsx';

describe('addresses of the page', () => {
  it('every view is found again by its own address', () => {
    for (const [view, pattern] of Object.entries(addresses)) {
      const address = pattern.replaceAll(/:\w+/g, 'exr_0a1b');
      assert.equal(placeOf(address).view, view, address);
    }
  });

  it('a fixed name wins over a parameter', () => {
    assert.equal(placeOf('/machines/pair').view, 'pair');
    assert.equal(placeOf('/runs/launch').view, 'launch');
  });

  it('parameters are read, and written back', () => {
    const place = placeOf('/machines/exr_01/agents', '?x=1');
    assert.deepEqual(place.parameters, { executor: 'exr_01' });
    assert.equal(place.query.get('x'), '1');
    assert.equal(addressOf('machineAgents', { executor: 'exr_01' }), '/machines/exr_01/agents');
  });

  it('an address that no view has is unknown, and so is a parameter that is no id', () => {
    for (const address of ['/nowhere', '/machines/a/b/c', '/machines/%2e%2e', '/reviews/a%20b']) {
      assert.equal(placeOf(address).view, undefined, address);
    }
  });
});
