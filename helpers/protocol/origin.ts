/*
 * What the one API origin may be. `link` decides with it at every start, `cli` says it early; both take the same answer.
 */

/** The one API origin. */
export interface Origin {
  readonly isSecure: boolean;
  /** Name or literal address, without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** `https://name:port` as URL writes it. */
  readonly text: string;
}

/** An origin that is not permitted; the message says what to write instead and repeats nothing of the origin. */
export class OriginRefused extends Error {
  override readonly name = 'OriginRefused';
  readonly code = 'ORIGIN_NOT_PERMITTED';
}

/** Whether a literal address, as URL and sockets write it, is of this machine's loopback (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3); false for every name. */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/.test(address);
}

/**
 * Reads the origin of the owner's configuration. Plain text is for literal loopback addresses alone, and only where
 * NESSIE_ALLOW_LOOPBACK_HTTP is 1; a name that leads to one is refused. Throws OriginRefused.
 */
export function readOrigin(text: string, loopbackHttp: boolean): Origin {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url) throw new OriginRefused('the origin is not a URL; write it as https://name');
  const isSecure = url.protocol === 'https:';
  if (!isSecure && url.protocol !== 'http:')
    throw new OriginRefused('the origin is not https; write it as https://name');
  const rest = [url.username, url.password, url.search, url.hash, url.pathname === '/' ? '' : url.pathname];
  if (rest.some((part) => part !== '')) {
    throw new OriginRefused('the origin has more than a name and a port; write it as https://name');
  }
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (!isSecure && !isLoopback(hostname)) {
    throw new OriginRefused('the origin is http; it must be https, and no flag or variable changes that');
  }
  if (!isSecure && !loopbackHttp) {
    throw new OriginRefused(
      'the origin is http on this machine; use https, or set NESSIE_ALLOW_LOOPBACK_HTTP=1 for a trial on loopback',
    );
  }
  return { isSecure, hostname, port: Number(url.port) || (isSecure ? 443 : 80), text: url.origin };
}
