import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { caller } from '../../../helpers/link/call.ts';
import { connector } from '../../../helpers/link/connector.ts';
import { openLink } from '../../../helpers/link/handlers.ts';
import { readOrigin } from '../../../helpers/protocol/origin.ts';
import { LINK_MESSAGE_LIMIT_BYTES } from '../../../helpers/link/protocol.ts';
import { LinkRefused } from '../../../helpers/link/refused.ts';
import { startFakeOrigin } from '../../fakes/fake-origin.ts';
import type { FakeOrigin, FakeOriginScript } from '../../fakes/fake-origin.ts';
import { makeTestAuthority } from '../../fakes/test-authority.ts';
import type { TestAuthority } from '../../fakes/test-authority.ts';
import { skipBecause } from '../../skip.ts';

const run = promisify(execFile);

type Answering = NonNullable<FakeOriginScript['call']>;

const refusedWith =
  (code: string) =>
  (error: unknown): boolean =>
    error instanceof LinkRefused && error.code === code;
const answer: Answering = (request, body, response) => {
  response.statusCode = 202;
  response.end(`${request.method} ${request.url} ${request.headers['content-type']} ${body.toString()}`);
};

const sized =
  (bytes: number, announced: boolean): Answering =>
  (_, __, response) => {
    if (announced) response.setHeader('content-length', bytes);
    response.end(Buffer.alloc(bytes));
  };
const asked = (text: string) =>
  openLink({ origin: text, loopbackHttp: true, authorities: undefined }, () => undefined)['link.call']({
    call: 'poll',
    bytes: Buffer.alloc(0),
  });

const overflowing: Answering = (_, __, response) => {
  response.setHeader('x-long', 'a'.repeat(20_000));
  response.end();
};

