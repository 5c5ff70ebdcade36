/*
 * One real server process with a hundred machines at the level of the protocol: real sockets, keys, statements and receipts,
 * driven by as many model clients that speak plain HTTP.
 */
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { freePort, startServer, stopChild } from '../../daemon/demo/children.ts';
import { bundleHere } from '../../daemon/demo/installation.ts';
import { createAgent, issueToken } from '../../server/accounts/agents.ts';
import { membershipOf } from '../../server/accounts/membership.ts';
import { setUp } from '../../server/accounts/setup.ts';
import { startCommandKey } from '../../server/command-key.ts';
import { checkSettings } from '../../server/config.ts';
import { openContext } from '../../server/open-context.ts';
import { makeRun } from '../../server/runs/store.ts';
import { FakeExecutor } from '../fakes/fake-executor.ts';
import { machineDescriptor } from '../fakes/fake-machine.ts';
import { FakeWorkspace } from '../fakes/fake-workspace.ts';
import { pairMachine } from '../server/control-plane.ts';
import type { PairedMachine } from '../server/control-plane.ts';

/** Agents among whom the machines are divided: one agent may hold 64 sessions. */
const AGENTS = 4;
const NAMES = {
  organisation: 'Bench',
  team: 'Team',
  project: 'Project',
  login: 'owner',
  name: 'Owner',
  password: undefined,
};

interface Prepared {
  readonly controlKey: Uint8Array;
  readonly machines: readonly { readonly paired: PairedMachine; readonly token: string }[];
}

/** Commands per second over `seconds`, with every receipt durable. */
export async function sustainedHundred(seconds = 5, machines = 100): Promise<number> {
  const dist = await bundleHere();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'nessie-hundred-'));
  const port = await freePort();
  const prepared = await prepare(dist, path.join(folder, 'data'), port, machines);
  const server = await startServer(dist, folder, port);
  try {
    const fakes = await connectAll(prepared, server.origin);
    const clients = await openAll(prepared, server.origin);
    const deadline = performance.now() + seconds * 1000;
    const started = performance.now();
    const counts = await Promise.all(clients.map((client) => callUntil(client, deadline)));
    const passed = (performance.now() - started) / 1000;
    for (const client of clients) client.agent.destroy();
    for (const fake of fakes) fake.cut();
    return counts.reduce((sum, count) => sum + count, 0) / passed;
  } finally {
    await stopChild(server.process);
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Fills the server's own folder before it starts: pairing is not what this measures. */
async function prepare(dist: string, dataFolder: string, port: number, count: number): Promise<Prepared> {
  fs.mkdirSync(dataFolder, { recursive: true, mode: 0o700 });
  const settings = checkSettings({ listen: { port }, publicOrigin: `http://127.0.0.1:${port}`, dataFolder });
  const key = await startCommandKey(dist, dataFolder);
  const context = await openContext(settings, key);
  try {
    const { person, organisation, team, project } = await setUp(context, NAMES, () => Promise.resolve());
    const by = { person, organisation, role: 'owner', session: 'bench', byLink: false } as const;
    const member = await membershipOf(context.store.read, person);
    const agents = [];
    for (let index = 0; index < AGENTS; index += 1) {
      const agent = await createAgent(context, member, `agent ${index}`);
      agents.push({ agent, token: (await issueToken(context, member, { agent, project, mayOpenRuns: false })).token });
    }
    const machines = [];
    for (let index = 0; index < count; index += 1) {
      const one = agents[index % AGENTS];
      if (!one) throw new Error('an agent is missing');
      const { agent, token } = one;
      const paired = await pairMachine(context, { by, team, agent, descriptor: machineDescriptor() });
      const run = {
        person,
        agent,
        project,
        conversation: `bench-${index}`,
        openedBy: 'person',
        chosen: paired.executor,
      } as const;
      await context.store.write((tx) => makeRun(context, tx, run));
      machines.push({ paired, token });
    }
    return { controlKey: key.publicKey, machines };
  } finally {
    await context.store.close();
    await key.stop();
  }
}

async function connectAll({ controlKey, machines }: Prepared, origin: string): Promise<FakeExecutor[]> {
  const fakes: FakeExecutor[] = [];
  for (const { paired } of machines) {
    const { play } = new FakeWorkspace({ 'four-kib.txt': 'x'.repeat(4096) });
    const fake = new FakeExecutor({ origin, controlKey, play, ...paired });
    await fake.online();
    fakes.push(fake);
  }
  return fakes;
}

interface Client {
  readonly agent: http.Agent;
  readonly post: (body: unknown) => Promise<string>;
}

async function openAll({ machines }: Prepared, origin: string): Promise<Client[]> {
  const clients: Client[] = [];
  for (const { token } of machines) {
    const client = clientOf(`${origin}/mcp`, token);
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
    await client.post({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
    await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const tools = await client.post({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
    if (!tools.includes('file_read')) throw new Error('a client has no tools');
    clients.push(client);
  }
  return clients;
}

async function callUntil({ post }: Client, deadline: number): Promise<number> {
  let count = 0;
  while (performance.now() < deadline) {
    const params = { name: 'file_read', arguments: { path: 'four-kib.txt' } };
    const answer = await post({ jsonrpc: '2.0', id: count + 3, method: 'tools/call', params });
    if (answer.includes('"isError":true')) throw new Error('file.read failed');
    count += 1;
  }
  return count;
}

/** A client of one session over one kept connection. */
function clientOf(url: string, token: string): Client {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  let session: string | undefined;
  const post = (body: unknown): Promise<string> =>
    new Promise((resolve, reject) => {
      const headers = {
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(session === undefined ? {} : { 'mcp-session-id': session, 'mcp-protocol-version': '2025-06-18' }),
      };
      const request = http.request(url, { agent, method: 'POST', headers }, (response) => {
        const id = response.headers['mcp-session-id'];
        if (typeof id === 'string') session = id;
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
        response.on('error', reject);
      });
      request.on('error', reject);
      request.end(JSON.stringify(body));
    });
  return { agent, post };
}
