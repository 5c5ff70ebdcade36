/*
 * Every connection of link is made here: to the origin's name and port, resolved once, checked after it stands.
 *
 * THREAT: a variable of the environment (NODE_TLS_REJECT_UNAUTHORIZED, NODE_EXTRA_CA_CERTS) or a name server wants another
 * server taken for the origin. Trust is an explicit list, so that no variable adds to it; checking is explicit, so that none
 * ends it; the name in the certificate is checked for whatever address answers (test/helpers/link/call.test.ts).
 */
import { lookup } from 'node:dns/promises';
import net from 'node:net';
import tls from 'node:tls';
import { isLoopback } from '../protocol/origin.ts';
import type { Origin } from '../protocol/origin.ts';
import { LinkRefused, linkRefusedBecause } from './refused.ts';

/**
 * THREAT: whoever recorded the traffic gets the key of the certificate later. With a key exchange under that key (RSA, which Node
 * still offers in TLS 1.2) it opens everything recorded, so none is offered (test/helpers/link/session-keys.test.ts).
 */
const EPHEMERAL_ONLY = `${tls.DEFAULT_CIPHERS}:!kRSA`;

/** Longest time in ms from the resolver's question to a checked connection. */
export const CONNECT_MS = 10_000;

/** What a connection is made of. */
export interface Trust {
  readonly origin: Origin;
  /** PEM of the only authorities that are trusted; undefined for the ones that Node ships. */
  readonly authorities: string | undefined;
}

/** Makes one connection to the origin: TLS of version 1.2 or 1.3 with a checked name, or plain text to loopback. */
export type Connect = () => Promise<net.Socket>;

/** Prepares connecting within `withinMs`. Throws LinkRefused with TLS_UNTRUSTED when the authorities cannot be read. */
export function connector({ origin, authorities }: Trust, withinMs: number = CONNECT_MS): Connect {
  const secureContext = origin.isSecure ? secureContextOf(authorities) : undefined;
  return async () => {
    const signal = AbortSignal.timeout(withinMs);
    try {
      const plain = await connectFirst(origin, signal);
      return secureContext ? await secure(plain, origin, secureContext, signal) : plain;
    } catch (cause) {
      if (cause instanceof LinkRefused) throw cause;
      if (signal.aborted) throw new LinkRefused('ORIGIN_UNREACHABLE', 'no connection to the origin in time', { cause });
      throw linkRefusedBecause(cause);
    }
  };
}

function secureContextOf(authorities: string | undefined): tls.SecureContext {
  try {
    // Node takes an empty `ca` for none and falls back to its own list with what the environment adds.
    if (authorities?.includes('BEGIN CERTIFICATE') === false) throw new SyntaxError('no certificate in the file');
    return tls.createSecureContext({
      ca: authorities ?? [...tls.rootCertificates],
      minVersion: 'TLSv1.2',
      ciphers: EPHEMERAL_ONLY,
    });
  } catch (cause) {
    throw new LinkRefused('TLS_UNTRUSTED', 'the file of trusted authorities holds no certificate as PEM', { cause });
  }
}

async function connectFirst(origin: Origin, signal: AbortSignal): Promise<net.Socket> {
  const addresses = await resolve(origin.hostname, signal);
  let last: unknown = new LinkRefused('ORIGIN_UNRESOLVED', 'the name of the origin has no address');
  for (const address of addresses) {
    try {
      return await connectTo(address, origin, signal);
    } catch (error) {
      // The next address of the name may answer; the last error is told.
      last = error;
      if (signal.aborted) break;
    }
  }
  throw last;
}

async function resolve(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  if (net.isIP(hostname) !== 0) return [hostname];
  const found = await orAborted(lookup(hostname, { all: true, order: 'verbatim' }), signal);
  return [...new Set(found.map(({ address }) => address))];
}

function orAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener(
      'abort',
      () => reject(new LinkRefused('ORIGIN_UNRESOLVED', 'no answer of a name server in time')),
      {
        once: true,
      },
    );
    work.then(resolve, reject);
  });
}

function connectTo(address: string, origin: Origin, signal: AbortSignal): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    // `host` is a literal address here: no second resolution, and a plain-text origin was literal from the start.
    const socket = net.connect({ host: address, port: origin.port, noDelay: true, keepAlive: true });
    // Not the `signal` of net.connect: that one would end the connection long after it stands.
    const abort = (): void =>
      void socket.destroy(new LinkRefused('ORIGIN_UNREACHABLE', 'no connection to the origin in time'));
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort);
      socket.off('error', reject);
      if (isTheOne(socket, address, origin)) return resolve(socket);
      socket.destroy();
      return reject(
        new LinkRefused('ORIGIN_NOT_PERMITTED', 'the connection leads to another address than was resolved'),
      );
    });
  });
}

function isTheOne(socket: net.Socket, address: string, origin: Origin): boolean {
  const { remoteAddress = '', remotePort } = socket;
  if (remoteAddress !== address || remotePort !== origin.port) return false;
  return origin.isSecure || isLoopback(remoteAddress);
}

function secure(
  plain: net.Socket,
  { hostname }: Origin,
  secureContext: tls.SecureContext,
  signal: AbortSignal,
): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = tls.connect({
      socket: plain,
      host: hostname,
      ...(net.isIP(hostname) === 0 && { servername: hostname }),
      secureContext,
      rejectUnauthorized: true,
      checkServerIdentity: tls.checkServerIdentity,
      ALPNProtocols: ['http/1.1'],
    });
    const abort = (): void =>
      void socket.destroy(new LinkRefused('ORIGIN_UNREACHABLE', 'no TLS with the origin in time'));
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      signal.removeEventListener('abort', abort);
      socket.off('error', reject);
      if (socket.authorized) return resolve(socket);
      socket.destroy();
      return reject(socket.authorizationError);
    });
  });
}