describe('link: calls of the one origin', () => {
  let authority: TestAuthority;
  let origin: FakeOrigin | undefined;

  before(function () {
    const made = makeTestAuthority();
    if (!made) return skipBecause(this, 'the openssl program');
    authority = made;
  });
  afterEach(async () => {
    await origin?.close();
    origin = undefined;
  });

  async function ask(script: FakeOriginScript, trusted: string | null = authority.authority, name = '127.0.0.1') {
    origin = await startFakeOrigin(script);
    const scheme = script.certificate ? 'https' : 'http';
    const facts = {
      origin: `${scheme}://${name}:${origin.port}`,
      loopbackHttp: true,
      authorities: trusted ?? undefined,
    };
    const link = openLink(facts, () => undefined);
    return link['link.call']({ call: 'start', bytes: Buffer.from('asked') });
  }
  const good = () => authority.issue('DNS:localhost,IP:127.0.0.1');
  it('bytes go to the call’s own path and come back with the status, over TLS with an address and with a name', async () => {
    for (const name of ['127.0.0.1', 'localhost']) {
      const { status, bytes } = await ask({ certificate: good(), call: answer }, authority.authority, name);
      assert.equal(status, 202);
      assert.equal(Buffer.from(bytes).toString(), 'POST /api/pairing/start application/msgpack asked');
      await origin?.close();
    }
  });

  it('the owner’s authorities are the only ones: without them the same certificate is refused', async () => {
    await assert.rejects(ask({ certificate: good(), call: answer }, null), refusedWith('TLS_UNTRUSTED'));
    await origin?.close();
    const other = makeTestAuthority();
    await assert.rejects(
      ask({ certificate: good(), call: answer }, other?.authority ?? null),
      refusedWith('TLS_UNTRUSTED'),
    );
  });

  it('a certificate for another name, one of the past, one of the future and one that is its own authority are told apart', async () => {
    const call = answer;
    const wrong = authority.issue('DNS:other.example,IP:127.0.0.2');
    await assert.rejects(ask({ certificate: wrong, call }), refusedWith('TLS_NAME_MISMATCH'));
    await origin?.close();
    const past = authority.issue('IP:127.0.0.1', -10, -1);
    await assert.rejects(ask({ certificate: past, call }), refusedWith('TLS_EXPIRED'));
    await origin?.close();
    const future = authority.issue('IP:127.0.0.1', 2, 5);
    await assert.rejects(ask({ certificate: future, call }), refusedWith('TLS_EXPIRED'));
    await origin?.close();
    const own = authority.issueSelfSigned('IP:127.0.0.1');
    await assert.rejects(ask({ certificate: own, call }), refusedWith('TLS_UNTRUSTED'));
  });

  it('no variable of the environment weakens the checks of a certificate, and each weakens a plain client', async function () {
    this.timeout(60_000);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'link-'));
    try {
      const own = authority.issueSelfSigned('IP:127.0.0.1');
      const file = path.join(folder, 'self.pem');
      fs.writeFileSync(file, own.cert);
      origin = await startFakeOrigin({ certificate: own, call: answer });
      const url = `https://127.0.0.1:${origin.port}`;
      for (const [name, value] of [
        ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
        ['NODE_EXTRA_CA_CERTS', file],
        ['NODE_OPTIONS', '--use-openssl-ca'],
      ] as const) {
        const env = {
          PATH: process.env['PATH'],
          [name]: value,
          ...(name === 'NODE_OPTIONS' && { SSL_CERT_FILE: file }),
        };
        const client = `require('https').get(${JSON.stringify(url)}, () => { console.log('taken'); process.exit(0) })`;
        const plain = await run(process.execPath, ['-e', client], { env });
        assert.match(plain.stdout, /taken/, `a plain client is weakened by ${name}`);
        const { stdout } = await run(process.execPath, ['--import', 'tsx', 'test/fixtures/link-call.ts', url], { env });
        assert.equal(stdout.trim(), 'TLS_UNTRUSTED', `link is not weakened by ${name}`);
      }
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });

  it('a redirect is refused and the place it points to is never asked', async () => {
    const elsewhere = await startFakeOrigin({ call: (_, __, response) => response.end() });
    try {
      const call: Answering = (_, __, response) => {
        response.writeHead(307, { location: `http://127.0.0.1:${elsewhere.port}/api/pairing/start` });
        response.end();
      };
      await assert.rejects(ask({ certificate: good(), call }), refusedWith('REDIRECT_REFUSED'));
      assert.equal(elsewhere.connections(), 0);
    } finally {
      await elsewhere.close();
    }
  });

  it('an answer beyond the limit is refused, announced or not, and one at the limit is taken', async () => {
    const taken = await ask({ certificate: good(), call: sized(LINK_MESSAGE_LIMIT_BYTES, false) });
    assert.equal(taken.bytes.length, LINK_MESSAGE_LIMIT_BYTES);
    for (const announced of [true, false]) {
      await origin?.close();
      const call = sized(LINK_MESSAGE_LIMIT_BYTES + 1, announced);
      await assert.rejects(ask({ certificate: good(), call }), refusedWith('ANSWER_TOO_LARGE'));
    }
    await origin?.close();
    await assert.rejects(ask({ certificate: good(), call: overflowing }), refusedWith('ANSWER_TOO_LARGE'));
  });

  const silent: Record<string, Answering> = {
    'no answer at all': () => undefined,
    'half an answer': (_, __, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('half');
    },
    'an answer of one byte now and then': (_, __, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 20);
      response.on('close', () => clearInterval(drip));
    },
  };
  for (const [what, call] of Object.entries(silent)) {
    it(`${what} is refused in time`, async () => {
      origin = await startFakeOrigin({ call });
      const one = readOrigin(`http://127.0.0.1:${origin.port}`, true);
      const times = { headersMs: 200, bodyMs: 200, totalMs: 400 };
      const asked = caller(one, connector({ origin: one, authorities: undefined }), times);
      await assert.rejects(asked('poll', Buffer.alloc(1)), refusedWith('ANSWER_TIMEOUT'));
    });
  }

  it('a port without a server, a server without TLS and a name without an address are told apart', async () => {
    origin = await startFakeOrigin({});
    const { port } = origin;
    await assert.rejects(asked(`https://127.0.0.1:${port}`), refusedWith('ORIGIN_UNREACHABLE'));
    await origin.close();
    await assert.rejects(asked(`https://127.0.0.1:${port}`), refusedWith('ORIGIN_UNREACHABLE'));
    await assert.rejects(asked('https://no-such-name.invalid'), refusedWith('ORIGIN_UNRESOLVED'));
  });

  it('an origin that is not permitted refuses every request and connects nowhere', async () => {
    origin = await startFakeOrigin({ call: answer });
    const facts = { origin: `http://127.0.0.1:${origin.port}`, loopbackHttp: false, authorities: undefined };
    const link = openLink(facts, () => undefined);
    await assert.rejects(
      link['link.call']({ call: 'start', bytes: Buffer.alloc(0) }),
      refusedWith('ORIGIN_NOT_PERMITTED'),
    );
    await assert.rejects(link['link.open']({}), refusedWith('ORIGIN_NOT_PERMITTED'));
    assert.equal(origin.connections(), 0);
  });

  it('a file of authorities that is no PEM is refused and is never taken for no file', async () => {
    for (const file of ['', 'not a certificate']) {
      await assert.rejects(ask({ certificate: good(), call: answer }, file), refusedWith('TLS_UNTRUSTED'));
      await origin?.close();
    }
  });
});
