/*
 * The model's door: MCP over streamable HTTP at one address, with a bearer token for each request.
 *
 * THREAT: a page of another site calls this address from a browser. Nothing is decided by cookies here, and a request that names
 * an origin other than this server's own is refused before its token is looked at.
 */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { agentOfToken } from '../accounts/agents.ts';
import type { AgentIdentity } from '../accounts/agents.ts';
import type { Work } from '../commands/work.ts';
import type { App } from '../http.ts';
import { Refusal } from '../refusal.ts';
import type { McpSession } from './session.ts';
import { McpSessions } from './sessions.ts';

/** Where model clients connect. */
export const MCP_PATH = '/mcp';

/** Largest body of one request, in bytes. */
const BODY_LIMIT_BYTES = 1_048_576;

/** Serves model clients. */
export async function routes(app: App, work: Work): Promise<void> {
  const sessions = new McpSessions(work);
  app.addHook('onClose', () => sessions.stop());
  app.route({
    method: ['GET', 'POST', 'DELETE'],
    url: MCP_PATH,
    bodyLimit: BODY_LIMIT_BYTES,
    handler: async (request, reply) => {
      try {
        return await answer(work, sessions, request, reply);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return reply.code(error.status).send(rpcError(error));
      }
    },
  });
}

async function answer(work: Work, sessions: McpSessions, request: FastifyRequest, reply: FastifyReply) {
  const { origin } = request.headers;
  if (origin !== undefined && origin !== work.settings.publicOrigin) {
    throw new Refusal('ORIGIN_REFUSED', 'Requests of other sites are not answered here.', { status: 403 });
  }
  const identity = await identify(work, request);
  if (!identity) {
    void reply.header('www-authenticate', 'Bearer');
    throw new Refusal('TOKEN_INVALID', 'A valid agent token is needed as bearer; issue one on the page.', {
      status: 401,
    });
  }
  const session = await sessionOf(sessions, identity, request);
  if (!session)
    throw new Refusal('SESSION_UNKNOWN', 'There is no such session; initialize a new one.', { status: 404 });
  await session.heard();
  if (request.method === 'DELETE') {
    await sessions.end(session);
    return reply.code(200).send();
  }
  return pass(session, request, reply);
}

async function identify(work: Work, request: FastifyRequest): Promise<AgentIdentity | undefined> {
  const [, token] = /^Bearer ([A-Za-z0-9_-]{1,128})$/.exec(request.headers.authorization ?? '') ?? [];
  return token === undefined ? undefined : agentOfToken(work.store.read, token);
}

async function sessionOf(
  sessions: McpSessions,
  identity: AgentIdentity,
  request: FastifyRequest,
): Promise<McpSession | undefined> {
  const id = request.headers['mcp-session-id'];
  if (typeof id === 'string') return sessions.find(identity, id);
  const initialize = initializeParams(request.body);
  if (request.method === 'POST' && initialize !== undefined) return sessions.make(identity, initialize);
  throw new Refusal('SESSION_REQUIRED', 'Initialize first, then send the session’s id with every request.', {
    status: 400,
  });
}

function initializeParams(body: unknown): object | undefined {
  if (typeof body !== 'object' || body === null || !('method' in body) || body.method !== 'initialize')
    return undefined;
  return 'params' in body && typeof body.params === 'object' && body.params !== null ? body.params : undefined;
}

/** Hands one request to the session's transport, and its answer, streamed where it streams, back. */
async function pass(session: McpSession, request: FastifyRequest, reply: FastifyReply) {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === 'string') headers.set(name, value);
  }
  const web = new Request(`http://localhost${MCP_PATH}`, { method: request.method, headers });
  const options = request.method === 'POST' ? { parsedBody: request.body } : {};
  const response = await session.transport.handleRequest(web, options);
  void reply.code(response.status);
  for (const [name, value] of response.headers) void reply.header(name, value);
  if (!response.body) return reply.send();
  // Node's and the DOM's types of one and the same stream differ in name alone.
  return reply.send(Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]));
}

function rpcError({ code, message, remedy }: Refusal) {
  const told = [`${code}: ${message}`, remedy].filter((part) => part !== undefined).join(' ');
  return { jsonrpc: '2.0', error: { code: -32_000, message: told }, id: null };
}
