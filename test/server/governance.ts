/*
 * A control plane for tests of accounts, pairing, executors, descriptors, grants and availability: the real store and the whole HTTP
 * application on a loopback port, people who come in through its routes, and machines that pair through its calls.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { decode, encode } from '../../helpers/protocol/codec.ts';
import { canonicalBytes } from '../../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import type { ExecutorId, PersonId } from '../../helpers/protocol/ids.ts';
import { sha256, signPayload } from '../../helpers/protocol/signed.ts';
import type { Signed } from '../../helpers/protocol/signed.ts';
import { encodeStatement } from '../../helpers/protocol/statements.ts';
import type { MachineStatementType, Statement } from '../../helpers/protocol/statements.ts';
import { setUp } from '../../server/accounts/setup.ts';
import type { FirstAccount } from '../../server/accounts/setup.ts';
import { hashPassword } from '../../server/accounts/password.ts';
import { beginSession, cookieName } from '../../server/accounts/sessions.ts';
import type { SignedIn } from '../../server/accounts/sessions.ts';
import { createApp } from '../../server/app.ts';
import { checkSettings } from '../../server/config.ts';
import { startWork } from '../../server/commands/start-work.ts';
import type { Context } from '../../server/context.ts';
import { decideRevision } from '../../server/descriptors/review.ts';
import { submitDescriptor } from '../../server/descriptors/submit.ts';
import { stepExecutor } from '../../server/executors/lifecycle.ts';
import { touchExecutor } from '../../server/executors/store.ts';
import type { App } from '../../server/http.ts';
import { secretsFrom } from '../../server/secrets.ts';
import { openSqliteStore } from '../../server/store/sqlite.ts';
import { createWake } from '../../server/wake.ts';
import type { pairingCalls } from '../../server/protocol.ts';
import { machineDescriptor, machineKey } from '../fakes/fake-machine.ts';
import type { MachineKey } from '../fakes/fake-machine.ts';
import { localKey, MovedClock, PASSWORD } from './control-plane.ts';

/** What people and machines call it in these tests. */
export const PUBLIC_ORIGIN = 'http://127.0.0.1:7420';

/** An answer of the server as it came. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // Tests read answers by name and compare them with what they expect; a schema here would only repeat the server's.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
  readonly text: string;
}

/** A control plane with its owner signed in. */
export interface Governance {
  readonly context: Context;
  readonly clock: MovedClock;
  readonly app: App;
  readonly origin: string;
  readonly account: FirstAccount;
  readonly owner: Page;
  readonly by: SignedIn;
  readonly folder: string;
  /** A further person of the team with a password, signed in. */
  invite(login: string, role?: 'owner' | 'admin' | 'member'): Promise<Page>;
  stop(): Promise<void>;
}

let hashed: Promise<string> | undefined;

/** Sets PASSWORD on an account; it is hashed once for all tests. */
export async function givePassword(context: Context, person: PersonId): Promise<void> {
  hashed ??= hashPassword(PASSWORD);
  const password = await hashed;
  await context.store.write((tx) => tx.updateTable('people').set({ password }).where('id', '=', person).execute());
}

/** A context with a store in a folder of its own; https is ended by a proxy. */
export async function makeContext(
  publicOrigin = PUBLIC_ORIGIN,
): Promise<{ context: Context; clock: MovedClock; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'nessie-governance-'));
  const clock = new MovedClock();
  const context: Context = {
    store: await openSqliteStore(join(folder, 'store.db')),
    clock,
    signer: localKey(),
    random: randomBytes,
    log: pino({ level: process.env['NESSIE_TEST_LOG'] ?? 'silent' }),
    settings: checkSettings({
      listen: {},
      publicOrigin,
      behindProxy: publicOrigin.startsWith('https:'),
      dataFolder: folder,
    }),
    dataFolder: folder,
    secrets: secretsFrom(randomBytes(32)),
    wake: createWake(),
  };
  return { context, clock, folder };
}

