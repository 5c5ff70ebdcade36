import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { agentIdSchema, projectIdSchema } from '../../helpers/protocol/ids.ts';
import { operations } from '../../helpers/protocol/operations.ts';
import type { Context } from '../context.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import { createAgent, endAgent, endToken, issueToken, listAgents, setToolGrants } from './agents.ts';
import { agentsSchema, issuedTokenSchema } from './answers.ts';
import { nameSchema } from './fields.ts';
import { membershipOf } from './membership.ts';
import type { Membership } from './rules.ts';
import { personOfRequest } from './sessions.ts';

async function memberOf(context: Context, request: FastifyRequest): Promise<Membership> {
  return membershipOf(context.store.read, personOfRequest(request).person);
}

/** Routes of agents: who there is, making and ending one, its tools and its tokens. */
export function agentRoutes(app: App, context: Context): void {
  const params = z.strictObject({ agent: agentIdSchema });
  app.get('/api/page/agents', { schema: { response: { 200: agentsSchema } } }, async (request) => ({
    operations: operations
      .filter(({ caller }) => caller === 'agent')
      .map(({ key, description }) => ({ key, description })),
    agents: await listAgents(context.store.read, await memberOf(context, request)),
  }));
  app.post(
    '/api/page/agents',
    {
      schema: {
        body: z.strictObject({ name: nameSchema }),
        response: { 200: z.strictObject({ agent: agentIdSchema }) },
      },
    },
    async (request) => ({ agent: await createAgent(context, await memberOf(context, request), request.body.name) }),
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
      await setToolGrants(context, await memberOf(context, request), request.params.agent, request.body.operations);
      return DONE;
    },
  );
  app.post('/api/page/agents/:agent/end', { schema: { params, response: { 200: doneSchema } } }, async (request) => {
    await endAgent(context, await memberOf(context, request), request.params.agent);
    return DONE;
  });
  tokenRoutes(app, context);
}

function tokenRoutes(app: App, context: Context): void {
  const params = z.strictObject({ agent: agentIdSchema });
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
      const issued = await issueToken(context, await memberOf(context, request), {
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
      await endToken(context, await memberOf(context, request), request.params.agent, request.params.token);
      return DONE;
    },
  );
}
