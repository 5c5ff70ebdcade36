import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { HelperRefused } from '../../../actors/helper-client.ts';
import { connectLink } from '../../../actors/link.ts';
import type { LinkClient, LinkTold } from '../../../actors/link.ts';
import { decode, encode } from '../../../helpers/protocol/codec.ts';
import { questionSchema } from '../../../server/protocol.ts';
import { startFakeOrigin } from '../../fakes/fake-origin.ts';
import type { FakeOrigin, FakeOriginScript } from '../../fakes/fake-origin.ts';
import { installRows, startRealRow, uidOf } from '../../fakes/real-row.ts';
import type { RealInstallation, RealRow } from '../../fakes/real-row.ts';
import { makeTestAuthority } from '../../fakes/test-authority.ts';
import type { TestCertificate } from '../../fakes/test-authority.ts';
import { skipBecause } from '../../skip.ts';

const asking = { withinMs: 10_000 };
const refusedWith =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof HelperRefused && error.code === code;

const poll = (client: LinkClient) => client.request('link.call', { call: 'poll', bytes: Buffer.from('asked') }, asking);

describe('link, a confined process', function () {
  this.timeout(60_000);
  let installation: RealInstallation;
  let origin: FakeOrigin;
  const clients: LinkClient[] = [];

  before(async () => {
    installation = await installRows('link');
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    await origin.close();
  });
  after(() => installation.remove());

  function start(
    facts: Pick<RealRow, 'origin' | 'loopback'>,
    authorities = '/dev/null',
    tell: (told: LinkTold) => void = () => undefined,
  ) {
    const file = fs.openSync(authorities, 'r');
    const started = startRealRow(installation, { row: 'link', descriptors: { 4: file }, ...facts }, uidOf(2));
    fs.closeSync(file);
    const client = connectLink(started.channel, tell);
    clients.push(client);
    return client;
  }
  it('N-056 loopback over plain text is refused without its variable and accepted with it; a name that leads there is refused', async () => {
    origin = await startFakeOrigin({ call: (_, body, response) => response.end(body) });
    const literal = `http://127.0.0.1:${origin.port}`;
    const { bytes } = await poll(start({ origin: literal, loopback: true }));
    assert.equal(Buffer.from(bytes).toString(), 'asked');
    await assert.rejects(poll(start({ origin: literal })), refusedWith('ORIGIN_NOT_PERMITTED'));
    const name = `http://localhost:${origin.port}`;
    await assert.rejects(poll(start({ origin: name, loopback: true })), refusedWith('ORIGIN_NOT_PERMITTED'));
    assert.equal(origin.connections(), 1);
  });

  it('N-055 S-232 plain text, a redirect, a wrong name, an expired and a self-signed certificate are refused, whatever the starter’s environment says', async function () {
    const authority = makeTestAuthority();
    if (!authority) return skipBecause(this, 'the openssl program');
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'link-'));
    const file = path.join(folder, 'ca.pem');
    fs.writeFileSync(file, authority.authority);
    const own = authority.issueSelfSigned('IP:127.0.0.1');
    fs.writeFileSync(path.join(folder, 'self.pem'), own.cert);
    const names = { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_EXTRA_CA_CERTS: path.join(folder, 'self.pem') };
    const more = { SSL_CERT_FILE: path.join(folder, 'self.pem'), NODE_OPTIONS: '--use-openssl-ca' };
    const kept = Object.keys({ ...names, ...more }).map((name) => [name, process.env[name]] as const);
    Object.assign(process.env, names, more);
    try {
      const cases: [code: string, certificate: TestCertificate | undefined, trusted: string][] = [
        ['TLS_NAME_MISMATCH', authority.issue('DNS:other.example'), file],
        ['TLS_EXPIRED', authority.issue('IP:127.0.0.1', -9, -1), file],
        ['TLS_UNTRUSTED', own, file],
        ['TLS_UNTRUSTED', own, '/dev/null'],
        ['TLS_UNTRUSTED', authority.issue('IP:127.0.0.1'), '/dev/null'],
        ['REDIRECT_REFUSED', authority.issue('IP:127.0.0.1'), file],
      ];
      for (const [code, certificate, trusted] of cases) {
        const call: FakeOriginScript['call'] = (_, __, response) => {
          response.writeHead(308, { location: `http://127.0.0.1:${origin.port}/` }).end();
        };
        origin = await startFakeOrigin({ call, ...(certificate && { certificate }) });
        const facts = { origin: `https://127.0.0.1:${origin.port}`, loopback: true };
        await assert.rejects(poll(start(facts, trusted)), refusedWith(code), code);
        await origin.close();
      }
      for (const plain of ['http://control.example', 'http://10.0.0.1', 'http://localhost:1', 'http://[fe80::1]:1']) {
        await assert.rejects(
          poll(start({ origin: plain, loopback: true })),
          refusedWith('ORIGIN_NOT_PERMITTED'),
          plain,
        );
      }
    } finally {
      for (const [name, value] of kept) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      fs.rmSync(folder, { recursive: true });
    }
  });

  it('calls and the channel work over TLS with the owner’s authority, read by its descriptor', async function () {
    const authority = makeTestAuthority();
    if (!authority) return skipBecause(this, 'the openssl program');
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'link-'));
    const file = path.join(folder, 'ca.pem');
    fs.writeFileSync(file, authority.authority, { mode: 0o600 });
    origin = await startFakeOrigin({
      certificate: authority.issue('DNS:localhost'),
      call: (_, body, response) => response.end(body),
      channel: (socket) =>
        socket.on('message', (data: Buffer) => {
          const { id, epoch } = questionSchema.parse(decode(data));
          socket.send(encode({ kind: 'answer', id, epoch, body: { content: Buffer.alloc(400_000, 7) } }));
        }),
    });
    const bus = new EventEmitter();
    const first = once(bus, 'told') as Promise<[LinkTold]>;
    const facts = { origin: `https://localhost:${origin.port}` };
    const client = start(facts, file, (told) => bus.emit('told', told));
    fs.rmSync(folder, { recursive: true });
    assert.equal((await poll(client)).status, 200);
    const { connection } = await client.request('link.open', {}, asking);
    const bytes = encode({ kind: 'question', id: 1, epoch: 0, sequence: 1, type: 'work', body: {} });
    await client.request('link.send', { connection, bytes }, asking);
    const [told] = await first;
    assert.ok(told.type === 'link.message' && told.body.bytes.length > 400_000);
    await assert.rejects(poll(start(facts)), refusedWith('TLS_UNTRUSTED'));
  });
});
