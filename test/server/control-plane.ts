/*
 * A control plane for tests of channels, runs, commands, model clients and drafts: the real store in a folder of its own, real
 * HTTP on a loopback port, one person, agent, project and machine, and a command key inside this process with which statements
 * are really signed. The clock can be moved.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { canonicalBytes } from '../../helpers/protocol/descriptor.ts';
import type { Descriptor } from '../../helpers/protocol/descriptor.ts';
import type { AgentId, ExecutorId } from '../../helpers/protocol/ids.ts';
import { sha256, signPayload, statementDigest } from '../../helpers/protocol/signed.ts';
import { encodeStatement } from '../../helpers/protocol/statements.ts';
import type { Statement, StatementType } from '../../helpers/protocol/statements.ts';
import { createAgent, issueToken } from '../../server/accounts/agents.ts';
import { membershipOf } from '../../server/accounts/membership.ts';
import type { SignedIn } from '../../server/accounts/sessions.ts';
import { setUp } from '../../server/accounts/setup.ts';
import { startWork } from '../../server/commands/start-work.ts';
import type { RunningWork } from '../../server/commands/start-work.ts';
import { createApp } from '../../server/app.ts';
import type { App } from '../../server/http.ts';
import { routes as draftRoutes } from '../../server/drafts/routes.ts';
import { routes as runRoutes } from '../../server/runs/routes.ts';
import { beginSession, cookieName, csrfToken, CSRF_HEADER } from '../../server/accounts/sessions.ts';
import { checkSettings } from '../../server/config.ts';
import type { CommandKey, Context } from '../../server/context.ts';
import { decideRevision } from '../../server/descriptors/review.ts';
import { submitDescriptor } from '../../server/descriptors/submit.ts';
import type { SubmittedDescriptor } from '../../server/descriptors/submit.ts';
import { createExecutor, stepExecutor } from '../../server/executors/lifecycle.ts';
import { switchAgentOn } from '../../server/grants/access.ts';
import { newId } from '../../server/new-id.ts';
import { secretsFrom } from '../../server/secrets.ts';
import { openSqliteStore } from '../../server/store/sqlite.ts';
import { createWake } from '../../server/wake.ts';
import { FakeExecutor, freshState } from '../fakes/fake-executor.ts';
import type { FakeMachine, FakeState } from '../fakes/fake-executor.ts';
import { machineDescriptor, machineKey } from '../fakes/fake-machine.ts';
import type { MachineKey } from '../fakes/fake-machine.ts';

/** Password of the one person. */
export const PASSWORD = 'four unrelated words';

/** A clock that runs as usual and can be moved on, in ms. */
export class MovedClock {
  offsetMs = 0;

  now(): number {
    return Date.now() + this.offsetMs;
  }
}

/** A command key in this process, with a guard that rises. */
export function localKey(): CommandKey & { readonly privateKey: KeyObject; asked: number } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  let guard = 0;
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).subarray(-32),
    privateKey,
    asked: 0,
    async sign(statements) {
      this.asked += 1;
      let before: Buffer | undefined;
      return statements.map(({ type, fields, linked }) => {
        guard += 1;
        const link = linked && before ? { envelopeDigest: before } : {};
        // encodeStatement parses guard and fields with the schema of `type`.
        const statement = { ...fields, ...link, guard } as unknown as Statement<StatementType>;
        const signed = signPayload(privateKey, type, encodeStatement<StatementType>(type, statement));
        before = statementDigest(type, signed.payload);
        return signed;
      });
    },
  };
}

/** A paired machine as the control plane knows it, and its key. */
export interface PairedMachine {
  readonly executor: ExecutorId;
  readonly key: MachineKey;
  readonly descriptor: Descriptor;
}

/** A running control plane and its one person. */
export interface ControlPlane {
  readonly folder: string;
  readonly clock: MovedClock;
  readonly context: Context;
  readonly work: RunningWork;
  readonly app: App;
  readonly origin: string;
  readonly key: ReturnType<typeof localKey>;
  readonly by: SignedIn;
  readonly agent: AgentId;
  readonly project: RunProject;
  /** Bearer token of the agent, which may open runs itself. */
  readonly token: string;
  /** Pairs a machine, confirms its descriptor and switches the agent on. */
  pair(descriptor?: Descriptor): Promise<PairedMachine>;
  /** A fake machine for one that was paired. */
  machine(paired: PairedMachine, play?: FakeMachine['play'], state?: FakeState): FakeExecutor;
  /** Asks one of the page's calls as the signed-in person. */
  page(method: 'GET' | 'POST', path: string, body?: unknown): Promise<PageAnswer>;
  /** Ends work and HTTP; the store stays open. */
  halt(): Promise<void>;
  stop(): Promise<void>;
}