/** Starts it. */
export async function startGovernance(): Promise<Governance> {
  const { context, clock, folder } = await makeContext();
  const first = { organisation: 'Loch', team: 'Shore', project: 'Survey', login: 'ness', name: 'Ness' };
  const account = await setUp(context, { ...first, password: undefined }, async () => undefined);
  await givePassword(context, account.person);
  const work = await startWork(context);
  const app = await createApp(context, work);
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const owner = new Page(origin, 'ness', account.person);
  await owner.enter(context);
  const { person, organisation } = account;
  return {
    context,
    clock,
    app,
    origin,
    account,
    owner,
    by: { person, organisation, role: 'owner', session: 'test', byLink: false },
    folder,
    invite: async (login, role = 'member') => {
      const made = await owner.post('/api/page/people', { login, name: login, role, team: account.team });
      const page = new Page(origin, login, made.body.person);
      await givePassword(context, page.person);
      await page.enter(context);
      return page;
    },
    stop: async () => {
      await work.stop();
      await app.close();
      await context.store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A person's browser: one cookie, and the token of its session. */
export class Page {
  readonly origin: string;
  readonly login: string;
  readonly person: PersonId;
  cookie = '';
  csrf = '';

  constructor(origin: string, login: string, person: PersonId) {
    this.origin = origin;
    this.login = login;
    this.person = person;
  }

  /** Begins a session without the quarter of a second that a password costs. */
  async enter(context: Context): Promise<void> {
    const token = await context.store.write((tx) => beginSession(context, tx, this.person, false));
    this.cookie = `${cookieName(context)}=${token}`;
    await this.readSession();
  }

  async signIn(password = PASSWORD): Promise<Answer> {
    const answer = await this.post('/api/page/sign-in', { login: this.login, password });
    await this.readSession();
    return answer;
  }

  async readSession(): Promise<void> {
    const { body } = await this.get('/api/page/session');
    this.csrf = body.person?.csrf ?? '';
  }

  get(path: string): Promise<Answer> {
    return this.request('GET', path);
  }

  post(path: string, body: unknown = {}): Promise<Answer> {
    return this.request('POST', path, body);
  }

  put(path: string, body: unknown = {}): Promise<Answer> {
    return this.request('PUT', path, body);
  }

  delete(path: string): Promise<Answer> {
    return this.request('DELETE', path);
  }

  async request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(`${this.origin}${path}`, {
      method,
      headers: {
        origin: PUBLIC_ORIGIN,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.cookie === '' ? {} : { cookie: this.cookie }),
        ...(this.csrf === '' ? {} : { 'x-nessie-csrf': this.csrf }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const set = response.headers.get('set-cookie');
    if (set !== null) this.cookie = String(set.split(';')[0]);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined };
  }
}

type Call = keyof typeof pairingCalls;

/** A machine that pairs: its key, its first descriptor and the calls that it makes. */
export class PairingMachine {
  readonly origin: string;
  readonly key: MachineKey;
  readonly clock: { now(): number };
  readonly requestId = `req_${randomBytes(16).toString('hex')}`;
  readonly machineName = 'desk';
  descriptor: Descriptor = machineDescriptor();
  guard = 0;

  constructor(origin: string, clock: { now(): number }, key: MachineKey = machineKey()) {
    this.origin = origin;
    this.clock = clock;
    this.key = key;
  }

  get fingerprint(): string {
    return sha256(this.key.publicKey).toString('hex');
  }

  sign<Type extends MachineStatementType>(
    type: Type,
    fields: Omit<Statement<Type>, 'guard' | 'at'> & { readonly at?: number },
    key = this.key,
  ): Signed {
    this.guard += 1;
    // encodeStatement parses guard, time and fields with the schema of `type`.
    const statement = { guard: this.guard, at: this.clock.now(), ...fields } as unknown as Statement<Type>;
    return signPayload(key.privateKey, type, encodeStatement(type, statement));
  }

  async call(name: Call, body: unknown): Promise<Answer> {
    const response = await fetch(`${this.origin}/api/pairing/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/msgpack' },
      body: new Uint8Array(encode(body)),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, text: bytes.toString('latin1'), body: decode(bytes) };
  }

  /** Body of the first request of either flow. */
  firstBody(challenge?: Uint8Array): Record<string, unknown> {
    const bytes = canonicalBytes(this.descriptor);
    const descriptorDigest = sha256(bytes);
    const { requestId, machineName } = this;
    const { publicKey } = this.key;
    const descriptorSigned = this.sign('machine.descriptor', { revision: this.descriptor.revision, descriptorDigest });
    const shared = { requestId, publicKey, descriptor: bytes, descriptorSigned };
    return challenge === undefined
      ? {
          ...shared,
          machineName,
          proof: this.sign('machine.pair-start', { requestId, machineName, publicKey, descriptorDigest }),
        }
      : {
          ...shared,
          challenge,
          proof: this.sign('machine.enrol', { requestId, challenge, publicKey, descriptorDigest }),
        };
  }

  start(): Promise<Answer> {
    return this.call('start', this.firstBody());
  }

  poll(pairing: string): Promise<Answer> {
    return this.call('poll', { poll: this.sign('machine.pair-poll', { pairing: pairing as never }) });
  }

  confirm(pairing: string, claimDigest: Uint8Array, answer: 'confirm' | 'reject' = 'confirm'): Promise<Answer> {
    return this.call('confirm', {
      confirm: this.sign('machine.pair-confirm', { pairing: pairing as never, claimDigest, answer }),
    });
  }
}

/** SHA-256 of a claim as a machine computes it. */
export function digestOfClaim(claim: unknown): Buffer {
  return sha256(canonicalBytes(claim));
}

/** Pairs a machine through both people's confirmations and answers its id. */
export async function pairThroughRoutes(
  { clock, account, origin }: Governance,
  page: Page,
  wish: {
    scope?: 'private' | 'project' | 'organization';
    project?: string | null;
    label?: string;
    machine?: PairingMachine;
  } = {},
): Promise<{ executor: ExecutorId; machine: PairingMachine }> {
  const machine = wish.machine ?? new PairingMachine(origin, clock);
  const started = await machine.start();
  if (started.status !== 200) throw new Error(`start: ${JSON.stringify(started.body)}`);
  const { pairing } = (await page.post('/api/page/pairings/lookup', { code: started.body.code })).body;
  const claim = await page.post(`/api/page/pairings/${pairing}/claim`, {
    label: wish.label ?? 'desk',
    scope: wish.scope ?? 'private',
    team: account.team,
    project: wish.project ?? null,
    fingerprint: machine.fingerprint,
  });
  if (claim.status !== 200) throw new Error(`claim: ${claim.text}`);
  const claimed = await machine.poll(pairing);
  const confirmed = await machine.confirm(pairing, digestOfClaim(claimed.body.claim));
  if (confirmed.status !== 200) throw new Error(`confirm: ${JSON.stringify(confirmed.body)}`);
  return { executor: confirmed.body.paired.executor, machine };
}

/** The machine proves its key over a connection: online from now on. */
export async function proveOnline({ context }: Governance, executor: ExecutorId): Promise<void> {
  await context.store.write(async (tx) => {
    const { fingerprint } = await tx
      .selectFrom('executors')
      .select('fingerprint')
      .where('id', '=', executor)
      .executeTakeFirstOrThrow();
    await stepExecutor(context, tx, executor, { type: 'executor.proved', fingerprint: fingerprint ?? '' });
    await touchExecutor(tx, executor, context.clock.now());
  });
}

/** A machine's revision arrives over its connection. */
export async function submit(
  { context }: Governance,
  executor: ExecutorId,
  machine: PairingMachine,
  descriptor: Descriptor,
): Promise<'confirmed' | 'pending'> {
  const bytes = canonicalBytes(descriptor);
  const { revision } = descriptor;
  const signed = machine.sign('machine.descriptor', { executor, revision, descriptorDigest: sha256(bytes) });
  return (await submitDescriptor(context, executor, { descriptor: bytes, signed })).state;
}

/** The owner confirms the newest revision without the quarter of a second that a password costs. */
export async function confirmQuickly({ context, by }: Governance, executor: ExecutorId): Promise<void> {
  const { revision, digest } = await context.store.read
    .selectFrom('descriptors')
    .select(['revision', 'digest'])
    .where('executor', '=', executor)
    .orderBy('revision', 'desc')
    .executeTakeFirstOrThrow();
  await decideRevision(context, by, { executor, revision, digest: digest.toString('hex'), answer: 'confirm' });
}

/** An administrator sees and confirms the revision that waits, with the password. */
export async function confirmWaiting(page: Page, executor: string, password = PASSWORD): Promise<Answer> {
  const { body } = await page.get(`/api/page/executors/${executor}/descriptor`);
  const { revision, digest } = body.pending;
  return page.post(`/api/page/executors/${executor}/descriptor`, { revision, digest, answer: 'confirm', password });
}
