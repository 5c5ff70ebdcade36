/*
 * For who runs the control plane: whether it works, what it does in numbers, and what its API is.
 */
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import * as z from 'zod';
import { isLoopback } from '../config.ts';
import type { Context } from '../context.ts';
import type { App } from '../http.ts';
import { Refusal } from '../refusal.ts';

/** /healthz for everybody; /metrics for this machine alone; /api/openapi.json for everybody. */
export function operatorRoutes(app: App, context: Context): void {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  observeExecutors(registry, context);
  const seconds = new Histogram({
    name: 'nessie_http_request_seconds',
    help: 'Time from request to answer by route and status.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none';
    seconds.observe({ method: request.method, route, status: reply.statusCode }, reply.elapsedTime / 1000);
    done();
  });
  app.get(
    '/healthz',
    { schema: { hide: true, response: { 200: z.strictObject({ healthy: z.literal(true) }) } } },
    async () => {
      await context.store.read.selectFrom('auditHead').select('sequence').execute();
      return { healthy: true as const };
    },
  );
  app.get('/metrics', { schema: { hide: true } }, async (request, reply) => {
    const isOwn = isLoopback(request.socket.remoteAddress?.replace(/^::ffff:/, '') ?? '');
    if (!isOwn || request.headers['x-forwarded-for'] !== undefined) {
      throw new Refusal('NOT_FOUND', 'There is nothing at this address.', { status: 404 });
    }
    return reply.type(registry.contentType).send(await registry.metrics());
  });
  app.get('/api/openapi.json', { schema: { hide: true } }, () => app.swagger());
}

function observeExecutors(registry: Registry, context: Context): void {
  const executors = new Gauge({
    name: 'nessie_executors',
    help: 'Executors by state.',
    labelNames: ['state'],
    registers: [registry],
    collect: async () => {
      const rows = await context.store.read
        .selectFrom('executors')
        .select(['state', (column) => column.fn.countAll<number>().as('count')])
        .where('listed', '=', 1)
        .groupBy('state')
        .execute();
      executors.reset();
      for (const { state, count } of rows) executors.set({ state }, count);
    },
  });
}
