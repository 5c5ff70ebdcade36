/*
 * The HTTP server: headers, sessions and errors in one place, then the routes of each subject.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import cookie from '@fastify/cookie';
import helmet from '@fastify/helmet';
import serveFiles from '@fastify/static';
import swagger from '@fastify/swagger';
import fastify from 'fastify';
import {
  hasZodFastifySchemaValidationErrors,
  jsonSchemaTransform,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { aboutError } from './about-error.ts';
import { accountRoutes } from './accounts/routes.ts';
import { checkOwnPage, readSession } from './accounts/sessions.ts';
import { auditRoutes } from './audit/routes.ts';
import { availabilityRoutes } from './availability/routes.ts';
import { routes as channelRoutes } from './channel/routes.ts';
import type { Work } from './commands/work.ts';
import { ConfigRefused } from './config.ts';
import type { Settings } from './config.ts';
import type { Context } from './context.ts';
import { routes as draftRoutes } from './drafts/routes.ts';
import { routes as mcpRoutes } from './mcp/routes.ts';
import { routes as runRoutes } from './runs/routes.ts';
import { descriptorRoutes } from './descriptors/routes.ts';
import { eventRoutes } from './events/routes.ts';
import { executorRoutes } from './executors/routes.ts';
import { grantRoutes } from './grants/routes.ts';
import { errorSchema } from './http.ts';
import type { App } from './http.ts';
import { operatorRoutes } from './operators/routes.ts';
import { pairingRoutes } from './pairing/routes.ts';
import { Refusal } from './refusal.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route of the page that needs no session: setup, sign-in and asking who is signed in. */
    open?: boolean;
    /** A route that answers with a stream and therefore sets no cookie. */
    stream?: boolean;
  }
}

/** Largest body of a JSON call, in bytes. */
const BODY_LIMIT_BYTES = 262_144;

/** Longest time for a request to arrive whole, in ms: a client that dribbles holds nothing for longer. */
const REQUEST_MS = 30_000;

/** What the page may load and do: its own files and this server, no inline code, no frame around it. */
const CONTENT_SECURITY_POLICY = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'"],
  'connect-src': ["'self'"],
  'img-src': ["'self'"],
  'font-src': ["'none'"],
  'manifest-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'self'"],
  'frame-ancestors': ["'none'"],
  'require-trusted-types-for': ["'script'"],
  'trusted-types': ["'none'"],
};

/** Makes the server without listening. `pageFolder` holds index.html and assets/ of the page; undefined where none was built. */
export async function createApp(context: Context, work: Work, pageFolder?: string): Promise<App> {
  const { tls, behindProxy } = context.settings;
  const https = tls === undefined ? null : readTls(tls);
  const app = fastify({
    https,
    logger: false,
    // TRUST: only a proxy on this machine may name the client, and only where the owner said that there is one.
    trustProxy: behindProxy ? 'loopback' : false,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_MS,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 200 },
  }).withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: CONTENT_SECURITY_POLICY },
    strictTransportSecurity: context.settings.publicOrigin.startsWith('https:'),
  });
  await app.register(cookie);
  await app.register(swagger, {
    openapi: { openapi: '3.1.0', info: { title: 'nessie-executor control plane', version: '1' } },
    transform: jsonSchemaTransform,
  });
  describeErrors(app);
  answerErrors(app, context);
  checkSessions(app, context);
  for (const routes of [
    accountRoutes,
    pairingRoutes,
    executorRoutes,
    descriptorRoutes,
    grantRoutes,
    availabilityRoutes,
    auditRoutes,
    eventRoutes,
    operatorRoutes,
  ]) {
    routes(app, context);
  }
  await channelRoutes(app, work);
  await mcpRoutes(app, work);
  runRoutes(app, work);
  draftRoutes(app, work);
  await servePage(app, pageFolder);
  return app;
}