/** What a page's call answered. */
export interface PageAnswer {
  readonly status: number;
  // Tests look at the fields that they expect.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

type RunProject = Awaited<ReturnType<typeof setUp>>['project'];

/** Starts a whole control plane. */
export async function startControlPlane({
  mayOpenRuns = true,
  keptMs,
  password,
  signer,
}: {
  readonly mayOpenRuns?: boolean;
  readonly keptMs?: number;
  readonly password?: string;
  /** Signs in place of the command key of this process. */
  readonly signer?: CommandKey;
} = {}): Promise<ControlPlane> {
  const folder = await mkdtemp(join(tmpdir(), 'nessie-server-'));
  const clock = new MovedClock();
  const key = localKey();
  const context: Context = {
    store: await openSqliteStore(join(folder, 'store.db')),
    clock,
    signer: signer ?? key,
    random: randomBytes,
    log: pino({ level: process.env['NESSIE_TEST_LOG'] ?? 'silent' }),
    settings: checkSettings({ listen: {}, publicOrigin: 'http://127.0.0.1:7420', dataFolder: folder }),
    dataFolder: folder,
    secrets: secretsFrom(randomBytes(32)),
    wake: createWake(),
  };
  const first = {
    organisation: 'Loch',
    team: 'Shore',
    project: 'Survey',
    login: 'ness',
    name: 'Ness',
    password,
  };
  const account = await setUp(context, first, async () => undefined);
  const by: SignedIn = {
    person: account.person,
    organisation: account.organisation,
    role: 'owner',
    session: 'test',
    byLink: false,
  };
  const member = await membershipOf(context.store.read, by.person);
  const agent = await createAgent(context, member, 'assistant');
  const { token } = await issueToken(context, member, { agent, project: account.project, mayOpenRuns });
  const work = await startWork(context, keptMs === undefined ? {} : { keptMs });
  const app = await createApp(context, work);
  if (!app.hasRoute({ method: 'GET', url: '/api/page/runs' })) {
    runRoutes(app, work);
    draftRoutes(app, work);
  }
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const halt = async (): Promise<void> => {
    await work.stop();
    await app.close();
  };
  return {
    folder,
    clock,
    context,
    work,
    app,
    origin,
    key,
    by,
    agent,
    token,
    halt,
    project: account.project,
    page: await signIn(context, by, origin),
    pair: (descriptor = machineDescriptor()) => pairMachine(context, { by, team: account.team, agent, descriptor }),
    machine: ({ executor, key: machine, descriptor }, play, state = freshState()) =>
      new FakeExecutor(
        { origin, executor, key: machine, controlKey: context.signer.publicKey, descriptor, ...(play ? { play } : {}) },
        state,
      ),
    stop: async () => {
      await halt();
      await context.store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function signIn(context: Context, by: SignedIn, origin: string): Promise<ControlPlane['page']> {
  const token = await context.store.write((tx) => beginSession(context, tx, by.person, false));
  const session = await context.store.read.selectFrom('sessions').select('id').executeTakeFirstOrThrow();
  return async (method, path, body) => {
    const answer = await fetch(`${origin}${path}`, {
      method,
      headers: {
        cookie: `${cookieName(context)}=${token}`,
        origin: context.settings.publicOrigin,
        [CSRF_HEADER]: csrfToken(context, session.id),
        ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
      },
      ...(method === 'POST' ? { body: JSON.stringify(body ?? {}) } : {}),
    });
    return { status: answer.status, body: await answer.json() };
  };
}

/** Pairs a machine without its HTTP calls, has its descriptor confirmed, and switches an agent on. */
export async function pairMachine(
  context: Context,
  {
    by,
    team,
    agent,
    descriptor,
  }: { by: SignedIn; team: Parameters<typeof createExecutor>[2]['team']; agent: AgentId; descriptor: Descriptor },
): Promise<PairedMachine> {
  const executor = newId('exr');
  const key = machineKey();
  const fingerprint = sha256(key.publicKey).toString('hex');
  await context.store.write(async (tx) => {
    await createExecutor(context, tx, {
      id: executor,
      organisation: by.organisation,
      team,
      project: null,
      scope: 'organization',
      label: 'desk',
      createdBy: by.person,
      publicKey: key.publicKey,
      fingerprint,
    });
    await stepExecutor(context, tx, executor, { type: 'pairing.confirmed', fingerprint });
  });
  await confirmDescriptor(context, by, { executor, key, descriptor });
  await switchAgentOn(context, by, executor, agent);
  return { executor, key, descriptor };
}

/** Has a machine's revision arrive and its administrator confirm it. */
export async function confirmDescriptor(context: Context, by: SignedIn, paired: PairedMachine): Promise<void> {
  const { executor } = paired;
  const { revision } = paired.descriptor;
  const submitted = signDescriptor(paired);
  await submitDescriptor(context, executor, submitted);
  const digest = sha256(submitted.descriptor).toString('hex');
  await decideRevision(context, by, { executor, revision, digest, answer: 'confirm' });
}

/** A descriptor as its machine sends it. */
export function signDescriptor({ executor, key, descriptor }: PairedMachine): SubmittedDescriptor {
  const bytes = canonicalBytes(descriptor);
  const { revision } = descriptor;
  const fields = { guard: 0, at: Date.now(), executor, revision, descriptorDigest: sha256(bytes) };
  const signed = signPayload(key.privateKey, 'machine.descriptor', encodeStatement('machine.descriptor', fields));
  return { descriptor: bytes, signed };
}

/** Waits for a condition, or fails with what was waited for. */
export async function until<Value>(
  what: string,
  look: () => Promise<Value | undefined | false> | Value | undefined | false,
  withinMs = 5000,
): Promise<Value> {
  const end = Date.now() + withinMs;
  for (;;) {
    const value = await look();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > end) throw new Error(`waited ${withinMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
