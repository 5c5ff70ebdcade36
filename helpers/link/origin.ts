import { BlockList, isIP, isIPv4 } from 'node:net';
import { LinkRefused } from './refused.ts';

/** The one API origin. */
export interface Origin {
  readonly isSecure: boolean;
  /** Name or literal address, without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** `https://name:port` as URL writes it. */
  readonly text: string;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether a literal address is of this machine's loopback; false for every name. */
export function isLoopback(address: string): boolean {
  return isIP(address) !== 0 && loopback.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
}

/**
 * Reads the origin of the owner's configuration. Plain text is for literal loopback addresses alone, and only where
 * NESSIE_ALLOW_LOOPBACK_HTTP is 1; a name that leads to one is refused. Throws LinkRefused with ORIGIN_NOT_PERMITTED.
 */
export function readOrigin(text: string, loopbackHttp: boolean): Origin {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url) throw new LinkRefused('ORIGIN_NOT_PERMITTED', 'the origin is not a URL; write it as https://name');
  const isSecure = url.protocol === 'https:';
  if (!isSecure && url.protocol !== 'http:') throw new LinkRefused('ORIGIN_NOT_PERMITTED', 'the origin is not https');
  const rest = [url.username, url.password, url.search, url.hash, url.pathname === '/' ? '' : url.pathname];
  if (rest.some((part) => part !== '')) {
    throw new LinkRefused(
      'ORIGIN_NOT_PERMITTED',
      'the origin has more than a name and a port; write it as https://name',
    );
  }
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (!isSecure && !isLoopback(hostname)) {
    throw new LinkRefused('ORIGIN_NOT_PERMITTED', 'the origin is http: it must be https, whatever is set');
  }
  if (!isSecure && !loopbackHttp) {
    throw new LinkRefused(
      'ORIGIN_NOT_PERMITTED',
      'the origin is http on this machine: it must be https, or NESSIE_ALLOW_LOOPBACK_HTTP be 1',
    );
  }
  return { isSecure, hostname, port: Number(url.port) || (isSecure ? 443 : 80), text: url.origin };
}
