/** What every call may meet: the server's refusal, or no answer at all (`UNREACHABLE`, `ANSWER_INVALID`). */
export class CallRefused extends Error {
  override readonly name = 'CallRefused';
  /** One code for one cause, as the server closed them. */
  readonly code: string;
  readonly remedy: string | undefined;
  /** HTTP status; 0 without an answer. */
  readonly status: number;

  constructor(code: string, message: string, about: { readonly remedy?: string; readonly status: number }) {
    super(message);
    this.code = code;
    this.remedy = about.remedy;
    this.status = about.status;
  }
}

/** The page's one way to its server: JSON both ways, the session's cookie, and the token against forged requests. */
export interface Client {
  /** Rejects with CallRefused. */
  readonly get: <Answer>(path: string) => Promise<Answer>;
  /** Rejects with CallRefused. */
  readonly send: <Answer>(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object) => Promise<Answer>;
}

/** Makes a client. `token` answers the session's token; `ended` hears that the session is over. */
export function createClient(token: () => string | undefined, ended: () => void): Client {
  const call = async <Answer>(method: string, path: string, body?: object): Promise<Answer> => {
    const csrf = token();
    const response = await fetch(path, {
      method,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(csrf === undefined ? {} : { 'x-nessie-csrf': csrf }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch(() => {
      throw new CallRefused('UNREACHABLE', 'The server does not answer.', { status: 0 });
    });
    const answer: unknown = await response.json().catch(() => undefined);
    if (response.ok && answer !== undefined) {
      // TRUST: the server that served this page; its answer passed the schema that the type comes from.
      return answer as Answer;
    }
    const refused = refusalOf(answer, response.status);
    if (refused.code === 'SIGN_IN_REQUIRED') ended();
    throw refused;
  };
  return {
    get: (path) => call('GET', path),
    send: (method, path, body) => call(method, path, method === 'DELETE' ? body : (body ?? {})),
  };
}

function refusalOf(answer: unknown, status: number): CallRefused {
  const fields: Partial<Record<string, unknown>> = typeof answer === 'object' && answer !== null ? { ...answer } : {};
  const { code, message, remedy } = fields;
  if (typeof code !== 'string' || typeof message !== 'string') {
    return new CallRefused('ANSWER_INVALID', `The server answered with status ${status} and no reason.`, { status });
  }
  return new CallRefused(code, message, { status, ...(typeof remedy === 'string' ? { remedy } : {}) });
}
