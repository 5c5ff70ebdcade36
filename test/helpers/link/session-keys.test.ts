import assert from 'node:assert/strict';
import { once } from 'node:events';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';

import { connector } from '../../../helpers/link/connector.ts';
import { readOrigin } from '../../../helpers/protocol/origin.ts';
import { makeTestAuthority } from '../../fakes/test-authority.ts';
import type { TestAuthority } from '../../fakes/test-authority.ts';
import { skipBecause } from '../../skip.ts';

/** The secrets of every connection, as NSS key log lines: label, client random, secret. */
type KeyLog = readonly (readonly [label: string, random: string, secret: string])[];

describe('link: keys of a session', () => {
  let authority: TestAuthority;

  before(function () {
    const made = makeTestAuthority();
    if (!made) return skipBecause(this, 'the openssl program');
    authority = made;
  });

  /** Connects as link does, `times` times; resolves with what the server logged of the keys and how they were agreed. */
  async function connectTo(options: tls.TlsOptions, times: number): Promise<{ log: KeyLog; agreed: unknown[] }> {
    const server = https.createServer({ ...authority.issue('IP:127.0.0.1', -1, 10, 'rsa'), ...options });
    const lines: string[] = [];
    server.on('keylog', (line: Buffer) => lines.push(line.toString().trim()));
    server.on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      // A server that listens on TCP has an address of this shape.
      const { port } = server.address() as AddressInfo;
      const origin = readOrigin(`https://127.0.0.1:${port}`, false);
      const connect = connector({ origin, authorities: authority.authority });
      const agreed: unknown[] = [];
      for (let turn = 0; turn < times; turn += 1) {
        const socket = await connect();
        agreed.push(socket instanceof tls.TLSSocket && socket.getEphemeralKeyInfo());
        socket.destroy();
      }
      return { log: lines.map((line) => line.split(' ') as [string, string, string]), agreed };
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  it('R5 differ each time under the same credentials, and come from keys that no side keeps: an exchange under the certificate’s own key is refused', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { log, agreed } = await connectTo({ minVersion: version, maxVersion: version }, 2);
      const secrets = log.filter(([label]) => /^CLIENT_RANDOM|SERVER_TRAFFIC_SECRET_0/.test(label));
      assert.equal(secrets.length, 2);
      assert.equal(new Set(secrets.map(([, , secret]) => secret)).size, 2);
      for (const info of agreed) assert.match(JSON.stringify(info), /"type":"(ECDH|DH)"/);
    }
    const fresh = { ciphers: 'ECDHE-RSA-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const;
    assert.equal((await connectTo(fresh, 1)).agreed.length, 1);
    for (const ciphers of ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'AES128-SHA']) {
      const kept = { ciphers, maxVersion: 'TLSv1.2' } as const;
      await assert.rejects(connectTo(kept, 1), { code: 'ORIGIN_UNREACHABLE' }, ciphers);
    }
  });
});
