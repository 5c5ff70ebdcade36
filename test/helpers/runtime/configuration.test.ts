import assert from 'node:assert/strict';

import { parseConfiguration, StartRefusal } from '../../../helpers/runtime/configuration.ts';

const VALID = {
  version: 1,
  root: '/r',
  configDir: '/c',
  stateDir: '/s',
  origin: 'https://host:8443',
  caFile: '/ca.pem',
};

describe('the configuration of the supervisor', () => {
  it('is read as it was written, with or without a CA file', () => {
    assert.deepEqual(parseConfiguration(JSON.stringify(VALID)), VALID);
    const { caFile: _caFile, ...without } = VALID;
    assert.deepEqual(parseConfiguration(JSON.stringify(without)), { ...without, caFile: undefined });
  });

  const refused: readonly (readonly [string, unknown, string])[] = [
    ['another version', { ...VALID, version: 2 }, '`version`'],
    ['a field that is not known', { ...VALID, more: 1 }, 'not known'],
    ['a root that is relative', { ...VALID, root: 'r' }, '`root`'],
    ['a root that is no text', { ...VALID, root: 1 }, '`root`'],
    ['a path with a NUL', { ...VALID, stateDir: '/s\0' }, '`stateDir`'],
    ['an origin with a path', { ...VALID, origin: 'https://host/x' }, '`origin`'],
    ['an origin that is no URL', { ...VALID, origin: 'host' }, '`origin`'],
    ['a list', [], '`version`'],
    ['null', null, 'an object'],
  ];
  for (const [title, value, named] of refused) {
    it(`${title} is refused with its name and the remedy`, () => {
      assert.throws(
        () => parseConfiguration(JSON.stringify(value)),
        (error) => error instanceof StartRefusal && error.message.includes(named) && error.message.includes('pair'),
      );
    });
  }

  it('bytes that are no JSON are refused without being quoted', () => {
    assert.throws(
      () => parseConfiguration('secret-marker'),
      (error) => error instanceof StartRefusal && !error.message.includes('secret-marker'),
    );
  });
});
