import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { get as getTls } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeTestAuthority } from '../fakes/test-authority.ts';
import { skipBecause } from '../skip.ts';
import { startWork } from '../../server/commands/start-work.ts';
import { createApp } from '../../server/app.ts';
import { checkSettings, isLoopback } from '../../server/config.ts';
import { makeContext, pairThroughRoutes, PUBLIC_ORIGIN, startGovernance } from './governance.ts';
import type { Governance } from './governance.ts';

const waitFor = async (heard: string[], pattern: RegExp) => {
  const end = Date.now() + 5000;
  while (!pattern.test(heard.join(''))) {
    assert.ok(Date.now() < end, `waited for ${pattern} in ${heard.join('')}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

describe('HTTP application', () => {
  let plane: Governance;
  before(async () => {
    plane = await startGovernance();
  });
  after(() => plane.stop());

  it('each answer forbids inline code, foreign origins and frames', async () => {
    const { headers } = await plane.owner.get('/api/page/session');
    const policy = String(headers.get('content-security-policy'));
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "trusted-types 'none'",
      "base-uri 'none'",
    ]) {
      assert.ok(policy.includes(rule), rule);
    }
    assert.equal(/unsafe|https:|\*/.test(policy), false);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    assert.equal(headers.get('cache-control'), 'no-store');
  });

  it('an error is a code, a sentence and a remedy: no stack, no path, no value that was sent', async () => {
    const planted = `planted-${randomBytes(8).toString('hex')}`;
    const answers = [
      await plane.owner.post('/api/page/sign-in', { login: planted, password: planted, extra: planted }),
      await plane.owner.post('/api/page/pairings/lookup', { code: planted }),
      await plane.owner.get(`/api/page/executors/${planted}`),
      await plane.owner.get(`/api/${planted}`),
      await plane.owner.request('POST', '/api/page/agents', undefined, { 'content-type': 'application/json' }),
      await plane.owner.request('POST', '/api/page/agents', { name: 'x'.repeat(300_000) }),
      await plane.owner.request('POST', '/api/page/agents', 'not json at all', { 'content-type': 'text/plain' }),
    ];
    for (const { status, text, body } of answers) {
      assert.ok(status >= 400 && status < 500, `${status}`);
      assert.match(body.code, /^[A-Z_]+$/);
      assert.ok(body.message.length > 10);
      assert.equal(/planted|node_modules|\.ts|at \w+ \(/.test(text), false, text);
    }
  });

  it('a store that fails is told as such, and what failed is in the log by name alone', async () => {
    const broken = await startGovernance();
    await broken.context.store.write((tx) => tx.schema.dropTable('agents').execute());
    const { status, body, text } = await broken.owner.get('/api/page/agents');
    assert.equal(status, 500);
    assert.equal(body.code, 'INTERNAL');
    assert.equal(/agents|sqlite/i.test(text), false);
    await broken.stop();
  });

  it('health is told to everybody, numbers to this machine alone, the API to everybody', async () => {
    assert.deepEqual((await plane.owner.get('/healthz')).body, { healthy: true });
    const metrics = await plane.owner.get('/metrics');
    assert.match(metrics.text, /nessie_executors/);
    const proxied = await plane.owner.request('GET', '/metrics', undefined, { 'x-forwarded-for': '192.0.2.1' });
    assert.equal(proxied.status, 404);
    const { body } = await plane.owner.get('/api/openapi.json');
    assert.equal(body.openapi, '3.1.0');
    assert.ok(Object.keys(body.paths).length > 30);
    assert.ok(body.paths['/api/page/executors/{executor}/pause']);
  });

  it('no call of the page answers anybody who is not signed in, but setup, sign-in and who is there', async () => {
    const { paths } = (await plane.owner.get('/api/openapi.json')).body;
    const open = new Set(['/api/page/session', '/api/page/setup', '/api/page/sign-in', '/api/page/sign-in-by-link']);
    for (const [path, methods] of Object.entries(paths)) {
      if (!path.startsWith('/api/page/') || open.has(path)) continue;
      for (const method of Object.keys(methods as object)) {
        const response = await fetch(plane.origin + path.replaceAll(/\{(\w+)\}/g, 'x'), {
          method: method.toUpperCase(),
          headers: { origin: PUBLIC_ORIGIN, 'content-type': 'application/json' },
          ...(method === 'get' ? {} : { body: '{}' }),
        });
        assert.equal(response.status, 401, `${method} ${path}`);
      }
    }
  });

  it('events tell who may know of it that something changed, and nothing of what', async () => {
    const guest = await plane.invite('listener');
    const listen = (cookie: string) => {
      const heard: string[] = [];
      const request = get(`${plane.origin}/api/page/events`, { headers: { cookie } }, (response) => {
        response.on('data', (chunk) => heard.push(String(chunk)));
      });
      return { heard, end: () => request.destroy() };
    };
    const own = listen(plane.owner.cookie);
    const foreign = listen(guest.cookie);
    await waitFor(own.heard, /: open/);
    await waitFor(foreign.heard, /: open/);
    const { executor } = await pairThroughRoutes(plane, plane.owner);
    await waitFor(own.heard, new RegExp(`event: changed\\ndata: {"subject":"executor","id":"${executor}"}\\n\\n`));
    plane.context.wake.account(guest.person);
    await waitFor(foreign.heard, /"subject":"agents"/);
    assert.equal(foreign.heard.join('').includes(executor), false);
    own.end();
    foreign.end();
  });

  it('the page is served at every address of its own, its files for good, and never in place of a call', async () => {
    const { context } = await makeContext();
    const folder = await mkdtemp(join(tmpdir(), 'nessie-page-'));
    await mkdir(join(folder, 'assets'));
    await writeFile(join(folder, 'index.html'), '<!doctype html><title>page</title>');
    await writeFile(join(folder, 'assets', 'main-abc.js'), 'export {}');
    const work = await startWork(context);
    const app = await createApp(context, work, folder);
    const origin = await app.listen({ host: '127.0.0.1', port: 0 });
    const ask = async (path: string, method = 'GET') => {
      const response = await fetch(origin + path, { method });
      return {
        status: response.status,
        type: response.headers.get('content-type'),
        cache: response.headers.get('cache-control'),
        text: await response.text(),
      };
    };
    for (const path of ['/', '/machines', '/machines/exr_1']) assert.match((await ask(path)).text, /<title>page/);
    const script = await ask('/assets/main-abc.js');
    assert.match(String(script.cache), /immutable/);
    assert.match(String(script.type), /javascript/);
    for (const path of [
      '/api/nothing',
      '/assets/nothing.js',
      '/assets/../index.html',
      '/assets/%2e%2e/index.html',
      '/assets/..%2findex.html',
    ]) {
      const { text } = await ask(path);
      if (path.startsWith('/assets/nothing') || path.startsWith('/api')) assert.match(text, /NOT_FOUND/, path);
    }
    assert.equal((await ask('/machines', 'POST')).status, 404);
    await work.stop();
    await app.close();
    await context.store.close();
  });
});

const serveWith = async (settings: object) => {
  const { context } = await makeContext();
  const changed = { ...context, settings: checkSettings({ ...context.settings, ...settings }) };
  const work = await startWork(changed);
  const app = await createApp(changed, work);
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const stop = async () => {
    await work.stop();
    await app.close();
    await changed.store.close();
  };
  return { origin, stop };
};

const tries = async (origin: string, address: string) => {
  const response = await fetch(`${origin}/api/page/sign-in-by-link`, {
    method: 'POST',
    headers: { origin: PUBLIC_ORIGIN, 'content-type': 'application/json', 'x-forwarded-for': address },
    body: JSON.stringify({ token: 'guess' }),
  });
  return response.status;
};

describe('HTTP application over TLS and behind a proxy', () => {
  it('serves https with the owner’s certificate, tells browsers to stay with it, and refuses old TLS', async function () {
    const authority = makeTestAuthority();
    if (authority === undefined) return skipBecause(this, 'no openssl program');
    const folder = await mkdtemp(join(tmpdir(), 'nessie-tls-'));
    const { cert, key } = authority.issue('IP:127.0.0.1');
    await writeFile(join(folder, 'cert.pem'), cert);
    await writeFile(join(folder, 'key.pem'), key);
    const tls = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const { origin, stop } = await serveWith({ publicOrigin: 'https://127.0.0.1:7420', tls });
    const ask = (more: object = {}) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        getTls(`${origin}/api/page/session`, { ca: authority.authority, ...more }, (response) => {
          response.resume();
          resolve(response);
        }).on('error', reject);
      });
    const { headers, statusCode } = await ask();
    assert.equal(statusCode, 200);
    assert.match(String(headers['strict-transport-security']), /max-age=\d{7,}/);
    await assert.rejects(ask({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1' }));
    await assert.rejects(ask({ ca: undefined }));
    await stop();
    await assert.rejects(serveWith({ tls: { certificate: '/nowhere', key: '/nowhere' } }), /tls\.certificate/);
  });

  it('only a proxy that the owner declared names the client, and then each client has its own limits', async () => {
    const plain = await serveWith({});
    for (let index = 0; index < 30; index += 1) assert.equal(await tries(plain.origin, `192.0.2.${index}`), 401);
    assert.equal(await tries(plain.origin, '192.0.2.99'), 429, 'a header changes nobody');
    await plain.stop();
    const proxied = await serveWith({ behindProxy: true });
    for (let index = 0; index < 30; index += 1) assert.equal(await tries(proxied.origin, '192.0.2.1'), 401);
    assert.equal(await tries(proxied.origin, '192.0.2.1'), 429);
    assert.equal(await tries(proxied.origin, '192.0.2.2'), 401);
    await proxied.stop();
  });
});

describe('configuration', () => {
  const good = { listen: {}, publicOrigin: 'https://nessie.example.org', dataFolder: '/data' };
  const cases: [string, object, RegExp][] = [
    ['an unknown key', { ...good, debug: true }, /Unrecognized key/],
    ['a public origin with a path', { ...good, publicOrigin: 'https://nessie.example.org/x' }, /publicOrigin/],
    ['plain http to the world', { ...good, publicOrigin: 'http://nessie.example.org' }, /use https/],
    ['a name that may resolve to loopback', { ...good, publicOrigin: 'http://localhost:7420' }, /use https/],
    ['https that nobody is said to end', good, /behindProxy.*X-Forwarded-For.*tls\.certificate/],
    ['listening to the world without a certificate', { ...good, listen: { host: '0.0.0.0' } }, /listen\.host/],
    ['no data folder', { listen: {}, publicOrigin: good.publicOrigin }, /dataFolder/],
    ['a port that is none', { ...good, listen: { port: 70_000 } }, /listen\.port/],
  ];
  for (const [what, value, says] of cases) {
    it(`refuses ${what} and names the key`, () => assert.throws(() => checkSettings(value), says));
  }
  it('takes https with a certificate or behind a proxy on this machine, and loopback in plain', () => {
    assert.equal(checkSettings({ ...good, behindProxy: true }).listen.port, 7420);
    assert.equal(checkSettings({ ...good, tls: { certificate: 'c', key: 'k' } }).behindProxy, false);
    assert.equal(checkSettings({ ...good, publicOrigin: 'http://127.0.0.1:7420' }).payloadHours, 24);
    assert.deepEqual(
      ['127.0.0.1', '::1', '[::1]', '127.9.9.9', 'localhost', '128.0.0.1', '::2', '127.evil.example'].map(isLoopback),
      [true, true, true, true, false, false, false, false],
    );
  });
});
