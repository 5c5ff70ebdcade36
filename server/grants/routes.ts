import * as z from 'zod';
import {
  agentIdSchema,
  executorIdSchema,
  personIdSchema,
  projectIdSchema,
  teamIdSchema,
} from '../../helpers/protocol/ids.ts';
import { personOfRequest } from '../accounts/sessions.ts';
import type { Context } from '../context.ts';
import { DONE, doneSchema } from '../http.ts';
import type { App } from '../http.ts';
import {
  addShare,
  assignPerson,
  endShare,
  grantOperation,
  switchAgentOff,
  switchAgentOn,
  unassignPerson,
  withdrawOperation,
} from './access.ts';
import { agentAccessSchema, sharingSchema } from './answers.ts';
import { readAgentAccess, readSharing } from './roster.ts';

const base = '/api/page/executors/:executor';
const executor = executorIdSchema;
const response = { 200: doneSchema };

/** Routes that show and change who may use a machine; each change takes effect at once, without password or second step (N-187). */
export function grantRoutes(app: App, context: Context): void {
  agentAccessRoutes(app, context);
  sharingRoutes(app, context);
}

function agentAccessRoutes(app: App, context: Context): void {
  const params = z.strictObject({ executor });
  const agentParams = params.extend({ agent: agentIdSchema });
  const operationParams = agentParams.extend({ operation: z.string().max(64) });
  app.get(`${base}/agents`, { schema: { params, response: { 200: agentAccessSchema } } }, (request) =>
    readAgentAccess(context.store.read, personOfRequest(request), request.params.executor),
  );
  app.put(
    `${base}/agents/:agent`,
    { schema: { params: agentParams, body: z.strictObject({ access: z.enum(['on', 'off']) }), response } },
    async (request) => {
      const change = request.body.access === 'on' ? switchAgentOn : switchAgentOff;
      await change(context, personOfRequest(request), request.params.executor, request.params.agent);
      return DONE;
    },
  );
  app.put(
    `${base}/agents/:agent/operations/:operation`,
    { schema: { params: operationParams, response } },
    async (request) => {
      const { agent, operation } = request.params;
      await grantOperation(context, personOfRequest(request), request.params.executor, agent, operation);
      return DONE;
    },
  );
  app.delete(
    `${base}/agents/:agent/operations/:operation`,
    { schema: { params: operationParams, response } },
    async (request) => {
      const { agent, operation } = request.params;
      await withdrawOperation(context, personOfRequest(request), request.params.executor, agent, operation);
      return DONE;
    },
  );
}

function sharingRoutes(app: App, context: Context): void {
  const params = z.strictObject({ executor });
  const personParams = params.extend({ person: personIdSchema });
  const shareParams = z.discriminatedUnion('kind', [
    z.strictObject({ executor, kind: z.literal('project'), subject: projectIdSchema }),
    z.strictObject({ executor, kind: z.literal('team'), subject: teamIdSchema }),
  ]);
  app.get(`${base}/sharing`, { schema: { params, response: { 200: sharingSchema } } }, (request) =>
    readSharing(context.store.read, personOfRequest(request), request.params.executor),
  );
  app.put(
    `${base}/people/:person`,
    { schema: { params: personParams, body: z.strictObject({ role: z.enum(['use', 'admin']) }), response } },
    async (request) => {
      const { person } = request.params;
      await assignPerson(context, personOfRequest(request), request.params.executor, person, request.body.role);
      return DONE;
    },
  );
  app.delete(`${base}/people/:person`, { schema: { params: personParams, response } }, async (request) => {
    await unassignPerson(context, personOfRequest(request), request.params.executor, request.params.person);
    return DONE;
  });
  app.put(`${base}/shares/:kind/:subject`, { schema: { params: shareParams, response } }, async (request) => {
    const { executor: id, ...share } = request.params;
    await addShare(context, personOfRequest(request), id, share);
    return DONE;
  });
  app.delete(`${base}/shares/:kind/:subject`, { schema: { params: shareParams, response } }, async (request) => {
    const { executor: id, ...share } = request.params;
    await endShare(context, personOfRequest(request), id, share);
    return DONE;
  });
}
