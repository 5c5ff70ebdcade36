import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';
import { startGovernance } from './governance.ts';
import type { Governance } from './governance.ts';

interface Route {
  readonly method: string;
  readonly url: string;
}

/** Collects every route of the next server that this process makes. */
const collect = (): { readonly routes: Route[]; readonly stop: () => void } => {
  const routes: Route[] = [];
  const watch = (message: unknown): void => {
    // Fastify's own channel hands out the instance before its first route.
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) routes.push({ method: one, url });
    });
  };
  subscribe('fastify.initialization', watch);
  return { routes, stop: () => unsubscribe('fastify.initialization', watch) };
};

/** What is told to everybody who asks; what the person sees before signing in. */
const OPEN_TO_ALL = new Set(['GET /healthz', 'GET /metrics', 'GET /api/openapi.json', 'GET /api/page/session']);
const WITHOUT_SESSION = new Set([
  '/api/page/session',
  '/api/page/setup',
  '/api/page/sign-in',
  '/api/page/sign-in-by-link',
]);
const FOREIGN = 'https://evil.example';

/** Other spellings of one address: the router reads them all as the same. */
const spellings: Record<string, (path: string) => string> = {
  'as it is': (path) => path,
  'with an encoded letter': (path) => path.replace(/^\/(\w)/, (_all, letter: string) => `/${encoded(letter)}`),
  'with every letter encoded': (path) => path.replaceAll(/\w/g, encoded),
};
const encoded = (letter: string) => `%${letter.charCodeAt(0).toString(16)}`;

describe('every route of the server', () => {
  let plane: Governance;
  let routes: readonly Route[];

  before(async () => {
    const collected = collect();
    plane = await startGovernance();
    collected.stop();
    routes = collected.routes;
  });
  after(() => plane.stop());

  const ask = async ({ method, url }: Route, spell: (path: string) => string, headers: Record<string, string>) => {
    const path = spell(url.replaceAll(/:\w+/g, 'x'));
    const isEmpty = method === 'GET' || method === 'HEAD';
    const response = await fetch(plane.origin + path, {
      method,
      headers: { ...(isEmpty ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(isEmpty ? {} : { body: '{}' }),
      signal: AbortSignal.timeout(10_000),
    });
    const text = response.headers.get('content-type') === 'text/event-stream' ? '' : await response.text();
    return { status: response.status, text, cache: response.headers.get('cache-control') };
  };

  /** Statuses with which a route answers somebody without a session, by who they say they are. */
  const expected = ({ method, url }: Route, origin: string | undefined): readonly number[] => {
    const changes = method !== 'GET' && method !== 'HEAD';
    if (OPEN_TO_ALL.has(`${method.replace('HEAD', 'GET')} ${url}`)) return [200];
    if (url.startsWith('/api/page/')) {
      if (changes && origin !== plane.context.settings.publicOrigin) return [403];
      return WITHOUT_SESSION.has(url) ? [400] : [401];
    }
    if (url.startsWith('/api/pairing/')) return [400, 415];
    if (url === '/api/executor/channel') return [400];
    if (url === '/mcp') return origin === FOREIGN ? [403] : [401];
    return [];
  };

  it('is in this table', () => {
    assert.ok(routes.length > 60, `${routes.length} routes`);
    for (const prefix of [
      '/api/page/sign-in',
      '/api/page/events',
      '/api/pairing/cancel',
      '/mcp',
      '/api/executor/channel',
    ])
      assert.ok(
        routes.some(({ url }) => url === prefix),
        prefix,
      );
    for (const route of routes) assert.notDeepEqual(expected(route, undefined), [], `${route.method} ${route.url}`);
  });

  for (const [spelling, spell] of Object.entries(spellings)) {
    it(`${spelling}, refuses whoever has no session, from here, from elsewhere and from nowhere`, async () => {
      const own = plane.context.settings.publicOrigin;
      for (const route of routes)
        for (const origin of [own, FOREIGN, undefined]) {
          const { status, text, cache } = await ask(route, spell, origin === undefined ? {} : { origin });
          const what = `${route.method} ${route.url} of ${origin ?? 'no origin'}: ${status} ${text}`;
          assert.ok(expected(route, origin).includes(status), what);
          if (route.url.startsWith('/api/')) assert.equal(cache, 'no-store', what);
        }
    });

    it(`${spelling}, changes nothing for a person whose browser another site uses`, async () => {
      const { cookie, csrf } = plane.owner;
      for (const route of routes.filter(({ method, url }) => url.startsWith('/api/page/') && method !== 'GET')) {
        if (route.method === 'HEAD') continue;
        const what = `${route.method} ${route.url}`;
        const foreign = await ask(route, spell, { cookie, 'x-nessie-csrf': csrf, origin: FOREIGN });
        assert.equal(foreign.status, 403, what);
        assert.match(foreign.text, /ORIGIN_FOREIGN/, what);
        const unproved = await ask(route, spell, { cookie, origin: plane.context.settings.publicOrigin });
        assert.equal(unproved.status, 403, what);
        assert.match(unproved.text, /CSRF_INVALID/, what);
      }
    });
  }
});
