/*
 * A person at the page, scripted: the same routes that the page calls, with its cookie and its anti-forgery token. Everything
 * that a person must press is a call here; nothing goes round it.
 */

/** The control plane refused; `code` and `message` are its own. */
export class PageRefused extends Error {
  override readonly name = 'PageRefused';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** One browser session of one person. Answers are typed by the caller, who knows the route. */
export class Person {
  readonly #origin: string;
  #cookie = '';
  #csrf = '';

  /** `origin` is the control plane's public origin. */
  constructor(origin: string) {
    this.#origin = origin;
  }

  /** First-run setup: makes the owner, an organisation, a team and a project. */
  setUp(
    address: string,
    facts: { organisation: string; team: string; project: string; login: string; name: string; password: string },
  ): Promise<void> {
    return this.#begin('/api/page/setup', { token: secretOf(address, 'setup'), ...facts });
  }

  signIn(login: string, password: string): Promise<void> {
    return this.#begin('/api/page/sign-in', { login, password });
  }

  /** Opens a one-time sign-in address. */
  signInByLink(address: string): Promise<void> {
    return this.#begin('/api/page/sign-in-by-link', { token: secretOf(address, 'sign-in') });
  }

  get<Answer>(path: string): Promise<Answer> {
    return this.#call<Answer>('GET', path);
  }

  post<Answer>(path: string, body: object = {}): Promise<Answer> {
    return this.#call<Answer>('POST', path, body);
  }

  put<Answer>(path: string, body: object = {}): Promise<Answer> {
    return this.#call<Answer>('PUT', path, body);
  }

  async #begin(path: string, body: object): Promise<void> {
    await this.#call('POST', path, body);
    const { person } = await this.get<{ person: { csrf: string } | null }>('/api/page/session');
    this.#csrf = person?.csrf ?? '';
  }

  async #call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    const headers: Record<string, string> = { origin: this.#origin };
    if (this.#cookie) headers['cookie'] = this.#cookie;
    if (this.#csrf) headers['x-nessie-csrf'] = this.#csrf;
    if (body) headers['content-type'] = 'application/json';
    const response = await fetch(this.#origin + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const cookie = response.headers.getSetCookie()[0]?.split(';')[0];
    if (cookie) this.#cookie = cookie;
    const answer: unknown = await response.json();
    if (response.ok) {
      // The caller names the answer of the route that it calls; a wrong name fails at its first use.
      return answer as Answer;
    }
    // Every error of the control plane has this form; anything else reads as unknown.
    const { code = 'UNKNOWN', message = '' } = answer as { code?: string; message?: string };
    throw new PageRefused(response.status, code, message);
  }
}

function secretOf(address: string, purpose: string): string {
  const secret = new URL(address).hash.slice(1 + purpose.length + 1);
  if (!secret) throw new RangeError('the address carries no one-time secret');
  return secret;
}