function readTls(tls: NonNullable<Settings['tls']>) {
  try {
    return { cert: readFileSync(tls.certificate), key: readFileSync(tls.key), minVersion: 'TLSv1.2' as const };
  } catch (cause) {
    throw new ConfigRefused('configuration keys tls.certificate and tls.key: both must be readable PEM files', {
      cause,
    });
  }
}

/** Every call of the page belongs to a session; what may change something also comes from the page of this server. */
function checkSessions(app: App, context: Context): void {
  app.decorateRequest('signedIn', null);
  app.addHook('onRequest', async (request, reply) => {
    // THREAT: `/%61pi/page/x` reaches the route of `/api/page/x`. The route that was found decides, never the spelling of its
    // address (test/server/routes.test.ts).
    const route = request.routeOptions.url ?? '';
    if (request.is404 || route.startsWith('/api/')) void reply.header('cache-control', 'no-store');
    if (!route.startsWith('/api/page/')) return;
    request.signedIn = await readSession(context, request, reply);
    checkOwnPage(context, request);
    if (request.signedIn === null && request.routeOptions.config.open !== true) {
      throw new Refusal('SIGN_IN_REQUIRED', 'Sign in first.', { status: 401 });
    }
  });
}

/** Each call of the page says in the API's description what its refusals look like. */
function describeErrors(app: App): void {
  app.addHook('onRoute', (route) => {
    if (!route.url.startsWith('/api/page/') || route.schema === undefined) return;
    const described = typeof route.schema.response === 'object' ? route.schema.response : {};
    route.schema.response = { ...described, '4xx': errorSchema, '5xx': errorSchema };
  });
}

/** Every error is `{code, message, remedy?}`: never a stack, a path or a value that somebody sent. */
function answerErrors(app: App, context: Context): void {
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof Refusal) {
      const { code, message, remedy, status } = error;
      return reply.status(status).send({ code, message, ...(remedy === undefined ? {} : { remedy }) });
    }
    if (hasZodFastifySchemaValidationErrors(error)) {
      return reply.status(400).send({ code: 'REQUEST_INVALID', message: describeIssue(error.validation) });
    }
    const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500;
    if (status >= 400 && status < 500) {
      return reply
        .status(status)
        .send({ code: 'REQUEST_INVALID', message: 'This request cannot be read: expected JSON within the limits.' });
    }
    context.log.error({ ...aboutError(error), route: request.routeOptions.url ?? 'none' }, 'request failed');
    return reply.status(500).send({
      code: 'INTERNAL',
      message: 'This did not work, and what exactly went wrong is in the server’s log.',
      remedy: 'Try again; if it stays, look into the log.',
    });
  });
}

function describeIssue(
  issues: readonly { readonly instancePath: string; readonly message?: string | undefined }[],
): string {
  const issue = issues[0];
  const where = issue?.instancePath.replaceAll('/', '.').replace(/^\./, '') ?? '';
  return `${where === '' ? 'The request' : where}: ${issue?.message ?? 'not as expected'}`;
}

/** The page's files; every address that is no file and no call is the page itself, which reads the address. */
async function servePage(app: App, pageFolder: string | undefined): Promise<void> {
  const page = pageFolder === undefined ? undefined : readFileSync(join(pageFolder, 'index.html'));
  if (pageFolder !== undefined) {
    await app.register(serveFiles, {
      root: join(pageFolder, 'assets'),
      prefix: '/assets/',
      immutable: true,
      maxAge: '365d',
      decorateReply: false,
    });
  }
  app.setNotFoundHandler((request, reply) => {
    const isCall = request.url.startsWith('/api/') || request.url.startsWith('/assets/');
    if (page === undefined || isCall || request.method !== 'GET') {
      return reply.status(404).send({ code: 'NOT_FOUND', message: 'There is nothing at this address.' });
    }
    return reply.type('text/html; charset=utf-8').header('cache-control', 'no-cache').send(page);
  });
}
