import assert from 'node:assert/strict';

import { isLoopback, OriginRefused, readOrigin } from '../../../helpers/protocol/origin.ts';

const notPermitted = (error: unknown): boolean => error instanceof OriginRefused;

describe('the one origin', () => {
  const permitted: Record<string, [string, boolean, object]> = {
    'https with a name': ['https://control.example', false, { hostname: 'control.example', port: 443, isSecure: true }],
    'https with a port': ['https://control.example:8443/', false, { port: 8443 }],
    'https with a literal address': ['https://[::1]:8443', false, { hostname: '::1', port: 8443, isSecure: true }],
    'http to a loopback address with the variable': ['http://127.0.0.1:8080', true, { isSecure: false, port: 8080 }],
    'http to the other loopback address with the variable': ['http://[::1]', true, { hostname: '::1', port: 80 }],
  };
  for (const [what, [text, loopbackHttp, facts]] of Object.entries(permitted)) {
    it(`${what} is permitted`, () => {
      const origin = readOrigin(text, loopbackHttp);
      assert.deepEqual({ ...origin, ...facts }, origin);
    });
  }

  const refused: Record<string, string> = {
    'http with a name': 'http://control.example',
    'http with a name that leads to loopback': 'http://localhost:8080',
    'http with a name below localhost': 'http://a.localhost:8080',
    'http with an address of a network': 'http://192.168.1.1',
    'http with the address of every interface': 'http://0.0.0.0:80',
    'http with a mapped address': 'http://[::ffff:10.0.0.1]/',
    'another scheme': 'ftp://127.0.0.1',
    'a file': 'file:///etc/passwd',
    'a Unix socket': 'unix:///run/x.sock',
    'a user': 'https://me@control.example',
    'a password': 'https://:secret@control.example',
    'a path': 'https://control.example/elsewhere',
    'a query': 'https://control.example/?next=1',
    'no URL': 'control.example',
    nothing: '',
  };
  for (const [what, text] of Object.entries(refused)) {
    it(`${what} is refused, with the variable of loopback and without`, () => {
      assert.throws(() => readOrigin(text, false), notPermitted);
      assert.throws(() => readOrigin(text, true), notPermitted);
    });
  }

  it('http to a loopback address without the variable is refused, whatever its spelling', () => {
    for (const text of ['http://127.0.0.1', 'http://127.1', 'http://2130706433', 'http://0x7f.1', 'http://[::1]']) {
      assert.throws(() => readOrigin(text, false), notPermitted);
      assert.ok(isLoopback(readOrigin(text, true).hostname));
    }
  });

  it('a refusal never repeats the user or password of an origin', () => {
    assert.throws(
      () => readOrigin('https://me:secret@control.example', false),
      (error) => error instanceof OriginRefused && !error.message.includes('secret'),
    );
  });
});
