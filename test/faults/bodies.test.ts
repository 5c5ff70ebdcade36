import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { WebSocket } from 'ws';
import { freePort, startServer, stopChild } from '../../daemon/demo/children.ts';
import type { RunningServer } from '../../daemon/demo/children.ts';
import { Person } from '../../daemon/demo/person.ts';
import { encode } from '../../helpers/protocol/codec.ts';
import { CHANNEL_PATH, SUBPROTOCOL } from '../../server/protocol.ts';
import { Draw } from '../campaigns/campaign.ts';
import { mutated } from './fuzz.ts';
import { everyProgram } from './programs.ts';
import { PASSWORD } from './world.ts';

const SHOTS = 150;
const SEED = process.env['NESSIE_FUZZ_SEED'] ?? 'suite';
/** Longest answer to nonsense on a loaded machine, in ms. */
const ANSWER_MS = 5000;
const KEPT_BYTES = 134_217_728;

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
};
const signed = { payload: Buffer.alloc(90, 1), signature: Buffer.alloc(64, 2) };

describe(`a control plane under damaged bodies, seed ${SEED}`, function () {
  this.timeout(120_000);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bodies-'));
  let server: RunningServer | undefined;
  let token = '';

  before(async () => {
    server = await startServer(await everyProgram(), folder, await freePort());
    const person = new Person(server.origin);
    const owner = { organisation: 'Bodies', team: 'Team', project: 'Project', login: 'owner', name: 'Owner' };
    await person.setUp(server.setup ?? '', { ...owner, password: PASSWORD });
    const { projects } = await person.get<{ projects: { id: string }[] }>('/api/page/organisation');
    const { agent } = await person.post<{ agent: string }>('/api/page/agents', { name: 'Agent' });
    const wish = { project: projects[0]?.id, mayOpenRuns: true };
    ({ token } = await person.post<{ token: string }>(`/api/page/agents/${agent}/tokens`, wish));
  });
  after(async () => {
    if (server) await stopChild(server.process);
    fs.rmSync(folder, { recursive: true, force: true });
  });
  afterEach('it still answers, and keeps nothing', async () => {
    assert.ok(server);
    assert.equal((await fetch(`${server.origin}/healthz`)).status, 200);
    const resident = /^VmRSS:\s+(\d+) kB/m.exec(fs.readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))?.[1];
    assert.ok(Number(resident) * 1024 < KEPT_BYTES * 3, `${resident} kB`);
  });

  const targets: readonly (readonly [string, string, string, readonly Buffer[]])[] = [
    [
      'MCP',
      '/mcp',
      'application/json',
      [json(initialize), json([initialize, { ...initialize, id: 2, method: 'tools/list' }])],
    ],
    [
      'pairing',
      '/api/pairing/start',
      'application/msgpack',
      [
        encode({
          requestId: `req_${'a'.repeat(32)}`,
          machineName: 'm',
          publicKey: Buffer.alloc(32, 3),
          descriptor: Buffer.alloc(60, 4),
          descriptorSigned: signed,
          proof: signed,
        }),
      ],
    ],
    ['sign-in', '/api/page/sign-in', 'application/json', [json({ login: 'owner', password: 'a wrong password' })]],
  ];
  for (const [name, route, type, samples] of targets) {
    it(`${name}: answers each with a refusal of its own, at once, and no sentence of a program`, async () => {
      assert.ok(server);
      const draw = new Draw(`${SEED}:${name}`);
      for (let shot = 0; shot < SHOTS; shot += 1) {
        const bytes = mutated(draw.from(samples), draw);
        const headers = {
          'content-type': type,
          accept: 'application/json, text/event-stream',
          origin: server.origin,
          ...(route === '/mcp' ? { authorization: `Bearer ${token}` } : {}),
        };
        const answer = await fetch(server.origin + route, {
          method: 'POST',
          headers,
          body: new Uint8Array(bytes),
          signal: AbortSignal.timeout(ANSWER_MS),
        });
        const text = await answer.text();
        const about = `${answer.status} ${text.slice(0, 200)} for ${bytes.toString('hex').slice(0, 2000)}`;
        assert.ok(answer.status < 500, about);
        assert.doesNotMatch(text, /node_modules|\.ts:|\.mjs:|at async|ZodError|\n {4}at /, about);
      }
    });
  }

  it('channel: ends the connection of whoever sends no question, and none else', async () => {
    assert.ok(server);
    const draw = new Draw(`${SEED}:channel`);
    const sample = encode({
      kind: 'question',
      id: 1,
      epoch: 0,
      sequence: 1,
      type: 'session.challenge',
      body: { executor: `exr_${'1'.repeat(32)}` },
    });
    for (let shot = 0; shot < SHOTS / 3; shot += 1) await sendToChannel(server.origin, mutated(sample, draw));
  });
});

/** Sends one message; resolves when the control plane answered or ended the connection. */
function sendToChannel(origin: string, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${origin.replace('http', 'ws')}${CHANNEL_PATH}`, SUBPROTOCOL);
    const timer = setTimeout(
      () => reject(new Error(`no answer to ${bytes.toString('hex').slice(0, 2000)}`)),
      ANSWER_MS,
    );
    const done = (): void => {
      clearTimeout(timer);
      socket.terminate();
      resolve();
    };
    socket.once('open', () => socket.send(bytes));
    socket.once('message', done);
    socket.once('close', done);
    // A connection that is reset is ended too; `close` follows.
    socket.on('error', () => undefined);
  });
}
