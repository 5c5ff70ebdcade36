import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import {
  agentIdSchema,
  organisationIdSchema,
  personIdSchema,
  projectIdSchema,
  teamIdSchema,
  timeSchema,
} from '../../helpers/protocol/ids.ts';
import { sha256 } from '../../helpers/protocol/signed.ts';
import type { Context } from '../context.ts';
import { offboardPerson } from '../executors/offboard.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import { agentsSchema, issuedTokenSchema, organisationSchema, sessionSchema } from './answers.ts';
import { createAgent, endAgent, endToken, issueToken, listAgents, setToolGrants } from './agents.ts';
import { limits, addressSubject, takeLimit } from './limits.ts';
import { useLink } from './links.ts';
import { membershipOf } from './membership.ts';
import { PASSWORD_LIMIT } from './password.ts';
import {
  createProject,
  createTeam,
  invitePerson,
  readOrganisation,
  renewInvitation,
  setPassword,
  setProjectMember,
  setTeamMember,
} from './people.ts';
import { cookieName, csrfToken, personOfRequest, sendCookie } from './sessions.ts';
import { isSetUp, setUp } from './setup.ts';
import { linkInvalid, signIn, signInByLink } from './sign-in.ts';

const nameSchema = z.string().trim().min(1).max(64);
const loginSchema = z
  .string()
  .trim()
  .toLowerCase()
  .min(1)
  .max(64)
  .regex(/^[a-z0-9][a-z0-9._@+-]*$/);
const passwordSchema = z.string().min(1).max(PASSWORD_LIMIT);
const tokenSchema = z.string().min(1).max(128);
const organisationRole = z.enum(['owner', 'admin', 'member']);

/** Routes of accounts: setup, sign-in, people, teams, projects, agents. */
export function accountRoutes(app: App, context: Context): void {
  sessionRoutes(app, context);
  setupRoutes(app, context);
  peopleRoutes(app, context);
  groupRoutes(app, context);
  agentRoutes(app, context);
}

function sessionRoutes(app: App, context: Context): void {
  app.get(
    '/api/page/session',
    { config: { open: true }, schema: { response: { 200: sessionSchema } } },
    async (request) => {
      const server = {
        commandKeyFingerprint: sha256(context.signer.publicKey).toString('hex'),
        now: context.clock.now(),
      };
      const ready = await isSetUp(context.store.read);
      const by = request.signedIn;
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
    },
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
      await setUp(context, { ...first, password }, async (tx) => {
        if ((await useLink(context, tx, 'setup', token)) === undefined) throw linkInvalid();
      });
      sendCookie(context, reply, await signIn(context, request.ip, { login: first.login, password }));
      return DONE;
    },
  );
}

function peopleRoutes(app: App, context: Context): void {
  const params = z.strictObject({ person: personIdSchema });
  app.get('/api/page/organisation', { schema: { response: { 200: organisationSchema } } }, (request) =>
    readOrganisation(context.store.read, personOfRequest(request)),
  );
  app.post(
    '/api/page/people',
    {
      schema: {
        body: z.strictObject({
          login: loginSchema,
          name: nameSchema,
          role: organisationRole.default('member'),
          team: teamIdSchema,
        }),
        response: { 200: z.strictObject({ person: personIdSchema, address: z.string() }) },
      },
    },
    (request) => invitePerson(context, personOfRequest(request), request.body),
  );
  app.post(
    '/api/page/people/:person/link',
    { schema: { params, response: { 200: z.strictObject({ address: z.string() }) } } },
    (request) => renewInvitation(context, personOfRequest(request), request.params.person),
  );
  app.post(
    '/api/page/people/:person/offboard',
    { schema: { params, response: { 200: doneSchema } } },
    async (request) => {
      await offboardPerson(context, personOfRequest(request), request.params.person);
      return DONE;
    },
  );
}

function groupRoutes(app: App, context: Context): void {
  app.post(
    '/api/page/teams',
    {
      schema: { body: z.strictObject({ name: nameSchema }), response: { 200: z.strictObject({ team: teamIdSchema }) } },
    },
    async (request) => ({ team: await createTeam(context, personOfRequest(request), request.body.name) }),
  );
  app.post(
    '/api/page/projects',
    {
      schema: {
        body: z.strictObject({ team: teamIdSchema, name: nameSchema }),
        response: { 200: z.strictObject({ project: projectIdSchema }) },
      },
    },
    async (request) => ({
      project: await createProject(context, personOfRequest(request), request.body.team, request.body.name),
    }),
  );
  app.put(
    '/api/page/teams/:team/members/:person',
    {
      schema: {
        params: z.strictObject({ team: teamIdSchema, person: personIdSchema }),
        body: z.strictObject({ role: z.enum(['admin', 'member']).nullable() }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      const { team, person } = request.params;
      await setTeamMember(context, personOfRequest(request), team, person, request.body.role);
      return DONE;
    },
  );
  app.put(
    '/api/page/projects/:project/members/:person',
    {
      schema: {
        params: z.strictObject({ project: projectIdSchema, person: personIdSchema }),
        body: z.strictObject({ role: z.enum(['owner', 'admin', 'member']).nullable() }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      const { project, person } = request.params;
      await setProjectMember(context, personOfRequest(request), project, person, request.body.role);
      return DONE;
    },
  );
}

function agentRoutes(app: App, context: Context): void {
  const params = z.strictObject({ agent: agentIdSchema });
  const memberOf = (request: FastifyRequest) => membershipOf(context.store.read, personOfRequest(request).person);
  app.get('/api/page/agents', { schema: { response: { 200: agentsSchema } } }, async (request) => ({
    agents: await listAgents(context.store.read, await memberOf(request)),
  }));
  app.post(
    '/api/page/agents',
    {
      schema: {
        body: z.strictObject({ name: nameSchema }),
        response: { 200: z.strictObject({ agent: agentIdSchema }) },
      },
    },
    async (request) => ({ agent: await createAgent(context, await memberOf(request), request.body.name) }),
  );
  app.post(
    '/api/page/agents/:agent/tokens',
    {
      schema: {
        params,
        body: z.strictObject({ project: projectIdSchema, mayOpenRuns: z.boolean().default(false) }),
        response: { 200: issuedTokenSchema },
      },
    },
    async (request) => {
      const issued = await issueToken(context, await memberOf(request), {
        agent: request.params.agent,
        ...request.body,
      });
      return { ...issued, endpoint: `${context.settings.publicOrigin}/mcp` };
    },
  );
  app.delete(
    '/api/page/agents/:agent/tokens/:token',
    { schema: { params: params.extend({ token: z.string().max(64) }), response: { 200: doneSchema } } },
    async (request) => {
      await endToken(context, await memberOf(request), request.params.agent, request.params.token);
      return DONE;
    },
  );
  app.put(
    '/api/page/agents/:agent/tools',
    {
      schema: {
        params,
        body: z.strictObject({ operations: z.array(z.string().max(64)).max(32) }),
        response: { 200: doneSchema },
      },
    },
    async (request) => {
      await setToolGrants(context, await memberOf(request), request.params.agent, request.body.operations);
      return DONE;
    },
  );
  app.post('/api/page/agents/:agent/end', { schema: { params, response: { 200: doneSchema } } }, async (request) => {
    await endAgent(context, await memberOf(request), request.params.agent);
    return DONE;
  });
}
