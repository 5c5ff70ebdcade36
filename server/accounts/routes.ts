import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { sha256 } from '../../helpers/protocol/signed.ts';
import type { Context } from '../context.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import { agentRoutes } from './agent-routes.ts';
import { sessionSchema } from './answers.ts';
import type { SessionAnswer } from './answers.ts';
import { loginSchema, nameSchema, passwordSchema, tokenSchema } from './fields.ts';
import { groupRoutes, peopleRoutes } from './people-routes.ts';
import type { SignedIn } from './sessions.ts';
import { limits, addressSubject, takeLimit } from './limits.ts';
import { useLink } from './links.ts';
import { setPassword } from './people.ts';
import { beginSession, cookieName, csrfToken, personOfRequest, sendCookie } from './sessions.ts';
import { isSetUp, setUp } from './setup.ts';
import { linkInvalid, signIn, signInByLink } from './sign-in.ts';

/** Routes of accounts: setup, sign-in, people, teams, projects, agents. */
export function accountRoutes(app: App, context: Context): void {
  sessionRoutes(app, context);
  passwordRoutes(app, context);
  setupRoutes(app, context);
  peopleRoutes(app, context);
  groupRoutes(app, context);
  agentRoutes(app, context);
}

/** Who asks, and what this server is. */
async function readWho(context: Context, by: SignedIn | null): Promise<SessionAnswer> {
  const server = {
    commandKeyFingerprint: sha256(context.signer.publicKey).toString('hex'),
    now: context.clock.now(),
  };
  const ready = await isSetUp(context.store.read);
  if (by === null) return { isSetUp: ready, server, person: null };
  const row = await context.store.read
    .selectFrom('people')
    .select(['name', 'login', 'password'])
    .where('id', '=', by.person)
    .executeTakeFirstOrThrow();
  const { person: id, role, organisation, byLink } = by;
  const own = { id, name: row.name, login: row.login, role, organisation, byLink };
  const person = { ...own, hasPassword: row.password !== null, csrf: csrfToken(context, by.session) };
  return { isSetUp: ready, server, person };
}

function sessionRoutes(app: App, context: Context): void {
  app.get('/api/page/session', { config: { open: true }, schema: { response: { 200: sessionSchema } } }, (request) =>
    readWho(context, request.signedIn),
  );
  const begin = async (reply: FastifyReply, token: Promise<string>): Promise<typeof DONE> => {
    sendCookie(context, reply, await token);
    return DONE;
  };
  app.post(
    '/api/page/sign-in',
    {
      config: { open: true },
      schema: { body: z.strictObject({ login: loginSchema, password: passwordSchema }), response: { 200: doneSchema } },
    },
    (request, reply) => begin(reply, signIn(context, request.ip, request.body)),
  );
  app.post(
    '/api/page/sign-in-by-link',
    { config: { open: true }, schema: { body: z.strictObject({ token: tokenSchema }), response: { 200: doneSchema } } },
    (request, reply) => begin(reply, signInByLink(context, request.ip, request.body.token)),
  );
  app.post('/api/page/sign-out', { schema: { response: { 200: doneSchema } } }, async (request, reply) => {
    const { session } = personOfRequest(request);
    await context.store.write((tx) => tx.deleteFrom('sessions').where('id', '=', session).execute());
    void reply.clearCookie(cookieName(context), { path: '/' });
    return DONE;
  });
}

function passwordRoutes(app: App, context: Context): void {
  app.post(
    '/api/page/password',
    {
      schema: {
        body: z.strictObject({ current: passwordSchema.optional(), next: passwordSchema }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      await setPassword(context, personOfRequest(request), { current: request.body.current, next: request.body.next });
      return DONE;
    },
  );
}

function setupRoutes(app: App, context: Context): void {
  const body = z.strictObject({
    token: tokenSchema,
    organisation: nameSchema,
    team: nameSchema.default('Team'),
    project: nameSchema.default('Project'),
    login: loginSchema,
    name: nameSchema,
    password: passwordSchema,
  });
  app.post(
    '/api/page/setup',
    { config: { open: true }, schema: { body, response: { 200: doneSchema } } },
    async (request, reply) => {
      const { token, password, ...first } = request.body;
      await takeLimit(context, limits.linksOfAddress, addressSubject(request.ip));
      const { person } = await setUp(context, { ...first, password }, async (tx) => {
        if ((await useLink(context, tx, 'setup', token)) === undefined) throw linkInvalid();
      });
      sendCookie(context, reply, await context.store.write((tx) => beginSession(context, tx, person, false)));
      return DONE;
    },
  );
}
