import { OriginRefused } from '../protocol/origin.ts';
import type { LinkRefusal } from './protocol.ts';

/** The network did not answer, or answered what is not taken; the message names no address and holds no byte of an answer. */
export class LinkRefused extends Error {
  override readonly name = 'LinkRefused';
  readonly code: LinkRefusal;

  constructor(code: LinkRefusal, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const EXPIRED: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'CRL_HAS_EXPIRED']);
const UNRESOLVED: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_FAIL', 'ENODATA']);
const UNTRUSTED = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|INVALID_|PATH_LENGTH_|ERROR_IN_CERT_|HOSTNAME_MISMATCH)/;
const SILENT: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);
const TOO_LARGE: ReadonlySet<string> = new Set(['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW']);

/** Names the cause of a failed connection or call; codes are those of Node's TLS, of getaddrinfo(3) and of undici. */
export function linkRefusedBecause(cause: unknown): LinkRefused {
  if (cause instanceof LinkRefused) return cause;
  if (cause instanceof OriginRefused) return new LinkRefused(cause.code, cause.message, { cause });
  const code = codeOf(cause);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return new LinkRefused('TLS_NAME_MISMATCH', 'the certificate is for another name', { cause });
  }
  if (EXPIRED.has(code)) return new LinkRefused('TLS_EXPIRED', 'the certificate is not valid today', { cause });
  if (UNRESOLVED.has(code))
    return new LinkRefused('ORIGIN_UNRESOLVED', 'the name of the origin has no address', { cause });
  if (UNTRUSTED.test(code)) {
    return new LinkRefused('TLS_UNTRUSTED', 'the certificate leads to no authority that is trusted here', { cause });
  }
  if (TOO_LARGE.has(code)) return new LinkRefused('ANSWER_TOO_LARGE', 'the answer is longer than is taken', { cause });
  if (SILENT.has(code) || isTimeout(cause))
    return new LinkRefused('ANSWER_TIMEOUT', 'no whole answer came in time', { cause });
  return new LinkRefused('ORIGIN_UNREACHABLE', `no connection to the origin${code === '' ? '' : ` (${code})`}`, {
    cause,
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError';
